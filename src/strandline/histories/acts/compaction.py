"""Cleaning of the compacted topic that is cut short, has no room, or leaves a follower behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.histories.acts.act import COMPACTION, act, compacting
from strandline.histories.acts.scene import Scene
from strandline.histories.compaction.plan import COMPACTED
from strandline.histories.coverage import COMPACTION as CLEANING
from strandline.histories.faults import DISK_FAULTS
from strandline.metadata.image import PartitionImage

CLEANING_WITHIN_S = 15.0
FINISHED = (CLEANING, "cleaning finished")


def _state(scene: Scene) -> PartitionImage:
    return scene.replicas.image.topics[COMPACTED].partitions[0]


@contextmanager
def _haste(scene: Scene) -> Iterator[None]:
    """Meanwhile more is written to the compacted topic."""
    keyed = scene.load.keyed
    assert keyed is not None, "an act about compaction fits a setting that has a compacted topic"
    keyed.is_hasty = True
    try:
        yield
    finally:
        keyed.is_hasty = False


async def _one_that_cleans(scene: Scene) -> int:
    """A broker that is just cleaning a log; any if none begins in a while."""
    members = scene.cluster.members
    with _haste(scene):
        await scene.until(lambda: any(members[i].is_cleaning for i in scene.brokers), CLEANING_WITHIN_S)
    cleaning = [i for i in scene.brokers if members[i].is_cleaning]
    return scene.chance.choice(cleaning or scene.brokers)


async def _cleaned(scene: Scene, times: int) -> None:
    """So many cleanings more are done."""
    coverage = scene.replicas.coverage
    target = coverage[FINISHED] + times
    with _haste(scene):
        await scene.until(lambda: coverage[FINISHED] >= target, 2 * CLEANING_WITHIN_S)


@act("killed while cleaning", compacting, weight=3, family=COMPACTION)
async def killed_while_cleaning(scene: Scene) -> None:
    """A broker dies in the middle of a cleaning, with its power or without: a segment is all old or all new."""
    for _ in range(2):
        victim = await _one_that_cleans(scene)
        await scene.wait(0.0, scene.chance.choice((0.0, 0.05, 0.3)))
        scene.faults.dies(victim, power=scene.either())
        await scene.wait(0.05, 1.0)
        scene.start(victim)
        await scene.whole()


@act("killed while segments are swapped", compacting, weight=2, family=COMPACTION)
async def killed_while_swapping(scene: Scene) -> None:
    """Cleaned segments take the place of others by one rename after the other, and the broker dies between two of them."""
    for _ in range(2):
        victim = await _one_that_cleans(scene)
        disk = scene.cluster.members[victim].machine.disk
        log = scene.replicas.log(victim, (scene.replicas.image.topics[COMPACTED].topic_id, 0))
        usual = disk.thread_probability, disk.overtake_probability, disk.offload_s
        disk.thread_probability, disk.overtake_probability, disk.offload_s = 1.0, 0.7, (0.02, 0.2)
        directory = "" if log is None else log.directory
        with _haste(scene):
            await scene.until_soon(
                lambda: any(name.endswith(".swap") for name in disk.peek_names(directory)),  # noqa: B023
                CLEANING_WITHIN_S,
            )
        scene.faults.dies(victim, power=scene.either())
        disk.thread_probability, disk.overtake_probability, disk.offload_s = usual
        await scene.wait(0.05, 1.0)
        scene.start(victim)
        await scene.whole()


@act("cleaning above what is committed", compacting, weight=2, family=COMPACTION)
async def above_what_is_committed(scene: Scene) -> None:
    """A follower does not fetch, so that the high watermark stands still while segments are closed behind it and cleaned: none of
    them gives way to what may be cut. Then another one leads."""
    state = _state(scene)
    leader = state.leader
    for follower in scene.others(state.replicas, leader):
        scene.faults.cut_one_way(leader, follower)
    with _haste(scene):
        await scene.wait(0.8 * scene.timers.lag_s, 1.2 * scene.timers.lag_s + 4.0)
    if scene.either():
        scene.faults.kill(leader)
    scene.heal_network()
    await scene.wait(0.0, 1.0)
    scene.start(leader)
    await scene.whole()


@act("a disk fails while cleaning", compacting, weight=2, family=COMPACTION)
async def disk_fails_while_cleaning(scene: Scene) -> None:
    """What a cleaning writes finds no room, or can't be written or synced: the log stays as it was, and is cleaned later."""
    victim = await _one_that_cleans(scene)
    for fault in scene.chance.sample(DISK_FAULTS, 2):
        scene.faults.break_disk(victim, "/", fault)
    await scene.wait(0.5, 4.0)
    scene.cluster.reboot_repaired(victim)
    await scene.whole()
    await _cleaned(scene, 1)


@act("a follower behind a cleaned leader", compacting, weight=2, family=COMPACTION)
async def behind_a_cleaned_leader(scene: Scene) -> None:
    """A follower comes back to a log with gaps, which it takes over as it is; then it leads itself."""
    state = _state(scene)
    follower = scene.chance.choice(scene.others(state.replicas, state.leader))
    scene.faults.kill(follower)
    await _cleaned(scene, scene.chance.randint(1, 4))
    scene.start(follower)
    await scene.whole()
    leader = _state(scene).leader
    scene.faults.kill(leader)
    await scene.until(lambda: _state(scene).leader not in (-1, leader))
    scene.start(leader)
    await scene.whole()


@act("leaders change while cleaning", compacting, family=COMPACTION)
async def leaders_change(scene: Scene) -> None:
    """A broker stands still in the middle of a cleaning until others lead: what is cut of its log was not cleaned."""
    for _ in range(2):
        victim = await _one_that_cleans(scene)
        if scene.faults.pause(victim):
            await scene.wait(0.5, 1.5 * scene.timers.session_s)
        scene.cluster.resume(victim)
        await scene.wait(0.0, 2.0)
    await scene.whole()
