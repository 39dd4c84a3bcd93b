"""Asks transaction coordinators, here or at other brokers, whether partitions are part of a transaction (TXN-V7).

Always true: every question gets an answer; if none comes in time it is NETWORK_EXCEPTION, and its batch is not taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from strandline.api.groups.placement import partition_of
from strandline.api.requests.request_stats import ApiStats
from strandline.coordinator.result import coordinator_error
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.metadata.image import MetadataImage
from strandline.node.coordinator.transaction_topic import TRANSACTION_STATE
from strandline.node.coordinator.transactions import TransactionCoordinator
from strandline.node.tasks import AsyncWork
from strandline.node.transactions.broker_requests import BrokerRequests
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.transactions.partitions import Addition
from strandline.transactions.verification import Asked, Codes, Question, VerificationQueue
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

ADD_PARTITIONS_TO_TXN: Final = 24


class VerificationStats:
    """What was asked since the node started."""

    def __init__(self) -> None:
        self.times = ApiStats()
        """Of each question until its answer."""
        self.failures = 0
        """Partitions that a coordinator did not confirm, for whatever reason."""

    def answered(self, codes: Codes, took_s: float) -> None:
        self.times.answered(took_s)
        self.failures += sum(code is not ErrorCode.NONE for code in codes.values())


class TransactionVerifier:
    def __init__(
        self,
        node_id: int,
        image: Callable[[], MetadataImage],
        coordinator: TransactionCoordinator,
        requests: BrokerRequests,
        timeout_s: Callable[[], float],
        spawn: Callable[[AsyncWork[None]], None],
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._coordinator = coordinator
        self._requests = requests
        self._timeout_s = timeout_s
        self._spawn = spawn
        self._queue = VerificationQueue()
        self.stats = VerificationStats()

    async def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        codes = await self._ask_coordinator(transactional_id, producer, partitions, verify_only=verify_only)
        self.stats.answered(codes, loop.time() - began_s)
        return codes

    async def _ask_coordinator(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
        *,
        verify_only: bool,
    ) -> Codes:
        answered: asyncio.Future[Codes] = asyncio.get_running_loop().create_future()

        def done(codes: Codes) -> None:
            if not answered.done():
                answered.set_result(codes)

        coordinator_id = self._coordinator_of(transactional_id)
        if coordinator_id is None:
            return dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if coordinator_id == self._node_id:
            self._ask_here(Addition(transactional_id, producer, partitions, transaction_version=2), verify_only, done)
        else:
            self._queue.add(coordinator_id, Question(transactional_id, producer, verify_only, partitions), done)
            self._pump(coordinator_id)
        return await answered

    def _coordinator_of(self, transactional_id: str) -> int | None:
        image = self._image()
        topic = image.topics.get(TRANSACTION_STATE)
        if topic is None:
            return None
        leader = topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader
        broker = image.brokers.get(leader)
        return None if broker is None or broker.fenced else leader

    def _ask_here(self, addition: Addition, verify_only: bool, done: Callable[[Codes], None]) -> None:
        def for_all(code: ErrorCode) -> None:
            done(dict.fromkeys(addition.partitions, code))

        def refuse(error: KafkaError) -> None:
            for_all(coordinator_error(error.code))

        if verify_only:
            self._coordinator.read(addition.transactional_id, lambda shard, at: shard.verify(addition), done, refuse)
        else:
            self._coordinator.write(
                addition.transactional_id, lambda shard, at: shard.add_partitions(addition, at, for_all), refuse
            )

    def _pump(self, coordinator_id: int) -> None:
        asked = self._queue.take(coordinator_id)
        if asked is not None:
            self._spawn(self._ask(coordinator_id, asked))

    async def _ask(self, coordinator_id: int, asked: Asked) -> None:
        codes: Mapping[str, Codes] | ErrorCode = ErrorCode.NETWORK_EXCEPTION
        try:
            response = await self._requests.ask(
                coordinator_id, ADD_PARTITIONS_TO_TXN, _message(asked), self._timeout_s()
            )
            code = error_code(response.error_code)
            # Producers would take it for their own, and for the end: what the coordinator refuses is this broker.
            refused = ErrorCode.INVALID_TXN_STATE if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else code
            codes = refused or _codes(response)
        except KafkaError:
            pass  # it was not reached, or said nothing: NETWORK_EXCEPTION
        finally:
            self._queue.answered(coordinator_id, codes)
        self._pump(coordinator_id)


def _message(asked: Asked) -> AddPartitionsToTxnRequest:
    add: type[AddPartitionsToTxnRequest] = messages.request(ADD_PARTITIONS_TO_TXN)
    transactions = []
    for one in asked.values():
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(one.partitions):
            topics.setdefault(topic, []).append(index)
        transactions.append(
            add.AddPartitionsToTxnTransaction(
                transactional_id=one.transactional_id,
                producer_id=one.producer.producer_id,
                producer_epoch=one.producer.epoch,
                verify_only=one.verify_only,
                topics=[add.AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()],
            )
        )
    return add(transactions=transactions)


def _codes(response: AddPartitionsToTxnResponse) -> dict[str, Codes]:
    return {
        result.transactional_id: {
            (topic.name, partition.partition_index): error_code(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
