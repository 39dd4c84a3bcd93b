"""What DescribeTransactions and ListTransactions say of a shard (TXN-T37, TXN-T38).

Always true: nothing is changed, and nothing is shown before it is committed, since both are reads of the runner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import BY_LABEL, TransactionState

if TYPE_CHECKING:
    from strandline.transactions.shard import TransactionShard


class TransactionDescription(NamedTuple):
    metadata: TransactionMetadata
    partitions: frozenset[TopicPartition]
    """Those that have no marker yet."""


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: TransactionState


class TransactionFilters(NamedTuple):
    """Empty, negative or None: everything."""

    states: frozenset[TransactionState] = frozenset()
    has_states: bool = False
    """States were asked for, even if none of them is known."""
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int = -1
    matches: Callable[[str], bool] | None = None


def known_states(names: list[str]) -> tuple[frozenset[TransactionState], list[str]]:
    """The states of these names, and the names that no state has."""
    known = frozenset(BY_LABEL[name] for name in names if name in BY_LABEL)
    return known, [name for name in names if name not in BY_LABEL]


def describe(shard: TransactionShard, transactional_id: str) -> TransactionDescription:
    metadata = shard.transactions.get(transactional_id)
    if metadata is None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    left = shard.unmarked.get(transactional_id)
    return TransactionDescription(metadata, metadata.partitions if left is None else frozenset(left))


def select(shard: TransactionShard, filters: TransactionFilters, at: Moment) -> list[ListedTransaction]:
    return [
        ListedTransaction(transactional_id, metadata.producer_id, metadata.state)
        for transactional_id, metadata in shard.transactions.items()
        if _is_wanted(transactional_id, metadata, filters, at.wall_ms)
    ]


def _is_wanted(transactional_id: str, metadata: TransactionMetadata, filters: TransactionFilters, wall_ms: int) -> bool:
    if filters.producer_ids and metadata.producer_id not in filters.producer_ids:
        return False
    if filters.has_states and metadata.state not in filters.states:
        return False
    if filters.longer_than_ms >= 0 and wall_ms - metadata.start_ms <= filters.longer_than_ms:
        return False
    return filters.matches is None or filters.matches(transactional_id)
