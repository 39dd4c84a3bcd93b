"""TXN-TI9: what a coordinator aborts by itself, because time is up or another producer begins, has a newer epoch than
its producer, who is fenced by it."""

from __future__ import annotations

from strandline.histories.exchanges import END_TXN, CoordinatorExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.transactions.metadata import ProducerIdAndEpoch, TransactionMetadata
from strandline.transactions.states import TransactionState


class OwnAbortFences(TransactionJudge):
    def __init__(self) -> None:
        self._asked: set[tuple[str, ProducerIdAndEpoch]] = set()
        """Whose abort some client has asked for."""

    def asked(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        request = exchange.request
        if exchange.api_key == END_TXN and not request.committed:
            self._asked.add((request.transactional_id, ProducerIdAndEpoch(request.producer_id, request.producer_epoch)))

    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        after = record.metadata
        if after is None or before is None or before.state is not TransactionState.ONGOING:
            return
        is_fenced = after.producer_id != before.producer_id or after.epoch > before.epoch
        is_asked_for = (record.transactional_id, before.producer) in self._asked
        if after.state is TransactionState.PREPARE_ABORT and not (is_fenced or is_asked_for):
            raise Violation(f"{record.transactional_id} is aborted in epoch {after.epoch}, which nobody asked for")
