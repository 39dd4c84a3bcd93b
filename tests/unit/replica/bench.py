"""One partition on the workbench: its node is here, its log is in memory, and everything else is put in by hand.

Always true: nothing is flushed, fetched or answered unless the test says so; what the partition wants of its node is kept to be
looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log.log import Log
from strandline.log.recovery import load
from strandline.log.verification_guards import NOT_REQUIRED, VerificationGuard
from strandline.metadata.image import PartitionImage
from strandline.metadata.incarnations import Incarnation
from strandline.node.log_effects import perform
from strandline.records.batch import BatchBuilder
from strandline.records.header import assign
from strandline.replica.followers import FollowerProgress
from strandline.replica.following import TakenFetch
from strandline.replica.isr_state import ProposedIsr
from strandline.replica.leadership import Leadership
from strandline.replica.partition import Partition
from strandline.wire.fetch import FetchedPartition, FetchPartition

from .hand_driven import HandLoop, MemoryDisk, at_once

NOW_MS = 1_700_000_000_000
ME = 1
_DEFAULTS = TopicConfig.build()
NO_FLUSH = 2**63 - 1


def image(
    leader: int = ME,
    *,
    epoch: int = 5,
    partition_epoch: int = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] = (1, 2, 3),
) -> PartitionImage:
    return PartitionImage(replicas, isr, leader, epoch, partition_epoch)


class Bench:
    """To the partition it is the node."""

    node_id = ME
    broker_epoch = 100
    lag_time_max_s = 30.0

    def __init__(
        self,
        state: PartitionImage | None = None,
        *,
        min_isr: int = 1,
        flush_messages: int = NO_FLUSH,
        high_watermark: int = 0,
        log: Log | None = None,
    ) -> None:
        self.loop = HandLoop()
        self.disk = MemoryDisk(self.loop, "bench")
        self.epochs = {2: 200, 3: 300, 4: 400}
        """Broker epochs of those who may join an ISR."""
        self.registered = dict(self.epochs)
        """Those of all brokers, fenced ones too."""
        self.proposals: list[ProposedIsr] = []
        self.flushes_due = 0
        self.notes: list[str] = []
        self.told: list[Any] = []
        config = replace(_DEFAULTS, min_insync_replicas=min_isr, flush_messages=flush_messages)
        log = log or load(self.disk, "/t-0", config, clean=True).log
        self.partition = Partition("t", 0, Uuid(bytes(16)), log, state or image(), self, high_watermark=high_watermark)

    # The node

    def now(self) -> float:
        return self.loop.now

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        return broker_id in self.epochs and broker_epoch in (-1, self.epochs[broker_id])

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.epochs

    def incarnation(self, broker_id: int, broker_epoch: int) -> Incarnation:
        known = self.registered.get(broker_id)
        if known is None or broker_epoch > known:
            return Incarnation.AHEAD
        return Incarnation.CURRENT if broker_epoch == known else Incarnation.STALE

    def flush_due(self, partition: Partition) -> None:
        self.flushes_due += 1

    def propose_isr(self, partition: Partition, proposal: ProposedIsr) -> None:
        self.proposals.append(proposal)

    def note(self, kind: str, partition: Partition, reason: str, **facts: Any) -> None:
        self.notes.append(kind)

    # Putting in

    def append(
        self, count: int = 1, *, for_all: bool = False, guard: VerificationGuard | None = NOT_REQUIRED, **fields: Any
    ) -> int:
        data = memoryview(batch(count, **fields))
        return self.partition.append(data, NOW_MS, for_all=for_all, guard=guard).base_offset

    def marker(self, epoch: int = 0, *, commit: bool = True, coordinator_epoch: int = 0, version: int = 0) -> int:
        """The end of producer 1's transaction; the offset after it."""
        return self.partition.append_marker((1, epoch), commit, coordinator_epoch, NOW_MS, transaction_version=version)

    def flush(self) -> bool:
        at_once(perform(self.partition.log.flush()))
        return self.partition.after_flush(self.now())

    def wait_for(self, end_offset: int) -> None:
        self.partition.when_committed(end_offset, lambda code: self.told.append((end_offset, code)))

    def fetched(self, replica_id: int, offset: int, *, broker_epoch: int | None = None) -> bool:
        """A follower asks for `offset`, and the logs agree up to there."""
        asked = FetchPartition(0, self.partition.leader_epoch, offset, -1, 0, 2**20)
        epoch = self.epochs[replica_id] if broker_epoch is None else broker_epoch
        return self.partition.follower_fetched(replica_id, asked, epoch, self.now())

    def take(self, **fields: Any) -> TakenFetch:
        """The leader's answer to what this follower asks for now."""
        asked = self.partition.fetch_position(2**20)
        assert asked is not None
        return self.partition.take(asked, FetchedPartition(0, **{"error_code": 0, **fields}), NOW_MS)

    # Looking

    @property
    def leadership(self) -> Leadership:
        assert self.partition.leadership is not None
        return self.partition.leadership

    def follower(self, replica_id: int) -> FollowerProgress:
        return self.leadership.followers[replica_id]

    @property
    def offsets(self) -> tuple[int, int]:
        """High watermark and log end."""
        return self.partition.high_watermark, self.partition.log.log_end_offset


def batch(count: int = 1, **fields: Any) -> bytearray:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(b"k", b"v", timestamp=NOW_MS)
    return builder.build(**fields)


def as_leader_wrote(*batches: tuple[int, int, int]) -> bytes:
    """Batches with base offset, count and leader epoch."""
    data = b""
    for base_offset, count, epoch in batches:
        made = batch(count)
        assign(made, base_offset, epoch)
        data += bytes(made)
    return data


NONE = ErrorCode.NONE
