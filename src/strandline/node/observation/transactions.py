"""What can be seen of transactions in a node: those that it coordinates, the markers it owes, what it asks of coordinators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from strandline.node.observation.requests import ObservedApi
from strandline.transactions.shard import TransactionShard
from strandline.transactions.states import TransactionState

if TYPE_CHECKING:
    from strandline.node.assembly import TransactionParts

STATES = tuple(state.label for state in TransactionState)
"""By Kafka's names."""


class ObservedCoordinatorStats(Protocol):
    """Since the node started, of whichever partitions it has led."""

    @property
    def loads(self) -> int:
        """Partitions that were read back."""

    @property
    def failed_loads(self) -> int: ...

    @property
    def load_s(self) -> float:
        """All loads together."""

    @property
    def load_s_max(self) -> float: ...


class ObservedTransactions:
    __slots__ = ("_parts",)

    def __init__(self, parts: TransactionParts) -> None:
        self._parts = parts

    # The coordinator

    @property
    def shards(self) -> Iterator[TransactionShard]:
        """Of each partition of `__transaction_state` that the node leads and has read. Not to be changed."""
        return self._parts.coordinator.shards()

    @property
    def loading(self) -> int:
        """Partitions that are led here and not read yet."""
        return self._parts.coordinator.loading

    @property
    def stats(self) -> ObservedCoordinatorStats:
        return self._parts.coordinator.stats

    def states(self) -> Iterator[str]:
        """Of each transactional id."""
        return (metadata.state.label for shard in self.shards for metadata in shard.transactions.values())

    def undecided(self, open_since_ms: int) -> dict[str, int]:
        """Those of two-phase commit that are open since then or longer (TXN-Q4): when they began, in wall-clock milliseconds."""
        return {
            transactional_id: metadata.start_ms
            for shard in self.shards
            for transactional_id, metadata in shard.transactions.items()
            if metadata.is_two_phase
            and metadata.state is TransactionState.ONGOING
            and metadata.start_ms <= open_since_ms
        }

    # Markers

    @property
    def unsent_markers(self) -> int:
        """Partitions whose marker is waited for, on the way to them or not."""
        return len(self._parts.sender)

    @property
    def leaderless_markers(self) -> int:
        """Those of them that no broker leads."""
        return self._parts.sender.leaderless_count

    @property
    def unwritten_completions(self) -> int:
        """Transactions that have all their markers, and whose last record is to be written yet."""
        return sum(not left for shard in self.shards for left in shard.unmarked.values())

    @property
    def refused_markers(self) -> int:
        """Transactional ids whose transaction can't be ended, because leaders refuse its markers (TXN-T33)."""
        return sum(len(shard.refused_markers) for shard in self.shards)

    # Verification

    @property
    def verifications(self) -> ObservedApi:
        """What leaders here have asked of transaction coordinators, and how long the answers took."""
        return self._parts.verifier.stats.times

    @property
    def failed_verifications(self) -> int:
        """Partitions that were not confirmed."""
        return self._parts.verifier.stats.failures

    def check_invariants(self) -> None:
        for shard in self.shards:
            shard.check_invariants()
