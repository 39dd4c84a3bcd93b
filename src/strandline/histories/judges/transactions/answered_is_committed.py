"""TXN-TI11: what an answer without an error said is in the coordinators' log below the high watermark when it leaves: a
pair of producer id and epoch, partitions that were added or verified, a decision, offsets. That it survives is I1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from strandline.api.add_partitions_to_txn import FOR_BROKERS_SINCE
from strandline.errors import ErrorCode
from strandline.histories.exchanges import (
    ADD_OFFSETS_TO_TXN,
    CoordinatorExchange,
)
from strandline.histories.quorum_observation import Violation
from strandline.histories.transactions.judge import TransactionJudge, TransactionRecord
from strandline.histories.transactions.observation import TransactionObservation
from strandline.histories.transactions.offset_records import offsets_in
from strandline.ids import TopicPartition
from strandline.node.coordinator.offsets_topic import CONSUMER_OFFSETS
from strandline.records.control import EPOCH_BUMPING_VERSION
from strandline.transactions.metadata import TransactionMetadata
from strandline.transactions.states import TransactionState

BUMPS_EPOCH_SINCE = 5
"""The version of EndTxn that raises the epoch."""


class NamedTransaction(NamedTuple):
    """As a request names it."""

    transactional_id: str
    producer_id: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.transactional_id} (producer {self.producer_id}, epoch {self.epoch})"


class AnsweredIsCommitted(TransactionJudge):
    def __init__(self) -> None:
        self._initialised: set[NamedTransaction] = set()
        """All that were ever committed; so are decisions."""
        self._partitions: dict[NamedTransaction, frozenset[TopicPartition]] = {}
        """Of the newest transaction of that name: below version 2 several have the same."""
        self._decided: dict[tuple[NamedTransaction, bool], TransactionMetadata] = {}

    def committed(
        self, seen: TransactionObservation, record: TransactionRecord, before: TransactionMetadata | None
    ) -> None:
        metadata = record.metadata
        if metadata is None:
            return
        named = NamedTransaction(record.transactional_id, metadata.producer_id, metadata.epoch)
        if metadata.state is TransactionState.EMPTY:
            self._initialised.add(named)
        elif metadata.state is TransactionState.ONGOING:
            self._partitions[named] = metadata.partitions
        elif metadata.state.is_prepared:
            self._decided[named, metadata.state is TransactionState.PREPARE_COMMIT] = metadata

    def answered(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        match exchange.api_key:
            case 22:
                self._check_pair(exchange)
            case 24 | 25:
                self._check_partitions(seen, exchange)
            case 26:
                self._check_end(seen, exchange)
            case 28:
                _check_offsets(seen, exchange)

    def _check_pair(self, exchange: CoordinatorExchange) -> None:
        request, response = exchange.request, exchange.response
        if response.error_code or not request.transactional_id:
            return
        named = NamedTransaction(request.transactional_id, response.producer_id, response.producer_epoch)
        if named not in self._initialised:
            raise Violation(f"answers InitProducerId with {named}, and no such record is committed")

    def _check_partitions(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        for named, partition in confirmed_partitions(seen, exchange):
            if partition not in self._partitions.get(named, ()):
                raise Violation(f"confirms {partition[0]}-{partition[1]} of {named}, and no such record is committed")

    def _check_end(self, seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
        request, response = exchange.request, exchange.response
        if response.error_code:
            return
        has_bump = exchange.version >= BUMPS_EPOCH_SINCE
        named = NamedTransaction(request.transactional_id, request.producer_id, request.producer_epoch + has_bump)
        decided, state = self._decided.get((named, request.committed)), seen.states.get(request.transactional_id)
        producer = (request.producer_id, request.producer_epoch)
        is_open = state is not None and state.state is TransactionState.ONGOING and state.producer == producer
        if decided is None or is_open:
            raise Violation(f"answers EndTxn, and no decision of {named} is committed")
        answered = (response.producer_id, response.producer_epoch)
        if has_bump and decided.transaction_version >= EPOCH_BUMPING_VERSION and answered != decided.after_completion:
            raise Violation(f"answers EndTxn of {named} with {answered}, and goes on as {decided.after_completion}")


def confirmed_partitions(
    seen: TransactionObservation, exchange: CoordinatorExchange
) -> Iterator[tuple[NamedTransaction, TopicPartition]]:
    """What an answer to AddPartitionsToTxn or AddOffsetsToTxn says is part of a transaction."""
    request, response = exchange.request, exchange.response
    if exchange.api_key == ADD_OFFSETS_TO_TXN:
        if not response.error_code:
            named = NamedTransaction(request.transactional_id, request.producer_id, request.producer_epoch)
            yield named, (CONSUMER_OFFSETS, seen.offsets_partition(request.group_id))
        return
    if exchange.version < FOR_BROKERS_SINCE:
        named = NamedTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
        )
        answers = [(named, response.results_by_topic_v3_and_below)]
    else:
        asked = {
            each.transactional_id: NamedTransaction(each.transactional_id, each.producer_id, each.producer_epoch)
            for each in request.transactions
        }
        answers = [(asked[each.transactional_id], each.topic_results) for each in response.results_by_transaction]
    for named, topics in answers:
        for topic in topics:
            for partition in topic.results_by_partition:
                if partition.partition_error_code == ErrorCode.NONE:
                    yield named, (topic.name, partition.partition_index)


def _check_offsets(seen: TransactionObservation, exchange: CoordinatorExchange) -> None:
    request = exchange.request
    asked = {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in request.topics
        for partition in topic.partitions
    }
    name = (CONSUMER_OFFSETS, seen.offsets_partition(request.group_id))
    place = seen.place(exchange.broker_id, name)
    if place is None or not place.replica.leads:
        return  # the answer was decided before it was deposed
    log, end = seen.logs[place.node_id, place.key], place.replica.high_watermark
    written = {
        (key, offset)
        for each in (*log.open.values(), *log.ended)
        if (each.producer_id, each.epoch) == (request.producer_id, request.producer_epoch)
        for batch in each.batches
        if batch.last_offset < end
        for key, offset in offsets_in(batch, request.group_id)
    }
    for topic in exchange.response.topics:
        for partition in topic.partitions:
            key = (topic.name, partition.partition_index)
            if partition.error_code == ErrorCode.NONE and (key, asked[key]) not in written:
                raise Violation(
                    f"acknowledges {asked[key]} of {key[0]}-{key[1]} to {request.transactional_id}, which is not in its "
                    f"log below {end}"
                )
