"""TXN-TI5: a leader writes the batch that opens a transaction only while the committed state of its transactional id
says Ongoing, with this producer id, epoch and partition; or decided so, with the marker still to come."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import LoggedTransaction, TransactionalBatch
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import TransactionState


class CoordinatorFirst(TransactionJudge):
    def __init__(self) -> None:
        self._marked: dict[tuple[Key, int], TransactionMetadata] = {}
        """By partition and producer id: the decision whose marker its leader has written last."""

    def marker(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, ended: LoggedTransaction | None
    ) -> None:
        decided = seen.decisions.get(seen.ids.get(batch.producer_id, ""))
        if decided is not None and decided.producer == (batch.producer_id, batch.epoch):
            self._marked[place.key, batch.producer_id] = decided

    def data(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, before: LoggedTransaction | None
    ) -> None:
        state = seen.state_of(batch.producer_id)
        if before is None and (
            state is None
            or state.producer_id != batch.producer_id
            or place.name not in state.partitions
            or not (_is_ongoing(state, batch) or self._is_ended_later(place, state, batch))
        ):
            raise Violation(f"{place}: opens a transaction with {batch}, and committed is {state}")

    def _is_ended_later(self, place: Place, state: TransactionMetadata, batch: TransactionalBatch) -> bool:
        """It was registered in time, and the marker of the decision is not here yet."""
        is_of_it = state.state.is_prepared and state.epoch - batch.epoch in (0, 1)
        return is_of_it and self._marked.get((place.key, batch.producer_id)) is not state


def _is_ongoing(state: TransactionMetadata, batch: TransactionalBatch) -> bool:
    return state.state is TransactionState.ONGOING and state.epoch == batch.epoch
