"""Administration of transactions: what there is, what it is part of, and ending what hangs.

A transactional id is asked of its coordinator, a list of every broker, and what a partition remembers of its leader. What
may succeed the next time (a coordinator that moved or is loading, a transaction that is being ended) is tried again until
the time is over.

Always true: an operation on several transactional ids or partitions answers for each: a value, or the KafkaError that it
met; a filter is never dropped because a broker is too old for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from strandline.client.core.by_topic import by_topic
from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.core.group.coordinator import CoordinatorType
from strandline.client.flow.client import FlowClient
from strandline.client.flow.coordinator_link import by_coordinator
from strandline.client.flow.io import gather
from strandline.client.flow.retry import Answers, by_leader, check, retrying
from strandline.client.flow.transaction_descriptions import (
    AbortTransactionSpec,
    ActiveProducer,
    DescribedTransaction,
    FencingEpoch,
    TransactionListing,
)
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_producers import DescribeProducersResponse
    from strandline.wire.stubs.describe_transactions import DescribeTransactionsResponse

INIT_PRODUCER_ID: Final = 22
WRITE_TXN_MARKERS: Final = 27
DESCRIBE_PRODUCERS: Final = 61
DESCRIBE_TRANSACTIONS: Final = 65
LIST_TRANSACTIONS: Final = 66
DURATION_SINCE, PATTERN_SINCE = 1, 2
"""Versions of ListTransactions that brought these filters."""
ANY_DURATION = -1
LEGACY_MARKER = 0
"""The transaction version of a marker that may have the epoch of the transaction that it ends (TXN-T40)."""
NO_PAIR = -1


class TransactionAdmin:
    _client: FlowClient

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """All that brokers coordinate, or those that every given filter lets pass; the pattern is RE2's, of the whole id."""
        needed = 0 if longer_than_ms is None else DURATION_SINCE
        if pattern:
            needed = PATTERN_SINCE
        message = messages.request(LIST_TRANSACTIONS)(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=ANY_DURATION if longer_than_ms is None else longer_than_ms,
            transactional_id_pattern=pattern or None,
        )

        async def ask(node_id: int) -> list[TransactionListing]:
            channel = await self._client.channel(node_id)
            if channel.version_of(LIST_TRANSACTIONS) < needed:
                what = "pattern" if needed == PATTERN_SINCE else "duration"
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION, f"node {node_id} is too old to list transactions by {what}"
                )
            response = await self._client.request(node_id, LIST_TRANSACTIONS, message)
            check(response.error_code, f"ListTransactions request sent to broker {node_id} failed")
            return [
                TransactionListing(t.transactional_id, node_id, t.producer_id, t.transaction_state)
                for t in response.transaction_states
            ]

        async def attempt() -> list[TransactionListing]:
            # Of now: a broker that went away coordinates nothing.
            await self._client.refresh()
            node_ids = sorted(self._client.cluster.brokers)
            parts = await gather(self._client.io, [ask(node_id) for node_id in node_ids])
            return sorted(listing for part in parts for listing in part)

        return await retrying(self._client, attempt)

    async def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> dict[str, DescribedTransaction | KafkaError]:
        """TRANSACTIONAL_ID_NOT_FOUND for one that no coordinator knows."""

        async def ask(broker: BrokerMetadata, asked: list[str]) -> dict[str, DescribedTransaction | KafkaError]:
            message = messages.request(DESCRIBE_TRANSACTIONS)(transactional_ids=asked)
            response = await self._client.request(broker.node_id, DESCRIBE_TRANSACTIONS, message)
            return {
                t.transactional_id: _refusal(t.transactional_id, t.error_code)
                if t.error_code
                else _description(t, broker.node_id)
                for t in response.transaction_states
            }

        return await by_coordinator(self._client, transactional_ids, ask, CoordinatorType.TRANSACTION)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, transaction_timeout_ms: int | None = None
    ) -> dict[str, FencingEpoch | KafkaError]:
        """Fence the producers of these transactional ids; a transaction that is open is aborted first.
        The timeout becomes that of the transactional id, until its next producer comes.
        """
        timeout_ms = (
            self._client.config.request_timeout_ms if transaction_timeout_ms is None else transaction_timeout_ms
        )

        async def ask_one(broker: BrokerMetadata, transactional_id: str) -> FencingEpoch | KafkaError:
            message = messages.request(INIT_PRODUCER_ID)(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=NO_PAIR,
                producer_epoch=NO_PAIR,
            )
            response = await self._client.request(broker.node_id, INIT_PRODUCER_ID, message)
            if response.error_code:
                return _refusal(transactional_id, response.error_code)
            return FencingEpoch(response.producer_id, response.producer_epoch)

        async def ask(broker: BrokerMetadata, asked: list[str]) -> dict[str, FencingEpoch | KafkaError]:
            answers = await gather(self._client.io, [ask_one(broker, each) for each in asked])
            return dict(zip(asked, answers, strict=True))

        return await by_coordinator(self._client, transactional_ids, ask, CoordinatorType.TRANSACTION)

    async def force_terminate_transaction(self, transactional_id: str) -> None:
        """Abort what is open under this transactional id, and fence its producer (TXN-T39)."""
        answer = (await self.fence_producers([transactional_id]))[transactional_id]
        if isinstance(answer, KafkaError):
            raise answer

    # At partitions

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, node_id: int | None = None
    ) -> Answers[list[ActiveProducer]]:
        """The producers that each leader remembers, or this node as a replica."""
        Describe = messages.request(DESCRIBE_PRODUCERS)
        wanted = list(partitions)

        async def ask(asked: int, keys: list[TopicPartition]) -> Answers[list[ActiveProducer]]:
            topics = [Describe.TopicRequest(name=topic, partition_indexes=i) for topic, i in by_topic(keys).items()]
            return _producers(await self._client.request(asked, DESCRIBE_PRODUCERS, Describe(topics=topics)))

        if node_id is None:
            return await by_leader(self._client, wanted, ask)

        async def attempt() -> Answers[list[ActiveProducer]]:
            await self._client.ensure_known()
            return await ask(node_id, wanted)

        # That this node has no replica is an answer that lasts.
        return await retrying(self._client, attempt)

    async def abort_transaction(self, spec: AbortTransactionSpec) -> None:
        """Have the partition's leader end a transaction that hangs: with a marker of its own epoch, as before version 2 of
        transactions, because no newer one is known (TXN-T40).
        """
        Write = messages.request(WRITE_TXN_MARKERS)
        topic, partition = spec.partition
        marker = Write.WritableTxnMarker(
            producer_id=spec.producer_id,
            producer_epoch=spec.producer_epoch,
            transaction_result=False,
            topics=[Write.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=spec.coordinator_epoch,
            transaction_version=LEGACY_MARKER,
        )

        async def ask(node_id: int, _: list[TopicPartition]) -> Answers[None]:
            response = await self._client.request(node_id, WRITE_TXN_MARKERS, Write(markers=[marker]))
            return {
                (t.name, p.partition_index): _marker_refusal(spec, p.error_code) if p.error_code else None
                for result in response.markers
                if result.producer_id == spec.producer_id
                for t in result.topics
                for p in t.partitions
            }

        answer = (await by_leader(self._client, [spec.partition], ask))[spec.partition]
        if isinstance(answer, KafkaError):
            raise answer


def _description(t: DescribeTransactionsResponse.TransactionState, coordinator_id: int) -> DescribedTransaction:
    return DescribedTransaction(
        t.transactional_id,
        coordinator_id,
        t.transaction_state,
        t.producer_id,
        t.producer_epoch,
        t.transaction_timeout_ms,
        None if t.transaction_start_time_ms < 0 else t.transaction_start_time_ms,
        tuple(sorted((topic.topic, partition) for topic in t.topics for partition in topic.partitions)),
    )


def _producers(response: DescribeProducersResponse) -> Answers[list[ActiveProducer]]:
    answers: Answers[list[ActiveProducer]] = {}
    for topic in response.topics:
        for p in topic.partitions:
            key = topic.name, p.partition_index
            if p.error_code:
                answers[key] = KafkaError(error_code(p.error_code), p.error_message or f"{topic.name}-{key[1]}")
            else:
                answers[key] = [
                    ActiveProducer(
                        s.producer_id,
                        s.producer_epoch,
                        s.last_sequence,
                        s.last_timestamp,
                        s.coordinator_epoch,
                        s.current_txn_start_offset,
                    )
                    for s in p.active_producers
                ]
    return answers


REASONS = {
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "does not exist",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "may not be used by this user",
    ErrorCode.CONCURRENT_TRANSACTIONS: "has a transaction that is still being ended",
    ErrorCode.INVALID_REQUEST: "can't be a transactional id",
    ErrorCode.INVALID_TRANSACTION_TIMEOUT: "can't have this timeout; see transaction.max.timeout.ms",
}
"""Why a coordinator did not do it."""


def _refusal(transactional_id: str, code: int) -> KafkaError:
    known = error_code(code)
    return KafkaError(known, f"transactional id '{transactional_id}' {REASONS.get(known, 'was refused')}")


MARKER_REASONS = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "its producer has another epoch by now",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "a marker of a newer coordinator was written since",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user, or this listener, may not write markers",
}


def _marker_refusal(spec: AbortTransactionSpec, code: int) -> KafkaError:
    known = error_code(code)
    topic, partition = spec.partition
    return KafkaError(
        known,
        f"the transaction of producer {spec.producer_id} at {topic}-{partition} was not aborted: "
        f"{MARKER_REASONS.get(known, 'the leader refused the marker')}",
    )
