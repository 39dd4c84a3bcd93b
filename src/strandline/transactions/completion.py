"""From the decision to its end: markers to every partition, then the record that says so (TXN-T30 to TXN-T34).

Always true: markers are sent once the decision is committed; the record of the completion follows the last marker, and is written
again for as long as it takes while this node coordinates.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.transactions import journal
from strandline.transactions.markers import EndMarker
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.records import transaction_record
from strandline.transactions.states import TransactionState

if TYPE_CHECKING:
    from strandline.transactions.shard import TransactionShard

RETRY_S = 0.5
"""Before the record of a completion is written again."""


def begin(shard: TransactionShard, transactional_id: str, decided: TransactionMetadata, at: Moment) -> None:
    """This decision is committed."""
    metadata = shard.transactions.get(transactional_id)
    if metadata is not decided or transactional_id in shard.unmarked:
        return
    shard.unmarked[transactional_id] = set(metadata.partitions)
    if metadata.partitions:
        shard.dependencies.send_marker(_marker(shard, transactional_id, metadata))
    else:
        again = partial(_again, shard, transactional_id, metadata)
        shard.timers.schedule(("complete", transactional_id), at.now, again)


def begin_later(shard: TransactionShard, transactional_id: str, decided: TransactionMetadata, at: Moment) -> None:
    """In a turn of its own: a load may find thousands."""
    shard.timers.schedule(("begin", transactional_id), at.now, partial(begin, shard, transactional_id, decided))


def _marker(shard: TransactionShard, transactional_id: str, metadata: TransactionMetadata) -> EndMarker:
    return EndMarker(
        transactional_id=transactional_id,
        producer=metadata.producer,
        commit=metadata.state is TransactionState.PREPARE_COMMIT,
        transaction_version=metadata.transaction_version,
        coordinator_partition=shard.partition,
        coordinator_epoch=shard.coordinator_epoch,
        partitions=metadata.partitions,
    )


def is_current(shard: TransactionShard, marker: EndMarker) -> bool:
    """The marker is of the decision that stands, and of this very load."""
    metadata = shard.transactions.get(marker.transactional_id)
    return (
        metadata is not None
        and metadata.state.is_prepared
        and metadata.producer == marker.producer
        and shard.coordinator_epoch == marker.coordinator_epoch
        and marker.transactional_id in shard.unmarked
    )


def marked(
    shard: TransactionShard, marker: EndMarker, found: Collection[TopicPartition], at: Moment
) -> CoordinatorResult | None:
    if not is_current(shard, marker):
        return None
    left = shard.unmarked[marker.transactional_id]
    had_any = bool(left)
    left.difference_update(found)
    if left or not had_any:
        return None
    return _complete(shard, marker.transactional_id, shard.transactions[marker.transactional_id], at)


def refused(shard: TransactionShard, marker: EndMarker) -> None:
    """Somebody newer ends this transaction, or there is a bug: it stays as it is until the next load (TXN-T33)."""
    if is_current(shard, marker) and marker.transactional_id not in shard.refused_markers:
        journal.refused(shard, marker)
        shard.refused_markers.add(marker.transactional_id)


def _complete(
    shard: TransactionShard, transactional_id: str, metadata: TransactionMetadata, at: Moment
) -> CoordinatorResult:
    return CoordinatorResult(
        [transaction_record(transactional_id, metadata.completed(at.wall_ms))],
        partial(_written, shard, transactional_id, metadata),
    )


def _written(
    shard: TransactionShard, transactional_id: str, metadata: TransactionMetadata, code: ErrorCode, at: Moment
) -> None:
    """If nothing was appended the decision still stands, and the record is tried again."""
    if code and shard.transactions.get(transactional_id) is metadata:
        again = partial(_again, shard, transactional_id, metadata)
        shard.timers.schedule(("complete", transactional_id), at.now + RETRY_S, again)


def _again(
    shard: TransactionShard, transactional_id: str, metadata: TransactionMetadata, at: Moment
) -> CoordinatorResult | None:
    if shard.transactions.get(transactional_id) is not metadata:
        return None
    return _complete(shard, transactional_id, metadata, at)
