"""TXN-TI6: a marker is written once the decision is committed, and is of its kind; what it ends is what was decided."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import LoggedTransaction, TransactionalBatch
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import TransactionState


class OneDecision(TransactionJudge):
    def __init__(self) -> None:
        self._decided: set[tuple[int, int, bool]] = set()
        """Producer id, epoch, and whether it is a commit, of all that were ever committed."""

    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        decided = record.metadata
        if decided is not None and decided.state.is_prepared:
            self._decided.add((*decided.producer, decided.state is TransactionState.PREPARE_COMMIT))

    def marker(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, ended: LoggedTransaction | None
    ) -> None:
        if (batch.producer_id, batch.epoch, batch.is_commit) not in self._decided:
            raise Violation(f"{place}: has {batch}, and no such decision is committed")
        state = seen.state_of(batch.producer_id)
        if ended is None:
            return  # repeated, or nothing was written here
        decided = seen.decisions.get(seen.ids[batch.producer_id])
        wanted = TransactionState.PREPARE_COMMIT if batch.is_commit else TransactionState.PREPARE_ABORT
        is_decided = decided is not None and decided.state is wanted and place.name in decided.partitions
        # Where one replica is enough, it may be completed by the end of the same turn.
        if state is None or not is_decided or not (state.state.is_prepared or state.state.is_completed):
            raise Violation(f"{place}: {batch} ends {ended}, and committed is {state}")
