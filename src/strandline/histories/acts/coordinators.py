"""Coordinators of the group that die, stand still, hand over or can't write, under members that commit."""

from __future__ import annotations

from strandline.client.aio import Admin
from strandline.client.flow.described import ElectionType
from strandline.histories.acts.act import GROUPS, act, grouped
from strandline.histories.acts.scene import OPERATION_MS, Scene
from strandline.histories.setting import Setting
from strandline.ids import TopicPartition
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS

BACK_WITHIN_S = 2.0
"""From when another coordinator has read the log, with nothing else harmed."""
KILLS = 5
MOVED_WITHIN_S = 45.0


@act("coordinator killed", grouped, weight=3, family=GROUPS)
async def coordinator_killed(scene: Scene) -> None:
    """kill -9 of the group's coordinator: another one reads the log, nothing is lost, and the members are back in a moment."""
    await scene.settled()
    coordinator = scene.coordinator()
    with scene.no_noise():
        killed = scene.faults.kill(coordinator)
        if killed and await scene.another_coordinator(coordinator):
            await scene.members_back(BACK_WITHIN_S)
    await scene.wait(0.0, 2.0)
    scene.start(coordinator)
    await scene.whole()


@act("coordinators killed in a row", grouped, family=GROUPS)
async def killed_in_a_row(scene: Scene) -> None:
    """The coordinator dies, and the next, and the next; each comes back while the next one is about to go."""
    for _ in range(KILLS):
        coordinator = scene.coordinator()
        scene.faults.dies(coordinator, power=scene.chance.random() < 0.3)
        await scene.wait(0.1, 1.5)
        scene.start(coordinator)
        await scene.until(lambda before=coordinator: scene.coordinator() != before)  # type: ignore[misc]
        await scene.wait(0.0, 1.5)
    await scene.whole()
    await scene.settled()


@act("coordinator paused", grouped, family=GROUPS)
async def coordinator_paused(scene: Scene) -> None:
    """A coordinator stands still until another one serves, and wakes up believing in itself: it acknowledges nothing."""
    await scene.settled()
    coordinator = scene.coordinator()
    if scene.faults.pause(coordinator):
        await scene.another_coordinator(coordinator)
        await scene.wait(0.0, 1.5 * scene.group.plan.session_s)
    scene.cluster.resume(coordinator)
    await scene.settled()


@act("coordinator cut off", grouped, family=GROUPS)
async def coordinator_cut_off(scene: Scene) -> None:
    """A coordinator is alone with the group's members: what it can't commit it does not acknowledge, and they find another."""
    await scene.settled()
    coordinator = scene.coordinator()
    if scene.faults.split([coordinator], scene.others(scene.nodes, coordinator)):
        await scene.another_coordinator(coordinator)
    await scene.wait(0.0, 3.0)
    scene.heal_network()
    await scene.whole()
    await scene.settled()


@act("coordinator stopped", grouped, family=GROUPS)
async def coordinator_stopped(scene: Scene) -> None:
    """SIGTERM of the coordinator: it hands over, and the members go on with the next."""
    for _ in range(2):
        coordinator = scene.coordinator()
        await scene.faults.stop(coordinator)
        await scene.wait(0.0, 2.0)
        scene.start(coordinator)
        await scene.whole()


@act("coordinator moves", grouped, weight=2, family=GROUPS)
async def coordinator_moves(scene: Scene) -> None:
    """The group's partition is moved, or another of its replicas preferred and elected, while members commit and die."""
    for _ in range(2):
        state, key = scene.coordinator_state(), scene.groups.offsets_key
        if state is None or key is None:
            return
        brokers = scene.chance.sample(scene.brokers, len(state.replicas))
        where = (CONSUMER_OFFSETS, key[1])
        if scene.faults.inject("reassignment", f"{where} to {brokers}", lambda: None):
            await scene.operate(lambda admin: _move(admin, where, brokers))  # noqa: B023
        await scene.until(lambda: _is_moved(scene), MOVED_WITHIN_S)
        if scene.faults.inject("election on request", "preferred", lambda: None):
            await scene.operate(lambda admin: admin.elect_leaders(ElectionType.PREFERRED, timeout_ms=OPERATION_MS))
        member = scene.chance.choice(scene.group.members)
        if scene.either():
            scene.faults.kill_member(member)
        await scene.wait(0.5, 3.0)
        member.start()
    await scene.settled()


async def _move(admin: Admin, where: TopicPartition, brokers: list[int]) -> None:
    await admin.alter_partition_reassignments({where: brokers}, timeout_ms=OPERATION_MS)


def _is_moved(scene: Scene) -> bool:
    state = scene.coordinator_state()
    return state is not None and not state.adding_replicas and not state.removing_replicas


def _apart(setting: Setting) -> bool:
    return grouped(setting) and not setting.shape.is_combined


@act("offsets below min ISR", _apart, family=GROUPS)
async def below_min_isr(scene: Scene) -> None:
    """The coordinator is alone in sync for a while: commits are refused and not done, and taken again once another is back."""
    state = scene.coordinator_state()
    if state is None:
        return
    coordinator = scene.coordinator()
    followers = scene.others(state.replicas, coordinator)
    scene.faults.kill(*followers)

    def is_alone() -> bool:
        now = scene.coordinator_state()
        return now is not None and len(now.isr) == 1

    await scene.until(is_alone)
    await scene.wait(1.0, 1.2 * scene.group.plan.session_s)
    scene.start(*followers)
    await scene.whole()
    await scene.settled()


@act("offsets that are not committed yet", _apart, weight=2, family=GROUPS)
async def uncommitted_offsets(scene: Scene) -> None:
    """The coordinator's followers do not hear it for a moment, while members commit and others ask: nobody is told an offset that
    the next coordinator may not know."""
    await scene.settled()
    for _ in range(3):
        state, coordinator = scene.coordinator_state(), scene.coordinator()
        if state is None:
            return
        for follower in scene.others(state.replicas, coordinator):
            scene.faults.cut_one_way(coordinator, follower)
        with scene.haste():
            await scene.wait(0.4, min(2.0, 0.6 * scene.timers.lag_s))
        if scene.either():
            scene.faults.kill(coordinator)
            scene.start(coordinator)
        scene.heal_network()
        await scene.wait(0.2, 1.0)
    await scene.whole()
    await scene.settled()
