"""What can be seen of a replica: a view of a partition, whatever role it has.

Always true: the view is live. `mark` and `is_as` say cheaply whether anything has changed since the last look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from strandline.ids import Uuid
from strandline.metadata.image import PartitionImage
from strandline.node.observation.logs import ObservedLog
from strandline.replica.followers import NEVER as NEVER
from strandline.replica.followers import UNKNOWN as UNKNOWN
from strandline.replica.following import Following
from strandline.replica.isr_state import ProposedIsr
from strandline.replica.partition import Partition


class ObservedFollower(Protocol):
    """A follower, as its leader sees it; UNKNOWN (-1) for what it has not said yet, NEVER for what it has not done."""

    @property
    def replica_id(self) -> int: ...

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def broker_epoch(self) -> int: ...

    @property
    def caught_up_at(self) -> float:
        """On the node's monotonic clock; so is `fetched_at`."""

    @property
    def fetched_at(self) -> float: ...


class ReplicaMark(NamedTuple):
    """What a replica was at one look. All else changes along with this, or can wait until this changes."""

    high_watermark: int
    log_end_offset: int
    metadata: PartitionImage
    maximal_isr: tuple[int, ...]
    proposed_isr: ProposedIsr | None


class ObservedReplica:
    """One replica, from when it is opened until it is dropped; a replica that comes back is another object."""

    __slots__ = ("_fetched_from", "_partition")

    def __init__(self, partition: Partition, fetched_from: Callable[[Partition], int | None]) -> None:
        self._partition = partition
        self._fetched_from = fetched_from

    def __repr__(self) -> str:
        return str(self._partition)

    @property
    def topic(self) -> str:
        return self._partition.topic

    @property
    def topic_id(self) -> Uuid:
        return self._partition.topic_id

    @property
    def index(self) -> int:
        return self._partition.index

    @property
    def log(self) -> ObservedLog:
        return self._partition.log

    @property
    def metadata(self) -> PartitionImage:
        """As it is applied here."""
        return self._partition.state

    @property
    def leads(self) -> bool:
        return self._partition.leads

    @property
    def leader_epoch(self) -> int:
        return self._partition.leader_epoch

    @property
    def is_offline(self) -> bool:
        """Its log dir failed."""
        return self._partition.offline

    @property
    def is_gone(self) -> bool:
        """The topic was deleted, or the replica moved elsewhere."""
        return self._partition.gone

    @property
    def high_watermark(self) -> int:
        return self._partition.high_watermark

    @property
    def last_stable_offset(self) -> int:
        return self._partition.last_stable_offset

    @property
    def local_end(self) -> int:
        """Up to where this replica alone counts as written: with `flush.messages`, what is on the device."""
        return self._partition.local_end

    @property
    def min_isr(self) -> int:
        """`min.insync.replicas`, no more than there are replicas."""
        return self._partition.min_isr

    @property
    def leader_high_watermark(self) -> int | None:
        """On a follower, as its leader said last; None before, and on a leader."""
        role = self._partition.role
        known = role.leader_high_watermark if isinstance(role, Following) else UNKNOWN
        return None if known == UNKNOWN else known

    @property
    def fetched_from(self) -> int | None:
        """The leader that a fetcher is fetching it from."""
        return self._fetched_from(self._partition)

    # Of the leader; empty or None on a follower

    @property
    def isr(self) -> tuple[int, ...]:
        leadership = self._partition.leadership
        return () if leadership is None else leadership.isr.isr

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        leadership = self._partition.leadership
        return () if leadership is None else leadership.isr.maximal

    @property
    def proposed_isr(self) -> ProposedIsr | None:
        """What the controller was asked for, and has not answered."""
        leadership = self._partition.leadership
        return None if leadership is None else leadership.isr.pending

    @property
    def partition_epoch(self) -> int:
        """The newest that is known here, from the metadata or from an answer of the controller."""
        leadership = self._partition.leadership
        return self._partition.state.partition_epoch if leadership is None else leadership.isr.partition_epoch

    @property
    def epoch_start_offset(self) -> int | None:
        """Where the epoch of this leader begins in the log."""
        leadership = self._partition.leadership
        return None if leadership is None else leadership.start_offset

    @property
    def followers(self) -> Mapping[int, ObservedFollower]:
        leadership = self._partition.leadership
        return {} if leadership is None else leadership.followers

    # Changes

    def mark(self) -> ReplicaMark:
        partition = self._partition
        return ReplicaMark(
            partition.high_watermark,
            partition.log.log_end_offset,
            partition.state,
            self.maximal_isr,
            self.proposed_isr,
        )

    def is_as(self, mark: ReplicaMark) -> bool:
        """Nothing has changed since the mark was taken."""
        partition = self._partition
        high_watermark, log_end_offset, metadata, maximal_isr, proposed_isr = mark
        if (
            partition.high_watermark != high_watermark
            or partition.log.log_end_offset != log_end_offset
            or partition.state is not metadata
        ):
            return False
        leadership = partition.leadership
        return leadership is None or (leadership.isr.maximal is maximal_isr and leadership.isr.pending is proposed_isr)

    def check_invariants(self) -> None:
        partition = self._partition
        partition.check_invariants()
        partition.log.check_invariants()
