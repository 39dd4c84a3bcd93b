"""TXN-TI14: what a replica remembers of each transactional producer is what its own batches say, so that it is the same
on all replicas: epochs, the last sequence, where a transaction is open."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import PartitionTransactions


class ProducersMatchLog(TransactionJudge):
    def changed(self, seen: TransactionObservation, place: Place, known: PartitionTransactions) -> None:
        if place.replica.is_offline:
            return
        remembered = place.replica.log.producers.by_id
        for producer_id, expected in known.producers.items():
            found = remembered.get(producer_id)
            if found is None:
                raise Violation(f"{place}: producer {producer_id} is forgotten, which has {expected}")
            if (
                found.epoch,
                found.coordinator_epoch,
                found.last_sequence,
                found.last_offset,
                found.current_txn_first_offset,
            ) != (
                expected.epoch,
                expected.coordinator_epoch,
                expected.last_sequence,
                expected.last_offset,
                expected.open_from,
            ):
                raise Violation(
                    f"{place}: producer {producer_id} has {expected}, and is remembered with epoch {found.epoch}, "
                    f"coordinator epoch {found.coordinator_epoch}, sequence {found.last_sequence} at "
                    f"{found.last_offset}, open from {found.current_txn_first_offset} on"
                )
