"""TXN-TI13: consecutive committed records of a transactional id are transitions that Kafka allows; a decision never
becomes the other one, and what is removed was at rest."""

from __future__ import annotations

from dataclasses import replace

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import MAY_FOLLOW, TransactionState


class LegalTransactionStates(TransactionJudge):
    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        after = record.metadata
        state = TransactionState.DEAD if after is None else after.state
        if before is None:
            if state not in (TransactionState.EMPTY, TransactionState.DEAD):
                raise Violation(f"{record.transactional_id} begins as {state.label}")
            return
        is_repeated = after is not None and replace(after, update_ms=before.update_ms) == before
        if before.state not in MAY_FOLLOW[state] and not is_repeated:
            raise Violation(f"{record.transactional_id} becomes {state.label} after {before.state.label}")
        if after is not None and after.state.is_completed and not is_repeated:
            expected = before.completed(after.update_ms).producer
            if after.producer != expected:
                raise Violation(f"{record.transactional_id} is completed as {after.producer}, decided was {expected}")
