"""TXN-T17, TXN-T21, TXN-T23: the pair that a transactional id goes on with, as its coordinator has written it down, is refused for
no reason of its own: neither PRODUCER_FENCED nor INVALID_PRODUCER_ID_MAPPING, which end a producer that is alive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.api.add_partitions_to_txn import FOR_BROKERS_SINCE
from strandline.errors import ErrorCode
from strandline.histories.exchanges import END_TXN, INIT_PRODUCER_ID, CoordinatorExchange
from strandline.histories.judges.transactions.answered_is_committed import NamedTransaction
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.transactions.metadata import ProducerIdAndEpoch

ADD_PARTITIONS_TO_TXN = 24
FATAL = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


class _Newest(NamedTuple):
    node_id: int
    producer: ProducerIdAndEpoch
    """With which the id goes on, once what is decided is complete."""


class NewestIsNotFenced(TransactionJudge):
    def __init__(self) -> None:
        self._newest: dict[str, _Newest] = {}

    def appended(self, seen: TransactionObservation, node_id: int, record: TransactionRecord) -> None:
        if record.metadata is None:
            self._newest.pop(record.transactional_id, None)
        else:
            self._newest[record.transactional_id] = _Newest(node_id, record.metadata.after_completion)

    def answered(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        for named in _refused(exchange):
            newest, producer = self._newest.get(named.transactional_id), (named.producer_id, named.epoch)
            # Another node may not know yet that it coordinates no more; and what came in the same turn is written after it, so
            # that an answer may leave before the record of the producer that has taken over (seed 779).
            memory = seen.in_memory(exchange.broker_id, named.transactional_id)
            is_newest = memory is not None and memory.after_completion == producer
            if is_newest and newest == _Newest(exchange.broker_id, ProducerIdAndEpoch(*producer)):
                raise Violation(f"has {named} fenced (API {exchange.api_key}), with which that id goes on")


def _refused(exchange: CoordinatorExchange) -> Iterator[NamedTransaction]:
    request, response = exchange.request, exchange.response
    if exchange.api_key in (END_TXN, INIT_PRODUCER_ID):
        if response.error_code in FATAL and request.transactional_id:
            yield NamedTransaction(request.transactional_id, request.producer_id, request.producer_epoch)
    elif exchange.api_key == ADD_PARTITIONS_TO_TXN and exchange.version >= FOR_BROKERS_SINCE:
        asked = {each.transactional_id: each for each in request.transactions}
        for result in response.results_by_transaction:
            codes = {
                partition.partition_error_code
                for topic in result.topic_results
                for partition in topic.results_by_partition
            }
            if not codes.isdisjoint(FATAL):
                one = asked[result.transactional_id]
                yield NamedTransaction(one.transactional_id, one.producer_id, one.producer_epoch)
