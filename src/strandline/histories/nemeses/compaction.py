"""Cleaning of the compacted topic that is cut short, has no room, or leaves a follower behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.histories.compaction.plan import COMPACTED
from strandline.histories.coverage import COMPACTION as CLEANING
from strandline.histories.fault_injector import DISK_FAULTS
from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import COMPACTION, compacting, nemesis
from strandline.metadata.image import PartitionImage

CLEANING_WITHIN_S = 15.0
FINISHED = (CLEANING, "cleaning finished")


def _state(context: NemesisContext) -> PartitionImage:
    return context.replicas.image.topics[COMPACTED].partitions[0]


@contextmanager
def _haste(context: NemesisContext) -> Iterator[None]:
    """Meanwhile more is written to the compacted topic."""
    keyed = context.load.keyed
    assert keyed is not None, "a nemesis about compaction fits a setting that has a compacted topic"
    keyed.is_hasty = True
    try:
        yield
    finally:
        keyed.is_hasty = False


async def _one_that_cleans(context: NemesisContext) -> int:
    """A broker that is just cleaning a log; any if none begins in a while."""
    members = context.cluster.members
    with _haste(context):
        await context.until(lambda: any(members[i].is_cleaning for i in context.brokers), CLEANING_WITHIN_S)
    cleaning = [i for i in context.brokers if members[i].is_cleaning]
    return context.chance.choice(cleaning or context.brokers)


async def _cleaned(context: NemesisContext, times: int) -> None:
    """So many cleanings more are done."""
    coverage = context.replicas.coverage
    target = coverage[FINISHED] + times
    with _haste(context):
        await context.until(lambda: coverage[FINISHED] >= target, 2 * CLEANING_WITHIN_S)


@nemesis("killed while cleaning", compacting, weight=3, family=COMPACTION)
async def killed_while_cleaning(context: NemesisContext) -> None:
    """A broker dies in the middle of a cleaning, with its power or without: a segment is all old or all new."""
    for _ in range(2):
        victim = await _one_that_cleans(context)
        await context.wait(0.0, context.chance.choice((0.0, 0.05, 0.3)))
        context.faults.dies(victim, power=context.either())
        await context.wait(0.05, 1.0)
        context.start(victim)
        await context.whole()


@nemesis("killed while segments are swapped", compacting, weight=2, family=COMPACTION)
async def killed_while_swapping(context: NemesisContext) -> None:
    """Cleaned segments take the place of others by one rename after the other, and the broker dies between two of
    them."""
    for _ in range(2):
        victim = await _one_that_cleans(context)
        disk = context.cluster.members[victim].machine.disk
        log = context.replicas.log(victim, (context.replicas.image.topics[COMPACTED].topic_id, 0))
        usual = disk.thread_probability, disk.overtake_probability, disk.offload_s
        disk.thread_probability, disk.overtake_probability, disk.offload_s = 1.0, 0.7, (0.02, 0.2)
        directory = "" if log is None else log.directory
        with _haste(context):
            await context.until_soon(
                lambda: any(name.endswith(".swap") for name in disk.peek_names(directory)),  # noqa: B023
                CLEANING_WITHIN_S,
            )
        context.faults.dies(victim, power=context.either())
        disk.thread_probability, disk.overtake_probability, disk.offload_s = usual
        await context.wait(0.05, 1.0)
        context.start(victim)
        await context.whole()


@nemesis("cleaning above what is committed", compacting, weight=2, family=COMPACTION)
async def above_what_is_committed(context: NemesisContext) -> None:
    """A follower does not fetch, so that the high watermark stands still while segments are closed behind it and
    cleaned: none of them gives way to what may be cut. Then another one leads."""
    state = _state(context)
    leader = state.leader
    for follower in context.others(state.replicas, leader):
        context.faults.cut_one_way(leader, follower)
    with _haste(context):
        await context.wait(0.8 * context.timers.lag_s, 1.2 * context.timers.lag_s + 4.0)
    if context.either():
        context.faults.kill(leader)
    context.heal_network()
    await context.wait(0.0, 1.0)
    context.start(leader)
    await context.whole()


@nemesis("a disk fails while cleaning", compacting, weight=2, family=COMPACTION)
async def disk_fails_while_cleaning(context: NemesisContext) -> None:
    """What a cleaning writes finds no room, or can't be written or synced: the log stays as it was, and is cleaned
    later."""
    victim = await _one_that_cleans(context)
    for fault in context.chance.sample(DISK_FAULTS, 2):
        context.faults.break_disk(victim, "/", fault)
    await context.wait(0.5, 4.0)
    context.cluster.reboot_repaired(victim)
    await context.whole()
    await _cleaned(context, 1)


@nemesis("a follower behind a cleaned leader", compacting, weight=2, family=COMPACTION)
async def behind_a_cleaned_leader(context: NemesisContext) -> None:
    """A follower comes back to a log with gaps, which it takes over as it is; then it leads itself."""
    state = _state(context)
    follower = context.chance.choice(context.others(state.replicas, state.leader))
    context.faults.kill(follower)
    await _cleaned(context, context.chance.randint(1, 4))
    context.start(follower)
    await context.whole()
    leader = _state(context).leader
    context.faults.kill(leader)
    await context.until(lambda: _state(context).leader not in (-1, leader))
    context.start(leader)
    await context.whole()


@nemesis("leaders change while cleaning", compacting, family=COMPACTION)
async def leaders_change(context: NemesisContext) -> None:
    """A broker stands still in the middle of a cleaning until others lead: what is cut of its log was not cleaned."""
    for _ in range(2):
        victim = await _one_that_cleans(context)
        if context.faults.pause(victim):
            await context.wait(0.5, 1.5 * context.timers.session_s)
        context.cluster.resume(victim)
        await context.wait(0.0, 2.0)
    await context.whole()
