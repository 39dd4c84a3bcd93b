"""TXN-TI12: in one leader epoch of its partition of `__transaction_state` a transactional id has one coordinator."""

from __future__ import annotations

from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation


class OneTransactionCoordinator(TransactionJudge):
    def __init__(self) -> None:
        self._by_epoch: dict[tuple[int, int], int] = {}

    def coordinates(self, seen: TransactionObservation, node_id: int, partition: int, epoch: int) -> None:
        first = self._by_epoch.setdefault((partition, epoch), node_id)
        if first != node_id:
            raise Violation(f"coordinates __transaction_state-{partition} in epoch {epoch}, as n{first} did")
