"""Transactions that outlive their timeout are aborted by the coordinator, and their producers fenced (TXN-T28).

Always true: time is counted from when this coordinator saw the transaction begin, or took it over, by a clock that never jumps; one
with two-phase commit is left alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import KafkaError
from strandline.transactions import ending
from strandline.transactions.states import TransactionState

if TYPE_CHECKING:
    from strandline.transactions.metadata import TransactionMetadata
    from strandline.transactions.shard import TransactionShard


def schedule(shard: TransactionShard, at: Moment) -> None:
    interval_s = shard.dependencies.config.transaction_abort_timed_out_transaction_cleanup_interval_ms / 1000
    shard.timers.schedule(("timeouts",), at.now + interval_s, partial(_sweep, shard))


def is_late(metadata: TransactionMetadata, now: float) -> bool:
    return (
        metadata.state is TransactionState.ONGOING
        and not metadata.is_two_phase
        and metadata.started_s + metadata.timeout_ms / 1000 < now
    )


def _sweep(shard: TransactionShard, at: Moment) -> None:
    schedule(shard, at)
    for transactional_id, metadata in shard.transactions.items():
        if is_late(metadata, at.now):
            shard.timers.schedule(("abort", transactional_id), at.now, partial(_abort, shard, transactional_id))


def _abort(shard: TransactionShard, transactional_id: str, at: Moment) -> CoordinatorResult | None:
    metadata = shard.transactions.get(transactional_id)
    if metadata is None or not is_late(metadata, at.now):
        return None
    try:
        why = f"it was open for longer than its timeout of {metadata.timeout_ms} ms"
        return ending.abort(shard, transactional_id, at, lambda code: None, why)
    except KafkaError:
        return None  # there is no producer id yet: the next sweep
