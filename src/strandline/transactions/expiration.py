"""Transactional ids that were silent for `transactional.id.expiration.ms` are removed (TXN-T29).

Always true: one with an open transaction, or one that is not ended everywhere, stays. What is removed at once is one batch,
written as a whole or not at all.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.records.header import RECORDS_AT
from strandline.records.record import record_bytes_max
from strandline.transactions import framing
from strandline.transactions.records import transaction_record

if TYPE_CHECKING:
    from strandline.transactions.metadata import TransactionMetadata
    from strandline.transactions.shard import TransactionShard

REMOVED_AT_ONCE_MAX = 100


def schedule(shard: TransactionShard, at: Moment) -> None:
    interval_s = shard.dependencies.config.transaction_remove_expired_transaction_cleanup_interval_ms / 1000
    shard.timers.schedule(("expiration",), at.now + interval_s, partial(_sweep, shard))


def is_expired(metadata: TransactionMetadata, wall_ms: int, expiration_ms: int) -> bool:
    return metadata.state.may_expire and metadata.update_ms <= wall_ms - expiration_ms


def _sweep(shard: TransactionShard, at: Moment) -> CoordinatorResult | None:
    expiration_ms = shard.dependencies.config.transactional_id_expiration_ms
    bytes_max = shard.dependencies.record_bytes_max - RECORDS_AT
    records: list[CoordinatorRecord] = []
    size, is_more = 0, False
    for transactional_id, metadata in shard.transactions.items():
        if not is_expired(metadata, at.wall_ms, expiration_ms):
            continue
        record = transaction_record(transactional_id, None)
        bytes_more = record_bytes_max(*framing.encode(record, framing.VERSIONS[-1]))
        if bytes_more > bytes_max:
            continue  # the limit was lowered since: it holds up no other
        if len(records) == REMOVED_AT_ONCE_MAX or size + bytes_more > bytes_max:
            is_more = True
            break
        records.append(record)
        size += bytes_more
    if not is_more:
        schedule(shard, at)
    return CoordinatorResult(records, partial(_removed, shard, is_more=is_more)) if records else None


def _removed(shard: TransactionShard, code: ErrorCode, at: Moment, *, is_more: bool) -> CoordinatorResult | None:
    """The next ones; if these could not be written, later."""
    if not is_more:
        return None
    if code:
        schedule(shard, at)
        return None
    return _sweep(shard, at)
