"""TXN-TI9: once a newer epoch of a transactional id is committed and at rest, no leader writes data of an older one."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import Place, TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.partition_log import LoggedTransaction, TransactionalBatch
from strandline.transactions.metadata import TransactionMetadata


class FencedIsSilent(TransactionJudge):
    def __init__(self) -> None:
        self._rested: dict[int, int] = {}
        """By producer id: the newest epoch in which nothing was open any more."""

    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        after = record.metadata
        if after is not None and after.state.may_expire:
            self._rested[after.producer_id] = after.epoch

    def data(
        self, seen: TransactionObservation, place: Place, batch: TransactionalBatch, before: LoggedTransaction | None
    ) -> None:
        rested = self._rested.get(batch.producer_id, -1)
        if batch.epoch < rested:
            raise Violation(f"{place}: has {batch} of a producer that is fenced by epoch {rested}")
