"""Bits that flip at rest: in a closed segment, its index, the epoch file, a snapshot. Found, never served, repaired."""

from __future__ import annotations

from strandline.histories.acts.act import act, durable
from strandline.histories.acts.scene import Scene
from strandline.histories.faults import DATA, EPOCHS, INDEX, SNAPSHOT, VOTE
from strandline.histories.member import METADATA_DIR, QUORUM_STATE
from strandline.histories.setting import Setting
from strandline.log.checkpoints import LEADER_EPOCH_CHECKPOINT
from strandline.node.observation.logs import ObservedLog

BITS = 4
REPAIRED_WITHIN_S = 100.0
"""The scrubber comes by once a minute."""


def has_closed_segments(setting: Setting) -> bool:
    return durable(setting) and any(topic.segment_bytes <= 8_192 for topic in setting.topics)


async def _closed(scene: Scene) -> tuple[int, int, ObservedLog] | None:
    """A partition and one of its replicas, with a closed segment that all replicas have and know to be committed."""
    number = scene.any_partition()
    key = scene.convergence.key(number)

    def logs() -> dict[int, ObservedLog]:
        found = {broker: scene.replicas.log(broker, key) for broker in scene.state(number).replicas}
        return {broker: log for broker, log in found.items() if log is not None}

    def is_closed() -> bool:
        replicas = [scene.replicas.replicas.get((broker, key)) for broker in scene.state(number).replicas]
        watermark = min((0 if r is None else r.high_watermark for r in replicas), default=0)
        found = logs()
        return (
            scene.convergence.is_in_sync()
            and len(found) == len(replicas)
            and all(len(log.segments) > 1 and log.segments[0].next_offset <= watermark for log in found.values())
        )

    with scene.haste():
        if not await scene.until(is_closed, 30.0):
            return None
    # Mostly the leader: whoever reads from the beginning meets it. At a follower only the scrubber does.
    victim = scene.leader(number) if scene.chance.random() < 0.8 else scene.chance.choice(scene.followers(number))
    log = logs().get(victim)
    return None if log is None else (number, victim, log)


@act("a bit flips in a closed segment", has_closed_segments, weight=2)
async def data_rots(scene: Scene) -> None:
    """Whoever reads there gets the records all the same, a little later, from a replica that is sound."""
    found = await _closed(scene)
    if found is None:
        return
    number, victim, log = found
    path = log.segments[0].file.path
    disk = scene.cluster.members[victim].machine.disk
    before = disk.peek(path)
    _flip(scene, victim, DATA, [path])
    await scene.read_from_start(number)
    await scene.until(lambda: disk.peek(path) == before, REPAIRED_WITHIN_S)


@act("a bit flips in an index", has_closed_segments)
async def index_rots(scene: Scene) -> None:
    """Reads find their way without it, and it is made anew at the next start."""
    found = await _closed(scene)
    if found is None:
        return
    number, victim, log = found
    disk = scene.cluster.members[victim].machine.disk
    stem = log.segments[0].file.path.removesuffix(".log")
    indexes = [path for path in (f"{stem}.index", f"{stem}.timeindex") if disk.peek(path)]
    _flip(scene, victim, INDEX, indexes)
    await scene.read_from_start(number)
    await _restart(scene, victim)
    await scene.read_from_start(number)


@act("a bit flips in the epoch file", has_closed_segments)
async def epochs_rot(scene: Scene) -> None:
    """At the next start it does not say what the batches say, and they are right."""
    number = scene.any_partition()
    victim = scene.chance.choice(scene.state(number).replicas)
    key = scene.convergence.key(number)

    def has_records() -> bool:
        log = scene.replicas.log(victim, key)
        return log is not None and log.log_end_offset > 0

    with scene.haste():
        await scene.until(has_records)
    log = scene.replicas.log(victim, key)
    await scene.faults.stop(victim)  # with the file written
    _flip(scene, victim, EPOCHS, [] if log is None else [f"{log.directory}/{LEADER_EPOCH_CHECKPOINT}"])
    scene.start(victim)
    await scene.written()
    await scene.whole()


def takes_snapshots(setting: Setting) -> bool:
    return durable(setting) and setting.snapshots_often and not setting.shape.is_dynamic


@act("a bit flips in a snapshot", takes_snapshots, weight=2)
async def snapshot_rots(scene: Scene) -> None:
    """A node that is about to start finds its newest snapshot rotten: it takes an older one, or says that it has none and must be
    emptied, as an operator then does."""
    victim = scene.chance.choice(scene.others(scene.nodes, scene.controller()))
    member = scene.cluster.members[victim]
    await scene.until(member.snapshots)
    scene.faults.kill(victim)
    disk = member.machine.disk
    names = [name for name in disk.peek_names(METADATA_DIR) if name.endswith(".checkpoint")]
    member.may_fail = _flip(scene, victim, SNAPSHOT, [f"{METADATA_DIR}/{name}" for name in names[-1:]])
    scene.start(victim)
    await scene.until(lambda: member.is_started or not member.is_up)
    member.may_fail = False
    if not member.is_up:
        scene.faults.lose_disk(victim)
        scene.start(victim)
    await scene.caught_up(victim)


def _loses_a_voter(setting: Setting) -> bool:
    return durable(setting) and setting.voters >= 3 and not setting.shape.is_dynamic


@act("a bit flips in quorum-state", _loses_a_voter, weight=2)
async def vote_rots(scene: Scene) -> None:
    """A voter that is about to start finds its vote rotten: it says so and does not start, and an operator empties its disk."""
    for _ in range(2):
        victim = scene.chance.choice(scene.others(scene.voters, scene.controller()))
        member = scene.cluster.members[victim]
        scene.faults.kill(victim)
        size = len(member.machine.disk.peek(QUORUM_STATE) or b"")
        position, bit = scene.chance.randrange(max(1, size)), scene.chance.randrange(8)
        possible = size > 0 and not member.is_up  # else its death was left out, and what follows has to be
        member.may_fail = scene.faults.flip_bit(victim, VOTE, QUORUM_STATE, position, bit, possible=possible)
        if member.may_fail:
            member.vote_rotted()
        scene.start(victim)
        await scene.until(lambda member=member: member.is_started or not member.is_up, 10.0)  # type: ignore[misc]
        member.may_fail = False
        if not member.is_up:
            scene.faults.lose_disk(victim)
            scene.start(victim)
        await scene.caught_up(victim)
        await scene.whole()


def _flip(scene: Scene, victim: int, what: str, paths: list[str]) -> bool:
    """A few bits in any of these files; whether any was flipped."""
    disk = scene.cluster.members[victim].machine.disk
    paths = [path for path in paths if disk.peek(path)]
    flipped = False
    for _ in range(BITS if paths else 0):
        path = scene.chance.choice(paths)
        position, bit = scene.chance.randrange(disk.size(path)), scene.chance.randrange(8)
        flipped |= scene.faults.flip_bit(victim, what, path, position, bit)
    return flipped


async def _restart(scene: Scene, victim: int) -> None:
    scene.faults.kill(victim)
    await scene.wait(0.0, 0.5)
    scene.start(victim)
    await scene.whole()
