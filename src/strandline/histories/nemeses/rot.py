"""Bits that flip at rest: in a closed segment, its index, the epoch file, a snapshot. Found, never served, repaired."""

from __future__ import annotations

from strandline.histories.fault_injector import DATA, EPOCHS, INDEX, SNAPSHOT, VOTE
from strandline.histories.member import METADATA_DIR, QUORUM_STATE
from strandline.histories.nemeses.context import NemesisContext
from strandline.histories.nemeses.nemesis import durable, nemesis
from strandline.histories.setting import HistorySetting
from strandline.log.checkpoints import LEADER_EPOCH_CHECKPOINT
from strandline.node.observation.logs import ObservedLog

BITS = 4
REPAIRED_WITHIN_S = 100.0
"""The scrubber comes by once a minute."""


def has_closed_segments(setting: HistorySetting) -> bool:
    return durable(setting) and any(topic.segment_bytes <= 8_192 for topic in setting.topics)


async def _closed(context: NemesisContext) -> tuple[int, int, ObservedLog] | None:
    """A partition and one of its replicas, with a closed segment that all replicas have and know to be committed."""
    number = context.any_partition()
    key = context.convergence.key(number)

    def logs() -> dict[int, ObservedLog]:
        found = {broker: context.replicas.log(broker, key) for broker in context.state(number).replicas}
        return {broker: log for broker, log in found.items() if log is not None}

    def is_closed() -> bool:
        replicas = [context.replicas.replicas.get((broker, key)) for broker in context.state(number).replicas]
        watermark = min((0 if r is None else r.high_watermark for r in replicas), default=0)
        found = logs()
        return (
            context.convergence.is_in_sync()
            and len(found) == len(replicas)
            and all(len(log.segments) > 1 and log.segments[0].next_offset <= watermark for log in found.values())
        )

    with context.haste():
        if not await context.until(is_closed, 30.0):
            return None
    # Mostly the leader: a read from the beginning meets it. At a follower only the scrubber does.
    victim = (
        context.leader(number) if context.chance.random() < 0.8 else context.chance.choice(context.followers(number))
    )
    log = logs().get(victim)
    return None if log is None else (number, victim, log)


@nemesis("a bit flips in a closed segment", has_closed_segments, weight=2)
async def data_rots(context: NemesisContext) -> None:
    """A read there gets the records all the same, a little later, from a replica that is sound."""
    found = await _closed(context)
    if found is None:
        return
    number, victim, log = found
    path = log.segments[0].file.path
    disk = context.cluster.members[victim].machine.disk
    before = disk.peek(path)
    _flip(context, victim, DATA, [path])
    await context.read_from_start(number)
    await context.until(lambda: disk.peek(path) == before, REPAIRED_WITHIN_S)


@nemesis("a bit flips in an index", has_closed_segments)
async def index_rots(context: NemesisContext) -> None:
    """Reads find their way without it, and it is made anew at the next start."""
    found = await _closed(context)
    if found is None:
        return
    number, victim, log = found
    disk = context.cluster.members[victim].machine.disk
    stem = log.segments[0].file.path.removesuffix(".log")
    indexes = [path for path in (f"{stem}.index", f"{stem}.timeindex") if disk.peek(path)]
    _flip(context, victim, INDEX, indexes)
    await context.read_from_start(number)
    await _restart(context, victim)
    await context.read_from_start(number)


@nemesis("a bit flips in the epoch file", has_closed_segments)
async def epochs_rot(context: NemesisContext) -> None:
    """At the next start it does not say what the batches say, and they are right."""
    number = context.any_partition()
    victim = context.chance.choice(context.state(number).replicas)
    key = context.convergence.key(number)

    def has_records() -> bool:
        log = context.replicas.log(victim, key)
        return log is not None and log.log_end_offset > 0

    with context.haste():
        await context.until(has_records)
    log = context.replicas.log(victim, key)
    await context.faults.stop(victim)  # with the file written
    _flip(context, victim, EPOCHS, [] if log is None else [f"{log.directory}/{LEADER_EPOCH_CHECKPOINT}"])
    context.start(victim)
    await context.written()
    await context.whole()


def takes_snapshots(setting: HistorySetting) -> bool:
    return durable(setting) and setting.snapshots_often and not setting.shape.is_dynamic


@nemesis("a bit flips in a snapshot", takes_snapshots, weight=2)
async def snapshot_rots(context: NemesisContext) -> None:
    """A node that is about to start finds its newest snapshot rotten: it takes an older one, or says that it has
    none and must be emptied, as an operator then does."""
    victim = context.chance.choice(context.others(context.nodes, context.controller()))
    member = context.cluster.members[victim]
    await context.until(member.snapshots)
    context.faults.kill(victim)
    disk = member.machine.disk
    names = [name for name in disk.peek_names(METADATA_DIR) if name.endswith(".checkpoint")]
    member.may_fail = _flip(context, victim, SNAPSHOT, [f"{METADATA_DIR}/{name}" for name in names[-1:]])
    context.start(victim)
    await context.until(lambda: member.is_started or not member.is_up)
    member.may_fail = False
    if not member.is_up:
        context.faults.lose_disk(victim)
        context.start(victim)
    await context.caught_up(victim)


def _loses_a_voter(setting: HistorySetting) -> bool:
    return durable(setting) and setting.voters >= 3 and not setting.shape.is_dynamic


@nemesis("a bit flips in quorum-state", _loses_a_voter, weight=2)
async def vote_rots(context: NemesisContext) -> None:
    """A voter that is about to start finds its vote rotten: it says so and does not start, and an operator empties
    its disk."""
    for _ in range(2):
        victim = context.chance.choice(context.others(context.voters, context.controller()))
        member = context.cluster.members[victim]
        context.faults.kill(victim)
        size = len(member.machine.disk.peek(QUORUM_STATE) or b"")
        position, bit = context.chance.randrange(max(1, size)), context.chance.randrange(8)
        possible = size > 0 and not member.is_up  # else its death was left out, and what follows has to be
        member.may_fail = context.faults.flip_bit(victim, VOTE, QUORUM_STATE, position, bit, possible=possible)
        if member.may_fail:
            member.vote_rotted()
        context.start(victim)
        await context.until(lambda member=member: member.is_started or not member.is_up, 10.0)  # type: ignore[misc]
        member.may_fail = False
        if not member.is_up:
            context.faults.lose_disk(victim)
            context.start(victim)
        await context.caught_up(victim)
        await context.whole()


def _flip(context: NemesisContext, victim: int, what: str, paths: list[str]) -> bool:
    """A few bits in any of these files; whether any was flipped."""
    disk = context.cluster.members[victim].machine.disk
    paths = [path for path in paths if disk.peek(path)]
    flipped = False
    for _ in range(BITS if paths else 0):
        path = context.chance.choice(paths)
        position, bit = context.chance.randrange(disk.size(path)), context.chance.randrange(8)
        flipped |= context.faults.flip_bit(victim, what, path, position, bit)
    return flipped


async def _restart(context: NemesisContext, victim: int) -> None:
    context.faults.kill(victim)
    await context.wait(0.0, 0.5)
    context.start(victim)
    await context.whole()
