"""TXN-TI5: a leader writes the batch that opens a transaction only while the committed state of its transactional id
says Ongoing, with this producer id, epoch and partition; or decided so, with the marker still to come."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import LoggedTransaction, TransactionalBatch
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import TransactionState


class CoordinatorFirst(TransactionJudge):
    def data(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, before: LoggedTransaction | None
    ) -> None:
        state = seen.state_of(batch.producer_id)
        if before is None and (
            state is None
            or state.producer_id != batch.producer_id
            or place.name not in state.partitions
            or not (_is_ongoing(state, batch) or _is_ended_later(seen, place, state, batch))
        ):
            raise Violation(f"{place}: opens a transaction with {batch}, and committed is {state}")


def _is_ongoing(state: TransactionMetadata, batch: TransactionalBatch) -> bool:
    return state.state is TransactionState.ONGOING and state.epoch == batch.epoch


def _is_ended_later(
    seen: TransactionObservation, place: Place, state: TransactionMetadata, batch: TransactionalBatch
) -> bool:
    """It was registered in time, and the marker of the decision is not here yet."""
    if not state.state.is_prepared or state.epoch - batch.epoch not in (0, 1):
        return False
    last = next((t.marker for t in reversed(seen.logs[place.node_id, place.key].ended) if t.marker is not None), None)
    is_own = last is not None and last.producer_id == batch.producer_id
    return not (is_own and last is not None and last.epoch == state.epoch > batch.epoch)
