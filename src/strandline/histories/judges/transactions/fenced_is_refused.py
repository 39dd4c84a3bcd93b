"""TXN-TI9: once InitProducerId has answered with a pair, no coordinator confirms what an older epoch of that
transactional id asks for after that: partitions, offsets, an end."""

from __future__ import annotations

from collections.abc import Iterator

from strandline.errors import ErrorCode
from strandline.histories.exchanges import END_TXN, INIT_PRODUCER_ID, TXN_OFFSET_COMMIT, CoordinatorExchange
from strandline.histories.judges.transactions.answered_is_committed import NamedTransaction, confirmed_partitions
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation


class FencedIsRefused(TransactionJudge):
    def __init__(self) -> None:
        self._pairs: dict[str, tuple[int, int, float]] = {}
        """By transactional id: the newest pair that was answered, and when."""

    def answered(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        request, response = exchange.request, exchange.response
        if exchange.api_key == INIT_PRODUCER_ID:
            if not response.error_code and request.transactional_id:
                self._note(request.transactional_id, response.producer_id, response.producer_epoch, exchange)
            return
        for named in _confirmed(seen, exchange):
            producer_id, epoch, since = self._pairs.get(named.transactional_id, (-1, -1, 0.0))
            if named.producer_id == producer_id and named.epoch < epoch and exchange.asked_at > since:
                raise Violation(f"does what {named} asks (API {exchange.api_key}), which is fenced by epoch {epoch}")

    def _note(self, transactional_id: str, producer_id: int, epoch: int, exchange: CoordinatorExchange) -> None:
        known = self._pairs.get(transactional_id)
        if known is None or known[0] != producer_id or known[1] < epoch:
            self._pairs[transactional_id] = (producer_id, epoch, exchange.answered_at or 0.0)


def _confirmed(seen: TransactionObservation, exchange: CoordinatorExchange) -> Iterator[NamedTransaction]:
    """The transactions for which something was done."""
    request, response = exchange.request, exchange.response
    if exchange.api_key == END_TXN:
        is_done = not response.error_code
    elif exchange.api_key == TXN_OFFSET_COMMIT:
        is_done = any(
            partition.error_code == ErrorCode.NONE for topic in response.topics for partition in topic.partitions
        )
    elif exchange.api_key in (24, 25):
        yield from dict.fromkeys(named for named, _ in confirmed_partitions(seen, exchange))
        return
    else:
        return
    if is_done:
        yield NamedTransaction(request.transactional_id, request.producer_id, request.producer_epoch)
