"""Transactional ids that were silent for `transactional.id.expiration.ms` are removed (TXN-T29).

Always true: one with an open transaction, or one that is not ended everywhere, stays.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
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
    expired = list(
        islice(
            (
                transactional_id
                for transactional_id, metadata in shard.transactions.items()
                if is_expired(metadata, at.wall_ms, expiration_ms)
            ),
            REMOVED_AT_ONCE_MAX,
        )
    )
    if len(expired) < REMOVED_AT_ONCE_MAX:
        schedule(shard, at)
    if not expired:
        return None
    records = [transaction_record(transactional_id, None) for transactional_id in expired]
    return CoordinatorResult(records, partial(_removed, shard, is_more=len(expired) == REMOVED_AT_ONCE_MAX))


def _removed(shard: TransactionShard, code: ErrorCode, at: Moment, *, is_more: bool) -> CoordinatorResult | None:
    """The next ones; if these could not be written, later."""
    if not is_more:
        return None
    if code:
        schedule(shard, at)
        return None
    return _sweep(shard, at)
