"""Cut links between voters: the leader cut off, the quorum split, topologies in which not every
voter reaches every other."""

from __future__ import annotations

from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import five_voters, nemesis, quorum
from strandline.histories.setting import HistorySetting
from strandline.histories.shape import host

EPOCHS_MAX = 12
"""So many elections at most by a few cut links: pre-votes keep those that are cut off from deposing a leader."""


@nemesis("controller cut off", quorum)
async def controller_cut_off(context: NemesisContext) -> None:
    """The old leader reaches no other node and commits nothing; the others elect another one."""
    controller = context.controller()
    if context.faults.isolate(controller):
        await context.another_controller(controller)
    await context.commits(1, context.others(context.voters, controller))
    context.heal_network()
    await context.caught_up(controller)


def brisk_quorum(setting: HistorySetting) -> bool:
    return quorum(setting) and setting.timers.is_brisk


@nemesis("controller cut off for long", brisk_quorum)
async def controller_cut_off_for_long(context: NemesisContext) -> None:
    """A leader that no voter reaches knows after a while that it leads no more (D5)."""
    controller = context.controller()
    context.faults.isolate(controller)
    await _for_long(context)
    context.heal_network()
    await context.caught_up(controller)


@nemesis("controller alone with brokers", lambda setting: brisk_quorum(setting) and not setting.shape.is_combined)
async def controller_alone_with_brokers(context: NemesisContext) -> None:
    """A leader that no other voter reaches leads no more, though brokers go on fetching from it (D12)."""
    controller = context.controller()
    context.faults.split([controller], context.others(context.setting.shape.controllers, controller))
    for broker in context.brokers:
        # They do not know of another leader either.
        for other in context.others(context.setting.shape.controllers, controller):
            context.faults.cut(broker, other)
    await _for_long(context)
    context.heal_network()
    await context.caught_up(controller)


async def _for_long(context: NemesisContext) -> None:
    """Longer than check quorum takes."""
    timeout_s = context.timers.quorum_fetch_ms / 1000
    await context.wait(2.0 + 2.2 * timeout_s, 2.5 + 3.0 * timeout_s)


@nemesis("one voter does not reach the controller", quorum)
async def one_voter_cut_off(context: NemesisContext) -> None:
    """One link to the leader is cut, while all the others hear it: none of them votes for the one that does not."""
    controller = context.controller()
    voter = context.chance.choice(context.others(context.voters, controller))
    with context.no_noise():
        if context.faults.cut(controller, voter) and voter in context.brokers and context.setting.brokers > 2:
            await context.wait(0.0, 1.0)
        await context.wait(context.timers.quorum_s, 2.0 * context.timers.quorum_s)
    context.heal_network()
    await context.caught_up(voter)


@nemesis("controllers cut off in turn", quorum)
async def controllers_cut_off_in_turn(context: NemesisContext) -> None:
    """As soon as another one leads, it is cut off, and the one before comes back."""
    for _ in range(2):
        controller = context.controller()
        if context.faults.isolate(controller):
            await context.another_controller(controller)
        context.heal_network()
    context.faults.isolate(context.controller())
    await context.wait(0.5, 4.0)


@nemesis("two and three", five_voters, weight=2)
async def two_and_three(context: NemesisContext) -> None:
    """Five voters are split: three go on, two do not; then they are one again."""
    voters = context.chance.sample(context.voters, 5)
    few, many = voters[:2], voters[2:]
    context.faults.split(few, [*many, *context.others(context.nodes, *voters)])
    await context.commits(2, many)
    context.heal_network()
    await context.caught_up(*voters)


@nemesis("links go, the controller stays", five_voters)
async def controller_stays(context: NemesisContext) -> None:
    """Links go, but the leader keeps a majority: those that lost it do not depose it."""
    controller = context.controller()
    if controller not in context.voters or not await context.caught_up(*context.voters):
        return
    a, b, d, e = context.others(context.voters, controller)
    with context.stable_leadership():
        for one, other in ((a, b), (a, d), (a, e), (b, controller), (b, e)):
            context.faults.cut(one, other)
        await context.wait(1.0, 2 * context.timers.quorum_s)
        context.heal_network()
        await context.caught_up(*context.voters)


@nemesis("not every voter reaches every other", five_voters)
async def not_everybody(context: NemesisContext) -> None:
    """All restart while only some links are there: a leader that is elected by those it reaches stays."""
    a, b, c, d, e = context.chance.sample(context.voters, 5)
    for one, other in ((a, b), (a, d), (a, e), (b, c), (b, e)):
        context.faults.cut(one, other)
    context.faults.kill(c)
    context.start(c)
    before = _epoch(context)
    await context.until(lambda: context.cluster.leader() is not None)
    await context.commits(1)
    await context.wait(0.5, 3.0)
    _judge_epochs(context, before)
    context.heal_network()
    await context.caught_up(c, d)


@nemesis("one-way links", quorum)
async def one_way_links(context: NemesisContext) -> None:
    """Single directions fail, here and there; epochs do not run away."""
    before = _epoch(context)
    for _ in range(3):
        source, target = context.chance.sample(context.voters, 2)
        context.faults.cut_one_way(source, target)
        await context.wait(0.3, 3.0)
        context.heal_network()
        await context.wait(0.0, 1.0)
    _judge_epochs(context, before)


@nemesis("a ring of one-way links", quorum)
async def ring(context: NemesisContext) -> None:
    """Each voter is heard by the next one only: there may be no leader, but there is no storm of elections."""
    before = _epoch(context)
    ring = context.chance.sample(context.voters, len(context.voters))
    for i, source in enumerate(ring):
        for target in ring:
            if target not in (source, ring[(i + 1) % len(ring)]):
                context.faults.cut_one_way(source, target)
    await context.wait(1.0, 2 * context.timers.quorum_s)
    context.heal_network()
    _judge_epochs(context, before)


@nemesis("late bytes", quorum)
async def late_bytes(context: NemesisContext) -> None:
    """What was sent on connections that are long forgotten arrives after what was sent on the new ones."""
    for _ in range(2):
        controller = context.controller()
        for other in context.others(context.voters, controller):
            by_s = context.chance.uniform(0.5, 2 * context.timers.quorum_s)
            context.faults.delay_bytes(host(controller), host(other), by_s)
        await context.wait(0.5, context.timers.quorum_s)


def _epoch(context: NemesisContext) -> int:
    return max((seen.epoch for seen in context.cluster.observed.nodes.values()), default=0)


def _judge_epochs(context: NemesisContext, before: int) -> None:
    after = _epoch(context)
    if after - before > EPOCHS_MAX:
        context.problem("StableLeadership", f"cut links took the epoch from {before} to {after}")
