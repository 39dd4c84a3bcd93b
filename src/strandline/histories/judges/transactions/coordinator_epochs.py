"""TXN-TI12: the coordinator epochs of the markers of one producer id in one partition never fall."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.observation import Place, TransactionJudge, TransactionObservation
from strandline.histories.transactions.partition_log import PartitionTransactions, TransactionalBatch


class CoordinatorEpochs(TransactionJudge):
    def kept(
        self, seen: TransactionObservation, place: Place, before: PartitionTransactions, batch: TransactionalBatch
    ) -> None:
        known = before.coordinator_epochs.get(batch.producer_id, -1)
        if batch.is_marker and batch.coordinator_epoch < known:
            raise Violation(f"{place}: has {batch} after a marker of coordinator epoch {known}")
