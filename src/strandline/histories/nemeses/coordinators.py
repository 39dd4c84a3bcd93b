"""Coordinators of the group that die, stand still, hand over or can't write, under members that commit."""

from __future__ import annotations

from strandline.client.aio import Admin
from strandline.client.flow.descriptions import ElectionType
from strandline.histories.nemeses.context import OPERATION_MS, NemesisContext
from strandline.histories.nemeses.nemesis import GROUPS, grouped, nemesis
from strandline.histories.setting import HistorySetting
from strandline.ids import TopicPartition
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS

BACK_WITHIN_S = 2.0
"""From when another coordinator has read the log, with no other fault."""
KILLS = 5
MOVED_WITHIN_S = 45.0


@nemesis("coordinator killed", grouped, weight=3, family=GROUPS)
async def coordinator_killed(context: NemesisContext) -> None:
    """kill -9 of the group's coordinator: another one reads the log, nothing is lost, and the members are back in a
    moment."""
    await context.settled()
    coordinator = context.coordinator()
    with context.no_noise():
        killed = context.faults.kill(coordinator)
        if killed and await context.another_coordinator(coordinator):
            await context.members_back(BACK_WITHIN_S)
    await context.wait(0.0, 2.0)
    context.start(coordinator)
    await context.whole()


@nemesis("coordinators killed in a row", grouped, family=GROUPS)
async def killed_in_a_row(context: NemesisContext) -> None:
    """The coordinator dies, and the next, and the next; each comes back while the next one is about to go."""
    for _ in range(KILLS):
        coordinator = context.coordinator()
        context.faults.dies(coordinator, power=context.chance.random() < 0.3)
        await context.wait(0.1, 1.5)
        context.start(coordinator)
        await context.until(lambda before=coordinator: context.coordinator() != before)  # type: ignore[misc]
        await context.wait(0.0, 1.5)
    await context.whole()
    await context.settled()


@nemesis("coordinator paused", grouped, family=GROUPS)
async def coordinator_paused(context: NemesisContext) -> None:
    """A coordinator stands still until another one serves, and wakes up believing in itself: it acknowledges
    nothing."""
    await context.settled()
    coordinator = context.coordinator()
    if context.faults.pause(coordinator):
        await context.another_coordinator(coordinator)
        await context.wait(0.0, 1.5 * context.group.plan.session_s)
    context.cluster.resume(coordinator)
    await context.settled()


@nemesis("coordinator cut off", grouped, family=GROUPS)
async def coordinator_cut_off(context: NemesisContext) -> None:
    """A coordinator is alone with the group's members: what it can't commit it does not acknowledge, and they find
    another."""
    await context.settled()
    coordinator = context.coordinator()
    if context.faults.split([coordinator], context.others(context.nodes, coordinator)):
        await context.another_coordinator(coordinator)
    await context.wait(0.0, 3.0)
    context.heal_network()
    await context.whole()
    await context.settled()


@nemesis("coordinator stopped", grouped, family=GROUPS)
async def coordinator_stopped(context: NemesisContext) -> None:
    """SIGTERM of the coordinator: it hands over, and the members go on with the next."""
    for _ in range(2):
        coordinator = context.coordinator()
        await context.faults.stop(coordinator)
        await context.wait(0.0, 2.0)
        context.start(coordinator)
        await context.whole()


@nemesis("coordinator moves", grouped, weight=2, family=GROUPS)
async def coordinator_moves(context: NemesisContext) -> None:
    """The group's partition is moved, or another of its replicas preferred and elected, while members commit and
    die."""
    for _ in range(2):
        state, key = context.coordinator_state(), context.groups.offsets_key
        if state is None or key is None:
            return
        brokers = context.chance.sample(context.brokers, len(state.replicas))
        where = (CONSUMER_OFFSETS, key[1])
        if context.faults.inject("reassignment", f"{where} to {brokers}", lambda: None):
            await context.operate(lambda admin: _move(admin, where, brokers))  # noqa: B023
        await context.until(lambda: _is_moved(context), MOVED_WITHIN_S)
        if context.faults.inject("election on request", "preferred", lambda: None):
            await context.operate(lambda admin: admin.elect_leaders(ElectionType.PREFERRED, timeout_ms=OPERATION_MS))
        member = context.chance.choice(context.group.members)
        if context.either():
            context.faults.kill_member(member)
        await context.wait(0.5, 3.0)
        member.start()
    await context.settled()


async def _move(admin: Admin, where: TopicPartition, brokers: list[int]) -> None:
    await admin.alter_partition_reassignments({where: brokers}, timeout_ms=OPERATION_MS)


def _is_moved(context: NemesisContext) -> bool:
    state = context.coordinator_state()
    return state is not None and not state.adding_replicas and not state.removing_replicas


def _apart(setting: HistorySetting) -> bool:
    return grouped(setting) and not setting.shape.is_combined


@nemesis("offsets below min ISR", _apart, family=GROUPS)
async def below_min_isr(context: NemesisContext) -> None:
    """The coordinator is alone in sync for a while: commits are refused and not done, and taken again once another
    is back."""
    state = context.coordinator_state()
    if state is None:
        return
    coordinator = context.coordinator()
    followers = context.others(state.replicas, coordinator)
    context.faults.kill(*followers)

    def is_alone() -> bool:
        now = context.coordinator_state()
        return now is not None and len(now.isr) == 1

    await context.until(is_alone)
    await context.wait(1.0, 1.2 * context.group.plan.session_s)
    context.start(*followers)
    await context.whole()
    await context.settled()


@nemesis("offsets that are not committed yet", _apart, weight=2, family=GROUPS)
async def uncommitted_offsets(context: NemesisContext) -> None:
    """The coordinator's followers do not hear it for a moment, while members commit and others ask: no answer has an
    offset that the next coordinator may not know."""
    await context.settled()
    for _ in range(3):
        state, coordinator = context.coordinator_state(), context.coordinator()
        if state is None:
            return
        for follower in context.others(state.replicas, coordinator):
            context.faults.cut_one_way(coordinator, follower)
        with context.haste():
            await context.wait(0.4, min(2.0, 0.6 * context.timers.lag_s))
        if context.either():
            context.faults.kill(coordinator)
            context.start(coordinator)
        context.heal_network()
        await context.wait(0.2, 1.0)
    await context.whole()
    await context.settled()
