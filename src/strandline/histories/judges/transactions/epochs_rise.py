"""TXN-TI8: epochs never fall, neither those of a transactional id nor those of a producer id in a partition; and where
each transaction has an epoch of its own, no two share one, and a marker's is newer than that of what it ends."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import LoggedTransaction, PartitionTransactions, TransactionalBatch
from strandline.records.control import EPOCH_BUMPING_VERSION, EPOCH_MAX
from strandline.transactions.metadata import TransactionMetadata


class EpochsRise(TransactionJudge):
    def kept(
        self, seen: TransactionObservation, place: Place, before: PartitionTransactions, batch: TransactionalBatch
    ) -> None:
        known = before.producers.get(batch.producer_id)
        if known is not None and batch.epoch < known.epoch:
            raise Violation(f"{place}: has {batch} after epoch {known.epoch}")

    def marker(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, ended: LoggedTransaction | None
    ) -> None:
        if seen.version >= EPOCH_BUMPING_VERSION and ended is not None and ended.epoch >= batch.epoch != EPOCH_MAX:
            raise Violation(f"{place}: {batch} ends {ended}, which has no older epoch")

    def data(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, before: LoggedTransaction | None
    ) -> None:
        if seen.version < EPOCH_BUMPING_VERSION or before is not None:
            return
        ended = seen.logs[place.node_id, place.key].ended
        last = next((each for each in reversed(ended) if each.producer_id == batch.producer_id), None)
        if last is not None and last.epoch >= batch.epoch:
            raise Violation(f"{place}: {batch} has the epoch of {last}")

    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        after = record.metadata
        if after is None or before is None or after.producer_id != before.producer_id:
            return
        if after.epoch < before.epoch:
            raise Violation(f"{record.transactional_id} falls from epoch {before.epoch} to {after.epoch}")
        has_bump = after.transaction_version >= EPOCH_BUMPING_VERSION
        if has_bump and after.state.is_prepared and not before.state.is_prepared and after.epoch <= before.epoch:
            raise Violation(f"{record.transactional_id} ends in the epoch {after.epoch} in which it wrote")
