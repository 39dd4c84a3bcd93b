"""Voters that change while nodes are killed and cut off (KIP-853, D13)."""

from __future__ import annotations

import asyncio

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import nemesis
from strandline.histories.setting import HistorySetting
from strandline.histories.voter_changes import VoterChanges


def dynamic(setting: HistorySetting) -> bool:
    return setting.shape.is_dynamic


def dynamic_quorum(setting: HistorySetting) -> bool:
    return dynamic(setting) and setting.voters >= 3


@nemesis("voters come and go", dynamic)
async def voters_come_and_go(context: NemesisContext) -> None:
    """Controllers become voters and stop being it, the leader among them; nothing is lost."""
    changes = VoterChanges(context)
    spare = changes.one_outside()
    if spare is not None:
        await changes.done(changes.add(spare))
    controller = context.controller()
    if len(changes.voters) > 1 and controller in changes.voters:
        await changes.done(changes.remove(controller))
        await context.another_controller(controller)
        await changes.done(changes.add(controller))
    await changes.judge()


@nemesis("voters change under kills", dynamic_quorum)
async def voters_change_under_kills(context: NemesisContext) -> None:
    """While a voter is added or removed, any voter dies; the change happens wholly or not at all, and then it
    happens."""
    await _change_under_harm(context, power=False)


@nemesis("voters change under power losses", dynamic_quorum)
async def voters_change_under_power_losses(context: NemesisContext) -> None:
    """The same, with hosts that go dark, and with the leader cut off."""
    await _change_under_harm(context, power=True)


async def _change_under_harm(context: NemesisContext, *, power: bool) -> None:
    changes = VoterChanges(context)
    spare = changes.one_outside()
    if spare is not None:
        await _harm_until_done(context, changes, changes.add(spare), power=power)
    controller = context.controller()
    gone = controller if power else context.chance.choice(sorted(changes.voters))
    removing = changes.remove(gone)
    if power:
        await context.wait(0.0, 0.02)
        context.faults.isolate(controller)
        await context.wait(0.5, 3.0)
        context.heal_network()
    await _harm_until_done(context, changes, removing, power=power)
    context.cluster.heal()
    await changes.judge()


@nemesis("a voter is replaced", dynamic_quorum)
async def voter_replaced(context: NemesisContext) -> None:
    """A voter lost its disk: it is taken out, comes back empty as another replica, and is let in again."""
    changes = VoterChanges(context)
    victims = context.others(sorted(changes.voters), context.controller())
    victim = context.chance.choice(victims)
    removed = await changes.done(changes.remove(victim))  # names the directory that is about to be lost
    if removed and context.faults.lose_disk(victim):
        context.start(victim)
        await context.caught_up(victim)
    await changes.done(changes.add(victim))
    await changes.judge()


@nemesis("two voter changes at once", dynamic, weight=2)
async def two_changes_at_once(context: NemesisContext) -> None:
    """Two operators change the voters at the same time, while records reach the others slowly: one change waits for
    the other."""
    for _ in range(2):
        changes = VoterChanges(context)
        spares = context.others(context.setting.shape.controllers, *changes.voters)
        leaving = context.others(sorted(changes.voters), context.controller())
        for other in context.others(context.setting.shape.controllers, context.controller()):
            context.faults.slow_disk(other, 100)
        asked = [changes.add(spare) for spare in spares[:2]]
        if len(asked) < 2 and leaving:
            asked.append(changes.remove(leaving[0]))
        for change in asked:
            await changes.done(change)
        context.cluster.heal()
        await changes.judge()


@nemesis("a voter that is not there", dynamic)
async def absent_voter(context: NemesisContext) -> None:
    """A controller that is down, or cut off, is to become a voter: it does so once it has what is committed, and not
    before."""
    changes = VoterChanges(context)
    spare = changes.one_outside()
    if spare is None:
        return
    if context.either():
        context.faults.kill(spare)
    else:
        context.faults.split([spare], context.others(context.nodes, spare))
    await context.wait(2.0 * context.timers.quorum_s, 2.5 * context.timers.quorum_s)
    adding = changes.add(spare)
    await context.wait(1.0, 4.0)
    context.heal_network()
    context.start(spare)
    await changes.done(adding)
    await changes.judge()


async def _harm_until_done(
    context: NemesisContext, changes: VoterChanges, change: asyncio.Task[bool], *, power: bool = False
) -> None:
    """Kill one voter after the other while a change goes on; let it end in peace if it takes too long."""
    for _ in range(3):
        await context.wait(0.0, 0.15)
        victim = context.chance.choice(context.setting.shape.controllers)
        if not change.done():
            context.faults.dies(victim, power=power)
            await context.wait(0.0, 0.6)
            context.start(victim)
            await context.wait(0.0, 0.4)
    context.cluster.heal()
    await changes.done(change)
