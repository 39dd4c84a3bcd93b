"""TXN-TI12: the coordinator epochs of the markers of one producer id in one partition never fall."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import PartitionTransactions, TransactionalBatch


class CoordinatorEpochs(TransactionJudge):
    def kept(
        self, seen: TransactionObservation, place: Place, before: PartitionTransactions, batch: TransactionalBatch
    ) -> None:
        known = before.producers.get(batch.producer_id)
        if batch.is_marker and known is not None and batch.coordinator_epoch < known.coordinator_epoch:
            raise Violation(f"{place}: has {batch} after a marker of coordinator epoch {known.coordinator_epoch}")
