"""An admin client without a cluster: transactional ids, and what partitions remember of producers, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from strandline.client.flow.descriptions import PartitionDescription, TopicDescription, TopicListing
from strandline.client.flow.transaction_descriptions import (
    AbortTransactionSpec,
    ActiveProducer,
    DescribedTransaction,
    FencingEpoch,
    TransactionListing,
)
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID

Key = tuple[str, int]


class InMemoryTransactions:
    """Answers as Admin does. Every partition is led by node 1, with another replica on node 2."""

    def __init__(self) -> None:
        self.ids: dict[str, DescribedTransaction] = {}
        self.producers: dict[Key, list[ActiveProducer]] = {}
        self.aborted: list[AbortTransactionSpec] = []
        self.asked: list[dict[str, Any]] = []
        """The filters of each listing."""
        self.refusal: KafkaError | None = None
        """Of markers, and of producer ids."""

    def add(self, name: str, producer_id: int, state: str, *partitions: Key, start_ms: int | None = None) -> None:
        self.ids[name] = DescribedTransaction(name, 1, state, producer_id, 3, 60_000, start_ms, partitions)

    def open(
        self, key: Key, producer_id: int, start_offset: int, last_timestamp: int, coordinator_epoch: int = -1
    ) -> None:
        producer = ActiveProducer(producer_id, 3, 9, last_timestamp, coordinator_epoch, start_offset)
        self.producers.setdefault(key, []).append(producer)

    @contextmanager
    def connect(self, access: object) -> Iterator[InMemoryTransactions]:
        yield self

    def list_transactions(self, **filters: Any) -> list[TransactionListing]:
        self.asked.append(filters)
        if filters.get("pattern") == "(":
            raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, "ListTransactions request sent to broker 1 failed")
        states, producer_ids = list(filters.get("states", ())), list(filters.get("producer_ids", ()))
        return [
            TransactionListing(t.transactional_id, t.coordinator_id, t.producer_id, t.state)
            for _, t in sorted(self.ids.items())
            if t.state in (states or [t.state]) and t.producer_id in (producer_ids or [t.producer_id])
        ]

    def describe_transactions(self, names: Iterable[str]) -> dict[str, Any]:
        missing = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return {
            name: self.ids.get(name) or KafkaError(missing, f"transactional id '{name}' does not exist")
            for name in names
        }

    def describe_producers(self, keys: Iterable[Key], *, node_id: int | None = None) -> dict[Key, Any]:
        if node_id not in (None, 1, 2):
            return dict.fromkeys(keys, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here"))
        unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no such partition")
        return {key: self.producers.get(key, unknown) for key in keys}

    def list_topics(self, *, include_internal: bool = False) -> list[TopicListing]:
        assert include_internal
        return [TopicListing(name, ZERO_UUID, False) for name in sorted({topic for topic, _ in self.producers})]

    def describe_topics(self, names: Iterable[str]) -> dict[str, Any]:
        return {
            name: TopicDescription(
                name,
                ZERO_UUID,
                False,
                tuple(
                    PartitionDescription(index, 1, 0, (1, 2), (1, 2), (), None, None)
                    for topic, index in sorted(self.producers)
                    if topic == name
                ),
            )
            for name in names
        }

    def abort_transaction(self, spec: AbortTransactionSpec) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.aborted.append(spec)

    def fence_producers(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: self.refusal or FencingEpoch(7, 4) for name in names}

    def force_terminate_transaction(self, name: str) -> None:
        if self.refusal is not None:
            raise self.refusal
