"""TXN-V4: where each transaction has an epoch of its own, a leader takes what is registered. That the transaction has
ended since its coordinator was asked is said only of one that has: not because the end of the one before came late."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.histories.exchanges import TXN_OFFSET_COMMIT, BrokerExchange, CoordinatorExchange
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge
from strandline.histories.transactions.observation import TransactionObservation
from strandline.ids import TopicPartition
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.states import TransactionState
from strandline.transactions.verification import PRODUCE_ADDS_PARTITIONS, TXN_OFFSET_COMMIT_ADDS_PARTITIONS


class RegisteredIsTaken(TransactionJudge):
    def produced(self, seen: TransactionObservation, node_id: int, exchange: BrokerExchange) -> None:
        if exchange.version < PRODUCE_ADDS_PARTITIONS:
            return
        refused = [
            place for place, answer in exchange.answers().items() if answer.error_code == ErrorCode.INVALID_TXN_STATE
        ]
        if not refused:
            return
        assert exchange.transactional_id is not None, "it is part of a transaction"
        producers = {
            place: ProducerIdAndEpoch(header.producer_id, header.producer_epoch) for place, header in exchange.batches()
        }
        for each in refused:
            place = seen.place(node_id, each)
            if place is not None:
                _check(seen, exchange.transactional_id, producers[each], place.name)

    def answered(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        if exchange.api_key != TXN_OFFSET_COMMIT or exchange.version < TXN_OFFSET_COMMIT_ADDS_PARTITIONS:
            return
        request = exchange.request
        codes = [partition.error_code for topic in exchange.response.topics for partition in topic.partitions]
        if ErrorCode.INVALID_TXN_STATE in codes:
            name = (CONSUMER_OFFSETS, seen.offsets_partition(request.group_id))
            producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
            _check(seen, request.transactional_id, producer, name)


def _check(
    seen: TransactionObservation, transactional_id: str, producer: ProducerIdAndEpoch, name: TopicPartition
) -> None:
    state = seen.states.get(transactional_id)
    if (
        state is not None
        and state.state is TransactionState.ONGOING
        and state.producer == producer
        and name in state.partitions
    ):
        raise Violation(f"{name[0]}-{name[1]}: refuses {transactional_id} as ended, which is {state}")
