"""Voters that change while nodes are killed and cut off (KIP-853, D13)."""

from __future__ import annotations

import asyncio

from strandline.histories.acts.act import act
from strandline.histories.acts.scene import Scene
from strandline.histories.setting import Setting
from strandline.histories.voter_changes import VoterChanges


def dynamic(setting: Setting) -> bool:
    return setting.shape.is_dynamic


def dynamic_quorum(setting: Setting) -> bool:
    return dynamic(setting) and setting.voters >= 3


@act("voters come and go", dynamic)
async def voters_come_and_go(scene: Scene) -> None:
    """Controllers become voters and stop being it, the leader among them; nobody is harmed."""
    changes = VoterChanges(scene)
    spare = changes.one_outside()
    if spare is not None:
        await changes.done(changes.add(spare))
    controller = scene.controller()
    if len(changes.voters) > 1 and controller in changes.voters:
        await changes.done(changes.remove(controller))
        await scene.another_controller(controller)
        await changes.done(changes.add(controller))
    await changes.judge()


@act("voters change under kills", dynamic_quorum)
async def voters_change_under_kills(scene: Scene) -> None:
    """While a voter is added or removed, any voter dies; the change happens wholly or not at all, and then it happens."""
    await _change_under_harm(scene, power=False)


@act("voters change under power losses", dynamic_quorum)
async def voters_change_under_power_losses(scene: Scene) -> None:
    """The same, with hosts that go dark, and with the leader cut off."""
    await _change_under_harm(scene, power=True)


async def _change_under_harm(scene: Scene, *, power: bool) -> None:
    changes = VoterChanges(scene)
    spare = changes.one_outside()
    if spare is not None:
        await _harm_until_done(scene, changes, changes.add(spare), power=power)
    controller = scene.controller()
    gone = controller if power else scene.chance.choice(sorted(changes.voters))
    removing = changes.remove(gone)
    if power:
        await scene.wait(0.0, 0.02)
        scene.faults.isolate(controller)
        await scene.wait(0.5, 3.0)
        scene.heal_network()
    await _harm_until_done(scene, changes, removing, power=power)
    scene.cluster.heal()
    await changes.judge()


@act("a voter is replaced", dynamic_quorum)
async def voter_replaced(scene: Scene) -> None:
    """A voter lost its disk: it is taken out, comes back empty as another replica, and is let in again."""
    changes = VoterChanges(scene)
    victims = scene.others(sorted(changes.voters), scene.controller())
    victim = scene.chance.choice(victims)
    removed = await changes.done(changes.remove(victim))  # names the directory that is about to be lost
    if removed and scene.faults.lose_disk(victim):
        scene.start(victim)
        await scene.caught_up(victim)
    await changes.done(changes.add(victim))
    await changes.judge()


@act("two voter changes at once", dynamic, weight=2)
async def two_changes_at_once(scene: Scene) -> None:
    """Two operators change the voters at the same time, while records reach the others slowly: one change waits for the other."""
    for _ in range(2):
        changes = VoterChanges(scene)
        spares = scene.others(scene.setting.shape.controllers, *changes.voters)
        leaving = scene.others(sorted(changes.voters), scene.controller())
        for other in scene.others(scene.setting.shape.controllers, scene.controller()):
            scene.faults.slow_disk(other, 100)
        asked = [changes.add(spare) for spare in spares[:2]]
        if len(asked) < 2 and leaving:
            asked.append(changes.remove(leaving[0]))
        for change in asked:
            await changes.done(change)
        scene.cluster.heal()
        await changes.judge()


@act("a voter that is not there", dynamic)
async def absent_voter(scene: Scene) -> None:
    """A controller that is down, or cut off, is to become a voter: it does so once it has what is committed, and not before."""
    changes = VoterChanges(scene)
    spare = changes.one_outside()
    if spare is None:
        return
    if scene.either():
        scene.faults.kill(spare)
    else:
        scene.faults.split([spare], scene.others(scene.nodes, spare))
    await scene.wait(2.0 * scene.timers.quorum_s, 2.5 * scene.timers.quorum_s)
    adding = changes.add(spare)
    await scene.wait(1.0, 4.0)
    scene.heal_network()
    scene.start(spare)
    await changes.done(adding)
    await changes.judge()


async def _harm_until_done(
    scene: Scene, changes: VoterChanges, change: asyncio.Task[bool], *, power: bool = False
) -> None:
    """Kill one voter after the other while a change goes on; let it end in peace if it takes too long."""
    for _ in range(3):
        await scene.wait(0.0, 0.15)
        victim = scene.chance.choice(scene.setting.shape.controllers)
        if not change.done():
            scene.faults.dies(victim, power=power)
            await scene.wait(0.0, 0.6)
            scene.start(victim)
            await scene.wait(0.0, 0.4)
    scene.cluster.heal()
    await changes.done(change)
