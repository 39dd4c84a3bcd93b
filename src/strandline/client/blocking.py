"""The client for callers without an event loop: every method returns when it is done.

    with Client("127.0.0.1:9092") as client:
        producer = Producer(client)
        producer.send("topic", b"value").result()

The same operations as `aio`, run by a small scheduler (`selecting.py`) while the caller waits. Between calls nothing
happens: records that linger go out with the next `send` that fills a batch, with `flush`, or with `result`; fetches
that were under way go on with the next `poll`, and a member of a group sends its heartbeats only while its caller is
inside `poll`, `commit` or another call: who works longer than session_timeout_ms between two polls loses its place.
(`aio` sends them in the background.) A client and what is made from it belong to one thread.

Always true: a method that failed for want of time leaves the client usable.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from strandline.client.config import CLOSE_TIMEOUT_S, ClientConfig, ConsumerConfig, ProducerConfig
from strandline.client.core.addresses import parse_addresses
from strandline.client.core.cluster_metadata import NO_EPOCH
from strandline.client.errors import BufferExhausted
from strandline.client.flow.client import FlowClient
from strandline.client.selecting import Scheduler

if TYPE_CHECKING:
    import ssl

    # Consumers, producers and administration are loaded when the first is made: many a process needs only one of them,
    # and those that start often, such as Spark's workers, would wait for all.
    from strandline.client.core.batches import Buffer, RecordDelivery, RecordMetadata
    from strandline.client.core.completed_fetch import ConsumerRecord
    from strandline.client.core.group.member import GroupMetadata
    from strandline.client.core.group.offsets import OffsetAndMetadata
    from strandline.client.flow.descriptions import (
        ClusterDescription,
        ConfigEntry,
        ConfigResource,
        CreatedTopic,
        ElectionType,
        FeaturesDescription,
        LogDirDescription,
        NewTopic,
        QuorumInfo,
        RaftEndpoint,
        Reassignment,
        TopicDescription,
        TopicListing,
    )
    from strandline.client.flow.group import Callback
    from strandline.client.flow.group_admin import GroupOffsets
    from strandline.client.flow.group_descriptions import GroupDescription, GroupListing
    from strandline.client.flow.offsets import OffsetAndTimestamp
    from strandline.client.flow.retry import Answers
    from strandline.client.flow.transaction_descriptions import (
        AbortTransactionSpec,
        ActiveProducer,
        DescribedTransaction,
        FencingEpoch,
        TransactionListing,
    )
    from strandline.config.alter import Alteration
    from strandline.errors import KafkaError
    from strandline.ids import TopicPartition, Uuid
    from strandline.records.record import Headers
    from strandline.wire.feature_upgrades import FeatureUpgradeType
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")

__all__ = ["Admin", "Client", "ClientConfig", "Consumer", "ConsumerConfig", "Producer", "ProducerConfig"]


class Client:
    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        config: ClientConfig | None = None,
        tls: ssl.SSLContext | None = None,
        randomness: random.Random | None = None,
        controllers: bool = False,
    ) -> None:
        """`controllers`: the addresses are those of controllers, which are talked to without a broker in between."""
        self.scheduler = Scheduler(tls)
        make = FlowClient
        if controllers:
            from strandline.client.flow.controllers import ControllerClient

            make = ControllerClient
        self.flow = make(
            self.scheduler,
            parse_addresses(bootstrap_servers),
            config or ClientConfig(),
            random.Random() if randomness is None else randomness,
        )

    def request(self, node_id: int | None, api_key: int, message: ApiRequest[R]) -> R:
        """One request and its reply; `None` is any broker that is known or a bootstrap address."""
        return self.scheduler.run(self.flow.request(node_id, api_key, message))

    def close(self) -> None:
        if not self.flow.is_closed:
            self.scheduler.run(self.flow.close())
            self.scheduler.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PendingRecord:
    """The delivery of one record, which the caller may wait for."""

    __slots__ = ("_delivery", "_scheduler")

    def __init__(self, scheduler: Scheduler, delivery: RecordDelivery) -> None:
        self._scheduler = scheduler
        self._delivery = delivery

    @property
    def done(self) -> bool:
        return self._delivery.done

    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        async def wait() -> RecordMetadata:
            return await self._delivery

        return self._delivery.result() if self._delivery.done else self._scheduler.run(wait(), timeout_s)


class Producer:
    def __init__(
        self, client: Client, config: ProducerConfig | None = None, *, allow_auto_topic_creation: bool = True
    ) -> None:
        self._scheduler = client.scheduler
        from strandline.client.flow import producer

        self._flow = producer.FlowProducer(client.flow, config, allow_auto_topic_creation=allow_auto_topic_creation)

    def send(
        self,
        topic: str,
        value: Buffer | None,
        key: Buffer | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> PendingRecord:
        """Take a record, waiting while the buffer is full."""
        try:
            delivery = self._flow.send(topic, value, key, partition, headers, timestamp)
        except BufferExhausted:
            self._scheduler.run(self._flow.drain())
            delivery = self._flow.send(topic, value, key, partition, headers, timestamp)
        if self._scheduler.ready:  # a batch was opened, so the one before it can go
            self._scheduler.turn()
        return PendingRecord(self._scheduler, delivery)

    def flush(self, timeout_s: float | None = None) -> None:
        self._scheduler.run(self._flow.flush(), timeout_s)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """`with producer.transaction():` commits at its end, and aborts if an exception leaves it."""
        block = self._flow.transaction()
        self._scheduler.run(block.__aenter__())
        try:
            yield
        except BaseException as error:
            self._scheduler.run(block.__aexit__(type(error), error, error.__traceback__))
            raise
        else:
            self._scheduler.run(block.__aexit__(None, None, None))

    def init_transactions(self, timeout_ms: int | None = None) -> None:
        self._scheduler.run(self._flow.init_transactions(timeout_ms))

    def begin_transaction(self) -> None:
        self._flow.begin_transaction()

    def commit_transaction(self, timeout_ms: int | None = None) -> None:
        self._scheduler.run(self._flow.commit_transaction(timeout_ms))

    def abort_transaction(self, timeout_ms: int | None = None) -> None:
        self._scheduler.run(self._flow.abort_transaction(timeout_ms))

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: GroupMetadata,
        timeout_ms: int | None = None,
    ) -> None:
        self._scheduler.run(self._flow.send_offsets_to_transaction(offsets, group_metadata, timeout_ms))

    def close(self, timeout_s: float | None = None) -> None:
        self._scheduler.run(self._flow.close(timeout_s))

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(None if kind is None else 0)


class Consumer:
    def __init__(self, client: Client, config: ConsumerConfig | None = None) -> None:
        self._scheduler = client.scheduler
        from strandline.client.flow import consumer

        self._flow = consumer.FlowConsumer(client.flow, config)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self._flow.assign(partitions)

    def assignment(self) -> list[TopicPartition]:
        return self._flow.assignment()

    def seek(self, topic: str, partition: int, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        self._flow.seek(topic, partition, offset, leader_epoch)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        self._flow.seek_to_beginning(partitions)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        self._flow.seek_to_end(partitions)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self._flow.pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self._flow.resume(partitions)

    def position(self, topic: str, partition: int) -> int:
        return self._scheduler.run(self._flow.position(topic, partition))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._scheduler.run(self._flow.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._scheduler.run(self._flow.end_offsets(partitions))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._scheduler.run(self._flow.offsets_for_times(timestamps))

    def paused(self) -> list[TopicPartition]:
        return self._flow.paused()

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """As a member of the group. The callbacks are plain functions; they may use the consumer."""
        self._flow.subscribe(topics, pattern=pattern, on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)

    def unsubscribe(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        self._scheduler.run(self._flow.unsubscribe(timeout_s))

    def subscription(self) -> list[str]:
        return self._flow.subscription()

    def group_metadata(self) -> GroupMetadata:
        return self._flow.group_metadata()

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None, timeout_ms: int | None = None
    ) -> None:
        self._scheduler.run(self._flow.commit(offsets, timeout_ms))

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self._scheduler.run(self._flow.committed(partitions, timeout_ms))

    def poll(self, timeout_s: float = 0.0, records_max: int | None = None) -> list[ConsumerRecord]:
        return self._scheduler.run(self._flow.poll(timeout_s, records_max))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Every record, for ever."""
        while True:
            records = self._scheduler.run(self._flow.take_to_give())
            while records:
                yield records.popleft()

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        self._scheduler.run(self._flow.close(timeout_s))


class Admin:
    def __init__(self, client: Client) -> None:
        self._run = client.scheduler.run
        from strandline.client.flow import admin

        self._flow = admin.FlowAdmin(client.flow)

    def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        return self._run(self._flow.create_topics(topics, timeout_ms=timeout_ms, validate_only=validate_only))

    def delete_topics(self, names: Iterable[str], *, timeout_ms: int = 30_000) -> dict[str, KafkaError | None]:
        return self._run(self._flow.delete_topics(names, timeout_ms=timeout_ms))

    def create_partitions(
        self, counts: Mapping[str, int], *, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        return self._run(self._flow.create_partitions(counts, timeout_ms=timeout_ms, validate_only=validate_only))

    def list_topics(self, *, include_internal: bool = False) -> list[TopicListing]:
        return self._run(self._flow.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription | KafkaError]:
        return self._run(self._flow.describe_topics(names))

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
        return self._run(
            self._flow.describe_configs(
                resources,
                names=names,
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
        )

    def alter_configs(
        self, alterations: Mapping[ConfigResource, Sequence[Alteration]], *, validate_only: bool = False
    ) -> dict[ConfigResource, KafkaError | None]:
        return self._run(self._flow.alter_configs(alterations, validate_only=validate_only))

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> Answers[OffsetAndTimestamp]:
        return self._run(self._flow.list_offsets(timestamps, read_committed=read_committed))

    def delete_records(self, before: Mapping[TopicPartition, int], *, timeout_ms: int = 30_000) -> Answers[int]:
        return self._run(self._flow.delete_records(before, timeout_ms=timeout_ms))

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, node_id: int | None = None
    ) -> Answers[list[ActiveProducer]]:
        return self._run(self._flow.describe_producers(partitions, node_id=node_id))

    def describe_cluster(self, *, include_fenced_brokers: bool = False) -> ClusterDescription:
        return self._run(self._flow.describe_cluster(include_fenced_brokers=include_fenced_brokers))

    def describe_log_dirs(
        self, node_ids: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> dict[int, list[LogDirDescription]]:
        return self._run(self._flow.describe_log_dirs(node_ids, partitions))

    def describe_quorum(self) -> QuorumInfo:
        return self._run(self._flow.describe_quorum())

    def add_raft_voter(self, voter_id: int, directory_id: Uuid, endpoints: Iterable[RaftEndpoint]) -> None:
        self._run(self._flow.add_raft_voter(voter_id, directory_id, endpoints))

    def remove_raft_voter(self, voter_id: int, directory_id: Uuid) -> None:
        self._run(self._flow.remove_raft_voter(voter_id, directory_id))

    def unregister_broker(self, broker_id: int) -> None:
        self._run(self._flow.unregister_broker(broker_id))

    def describe_features(self, node_id: int | None = None) -> FeaturesDescription:
        return self._run(self._flow.describe_features(node_id))

    def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: FeatureUpgradeType | None = None,
        *,
        validate_only: bool = False,
    ) -> dict[str, KafkaError | None]:
        """None is FeatureUpgradeType.UPGRADE."""
        from strandline.wire.feature_upgrades import FeatureUpgradeType

        upgrade_type = FeatureUpgradeType.UPGRADE if upgrade_type is None else upgrade_type
        return self._run(self._flow.update_features(levels, upgrade_type, validate_only=validate_only))

    def elect_leaders(
        self, election_type: ElectionType, partitions: Iterable[TopicPartition] | None = None
    ) -> Answers[None]:
        return self._run(self._flow.elect_leaders(election_type, partitions))

    def alter_partition_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, allow_replication_factor_change: bool = True
    ) -> Answers[None]:
        return self._run(
            self._flow.alter_partition_reassignments(
                targets, allow_replication_factor_change=allow_replication_factor_change
            )
        )

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Reassignment]:
        return self._run(self._flow.list_partition_reassignments(partitions))

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        return self._run(self._flow.list_groups(states, types))

    def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription | KafkaError]:
        return self._run(self._flow.describe_groups(group_ids))

    def list_group_offsets(
        self, groups: Mapping[str, Iterable[TopicPartition] | None], *, require_stable: bool = False
    ) -> dict[str, GroupOffsets | KafkaError]:
        return self._run(self._flow.list_group_offsets(groups, require_stable=require_stable))

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, KafkaError | None]:
        return self._run(self._flow.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        return self._run(self._flow.delete_group_offsets(group_id, partitions))

    def delete_groups(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        return self._run(self._flow.delete_groups(group_ids))

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        return self._run(
            self._flow.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms, pattern=pattern
            )
        )

    def describe_transactions(self, transactional_ids: Iterable[str]) -> dict[str, DescribedTransaction | KafkaError]:
        return self._run(self._flow.describe_transactions(transactional_ids))

    def fence_producers(
        self, transactional_ids: Iterable[str], *, transaction_timeout_ms: int | None = None
    ) -> dict[str, FencingEpoch | KafkaError]:
        return self._run(self._flow.fence_producers(transactional_ids, transaction_timeout_ms=transaction_timeout_ms))

    def force_terminate_transaction(self, transactional_id: str) -> None:
        self._run(self._flow.force_terminate_transaction(transactional_id))

    def abort_transaction(self, spec: AbortTransactionSpec) -> None:
        self._run(self._flow.abort_transaction(spec))
