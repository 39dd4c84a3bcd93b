"""What the checkers see of the replicas: each partition on each node as it last was, and what is committed of it.

Always true: looking changes nothing and draws no chance; `committed` is what some replica has had below its high watermark, batch
by batch, and is cut only by an unclean election, to what the replica that was elected has of it.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from strandline.histories.member import Member
from strandline.histories.sight import Batch, Sight, Violation
from strandline.histories.transcript import Transcript
from strandline.ids import Uuid
from strandline.log.log import Log
from strandline.metadata.image import MetadataImage, PartitionImage
from strandline.records.header import LOG_OVERHEAD
from strandline.replica.partition import Partition

Key = tuple[Uuid, int]
"""A partition: its topic's id and its number."""

RECOVERING = 1
_BATCH = struct.Struct(">qiixIxxi")
"""Of a batch header: base offset, length, leader epoch, CRC, last offset delta."""


class Loss(enum.Enum):
    """What of the committed records the faults of a scenario may take."""

    NOTHING = "nothing"
    UNSYNCED = "what is not on a device"
    ANYTHING = "what an unclean election takes"


class Replica(NamedTuple):
    """One replica at one instant."""

    life: int
    leader_epoch: int
    leads: bool
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    local_end: int
    isr: tuple[int, ...]
    """As its leader has it; empty if it does not lead. The same with `maximal`."""
    maximal: tuple[int, ...]
    is_pending: bool
    partition_epoch: int
    leader: int
    """As this node's metadata has it."""
    is_online: bool
    fetched_from: int | None


class Committed:
    """What is committed of one partition."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: dict[int, Batch] = {}
        """By base offset."""
        self.end_offset = 0
        self.era = 0
        """How often some of it was lost, and below in which leader epoch it last was."""
        self.lost_in_epoch = -1

    def cut(self, offset: int, leader_epoch: int) -> None:
        self.batches = {base: batch for base, batch in self.batches.items() if batch.last_offset < offset}
        self.end_offset = min(self.end_offset, offset)
        self.era += 1
        self.lost_in_epoch = leader_epoch


class ReplicaChecker:
    """One property of replicas. It raises Violation; what it does not override it does not care for."""

    def changed(self, sight: ReplicaSight, node_id: int, key: Key, before: Replica | None, after: Replica) -> None:
        """A replica is not as it was. `before` is None the first time in a life of its node."""

    def __repr__(self) -> str:
        return type(self).__name__


class ReplicaSight:
    def __init__(
        self, sight: Sight, members: dict[int, Member], checkers: Sequence[ReplicaChecker], transcript: Transcript
    ) -> None:
        self.replicas: dict[tuple[int, Key], Replica] = {}
        """As they last were, also on nodes that are down."""
        self.committed: dict[Key, Committed] = {}
        self.on_loss: Callable[[Key, int], None] = lambda key, offset: None
        """Committed records from this offset on are gone."""
        self._partitions: dict[tuple[int, Key], Partition] = {}
        """Of each node's newest life; a replica that left and came back is another one."""
        self._image = MetadataImage()
        self._members = members
        self._sight = sight
        self._checkers = checkers
        self._transcript = transcript
        self._cursors: dict[tuple[int, Key], tuple[object, int, int]] = {}

    # Looking

    def look(self, member: Member) -> None:
        """After a turn of this node."""
        server = getattr(member.node, "broker_server", None)
        if server is None or not server.is_hosting:
            return
        if server.replication is None:
            return
        leader_of = server.replication.fetchers.leader_of
        for partition in server.replicas.partitions.values():
            leadership, log = partition.leadership, partition.log
            isr = None if leadership is None else leadership.isr
            after = Replica(
                member.life,
                partition.leader_epoch,
                leadership is not None,
                partition.high_watermark,
                log.log_start_offset,
                log.log_end_offset,
                partition.local_end,
                () if isr is None else isr.isr,
                () if isr is None else isr.maximal,
                isr is not None and isr.pending is not None,
                partition.state.partition_epoch if isr is None else isr.partition_epoch,
                partition.state.leader,
                not partition.offline,
                leader_of(partition),
            )
            place = (member.id, (partition.topic_id, partition.index))
            before = self.replicas.get(place)
            if self._partitions.get(place) is not partition:
                self._partitions[place], before = partition, None
            if before != after:
                self.replicas[place] = after
                self._see(member.id, partition, before, after)

    def _see(self, node_id: int, partition: Partition, before: Replica | None, after: Replica) -> None:
        key = (partition.topic_id, partition.index)
        if key not in self.committed:
            self.committed[key] = Committed(str(partition))
        if before is None:
            self.forget_position(node_id, key)
        self._narrate(node_id, str(partition), before, after)
        for checker in self._checkers:
            try:
                checker.changed(self, node_id, key, before, after)
            except Violation as violation:
                text = f"{checker!r}: n{node_id}: {partition}: {violation}"
                self._transcript.note(f"n{node_id}", f"VIOLATES {text}")
                raise Violation(text) from violation

    def _narrate(self, node_id: int, name: str, before: Replica | None, after: Replica) -> None:
        who, note = f"n{node_id}", self._transcript.note
        if before is None:
            note(who, f"{name} {after.log_start_offset}-{after.log_end_offset}, watermark {after.high_watermark}")
        elif after.log_end_offset < before.log_end_offset:
            note(who, f"{name} is cut from {before.log_end_offset} to {after.log_end_offset}")
        if before is None or (before.leads, before.leader_epoch) != (after.leads, after.leader_epoch):
            role = "leads" if after.leads else f"follows {after.leader}"
            note(who, f"{role} {name}, epoch {after.leader_epoch}, log end {after.log_end_offset}")
        if after.leads and (before is None or before.isr != after.isr):
            note(who, f"{name} has the ISR {list(after.isr)}")
        if before is not None and before.is_online and not after.is_online:
            note(who, f"{name} is offline")

    # What is asked

    @property
    def image(self) -> MetadataImage:
        """The newest that any node has had."""
        for seen in self._sight.nodes.values():
            if seen.image.end_offset > self._image.end_offset:
                self._image = seen.image
        return self._image

    def state(self, key: Key) -> PartitionImage | None:
        topic = self.image.topics_by_id.get(key[0])
        return None if topic is None or len(topic.partitions) <= key[1] else topic.partitions[key[1]]

    def is_current(self, node_id: int) -> bool:
        """The node runs as the incarnation that the controller knows, and is not fenced."""
        member = self._members[node_id]
        broker = self.image.brokers.get(node_id)
        lifecycle = getattr(getattr(member.node, "broker_server", None), "lifecycle", None)
        return (
            member.is_up
            and broker is not None
            and not broker.fenced
            and lifecycle is not None
            and lifecycle.broker_epoch == broker.epoch
        )

    def log(self, node_id: int, key: Key) -> Log | None:
        server = getattr(self._members[node_id].node, "broker_server", None)
        partition = None if server is None else server.replicas.partitions_by_id.get(key)
        return None if partition is None else partition.log

    def batches(self, node_id: int, key: Key, offset: int, limit_offset: int) -> Iterator[Batch]:
        """Those that begin from `offset` on and below the limit, past the disk's faults and chances."""
        log = self.log(node_id, key)
        if log is None:
            return
        cursor = self._cursors.get((node_id, key))
        for segment in log.segments:
            if segment.next_offset <= offset or segment.base_offset >= limit_offset:
                continue
            inode, position = segment.file.inode, 0
            if cursor is not None and cursor[0] is inode and cursor[1] == offset and cursor[2] <= len(inode.data):
                position = cursor[2]
            for batch, end in walk(inode.data, position):
                if batch.base_offset >= limit_offset:
                    return
                self._cursors[node_id, key] = (inode, batch.last_offset + 1, end)
                if batch.base_offset >= offset:
                    yield batch

    def forget_position(self, node_id: int, key: Key) -> None:
        self._cursors.pop((node_id, key), None)

    def lose(self, key: Key, offset: int, leader_epoch: int) -> None:
        """An unclean election has taken what was committed from `offset` on."""
        committed = self.committed[key]
        self._transcript.note("world", f"{committed.name} loses {offset}-{committed.end_offset}")
        committed.cut(offset, leader_epoch)
        self.on_loss(key, offset)

    def lost_in_epoch(self, key: Key) -> int:
        return self.committed[key].lost_in_epoch

    def is_closing(self, node_id: int) -> bool:
        """Its fetchers have ended: it is about to stop."""
        server = getattr(self._members[node_id].node, "broker_server", None)
        return server is None or server.replication is None or server.replication.fetchers._is_closed


def walk(data: bytearray, position: int = 0) -> Iterator[tuple[Batch, int]]:
    """The batches of a segment, and where each ends."""
    while position + _BATCH.size <= len(data):
        base_offset, length, epoch, crc, delta = _BATCH.unpack_from(data, position)
        position += LOG_OVERHEAD + length
        yield Batch(base_offset, base_offset + delta, epoch, crc), position
