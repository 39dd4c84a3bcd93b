"""Administration: topics, partitions, configs, records; in `cluster_admin.py` the cluster, in `group_admin.py`
groups, in `transaction_admin.py` transactions.

An operation on several things answers for each: a value, or the KafkaError that it met. What may succeed the next time
(a controller that moved, a broker that went away) is tried again until the time is over; a request whose reply was lost
may then find its own work done, such as TOPIC_ALREADY_EXISTS.

Always true: nothing is cached here; what is returned is what a broker just said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from strandline.client.core.by_topic import by_topic
from strandline.client.flow import offsets
from strandline.client.flow.cluster_admin import Answer, ClusterAdmin, answer_or_error
from strandline.client.flow.controllers import for_controller
from strandline.client.flow.descriptions import (
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    LogDirDescription,
    LogDirReplica,
    NewTopic,
    PartitionDescription,
    ResourceType,
    TopicDescription,
    TopicListing,
)
from strandline.client.flow.group_admin import GroupAdmin
from strandline.client.flow.io import gather
from strandline.client.flow.offsets import OffsetAndTimestamp
from strandline.client.flow.retry import Answers, by_leader, check, retrying
from strandline.client.flow.transaction_admin import TransactionAdmin
from strandline.config.alter import Alteration
from strandline.errors import ErrorCode, KafkaError, error_code
from strandline.ids import TopicPartition
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse
    from strandline.wire.stubs.delete_records import DeleteRecordsRequest
    from strandline.wire.stubs.describe_configs import DescribeConfigsResponse
    from strandline.wire.stubs.describe_log_dirs import DescribeLogDirsResponse
    from strandline.wire.stubs.describe_topic_partitions import DescribeTopicPartitionsResponse
    from strandline.wire.stubs.incremental_alter_configs import IncrementalAlterConfigsResponse
    from strandline.wire.stubs.metadata import MetadataResponse

    _DescribedTopic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    _DescribedPartition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition

R = TypeVar("R", bound="ApiResponse")

METADATA: Final = 3
CREATE_TOPICS: Final = 19
DELETE_TOPICS: Final = 20
DELETE_RECORDS: Final = 21
DESCRIBE_CONFIGS: Final = 32
DESCRIBE_LOG_DIRS: Final = 35
CREATE_PARTITIONS: Final = 37
INCREMENTAL_ALTER_CONFIGS: Final = 44
DESCRIBE_TOPIC_PARTITIONS: Final = 75


class FlowAdmin(ClusterAdmin, GroupAdmin, TransactionAdmin):
    async def _to_controller(self, api_key: int, message: ApiRequest[R], items: Callable[[R], Iterable[Answer]]) -> R:
        """Again if any item was answered NOT_CONTROLLER."""

        def verify(response: R) -> None:
            for item in items(response):
                if item.error_code == ErrorCode.NOT_CONTROLLER:
                    raise KafkaError(ErrorCode.NOT_CONTROLLER, "the controller moved")

        return await self.to_controller(api_key, message, verify)

    # Topics

    async def create_topics(
        self, topics: Iterable[NewTopic], *, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> dict[str, CreatedTopic | KafkaError]:
        Create = messages.request(CREATE_TOPICS)
        message = Create(
            topics=[
                Create.CreatableTopic(
                    name=topic.name,
                    num_partitions=-1 if topic.assignments else topic.num_partitions,
                    replication_factor=-1 if topic.assignments else topic.replication_factor,
                    assignments=[
                        Create.CreatableReplicaAssignment(partition_index=index, broker_ids=list(broker_ids))
                        for index, broker_ids in topic.assignments.items()
                    ],
                    configs=[Create.CreatableTopicConfig(name=k, value=v) for k, v in topic.configs.items()],
                )
                for topic in topics
            ],
            timeout_ms=timeout_ms,
            validate_only=validate_only,
        )
        response = await self._to_controller(CREATE_TOPICS, message, lambda response: response.topics)
        return {
            t.name: answer_or_error(t, CreatedTopic(t.name, t.topic_id, t.num_partitions, t.replication_factor))
            for t in response.topics
        }

    async def delete_topics(self, names: Iterable[str], *, timeout_ms: int = 30_000) -> dict[str, KafkaError | None]:
        Delete = messages.request(DELETE_TOPICS)
        wanted = list(names)
        message = Delete(
            topics=[Delete.DeleteTopicState(name=name) for name in wanted], topic_names=wanted, timeout_ms=timeout_ms
        )
        response = await self._to_controller(DELETE_TOPICS, message, lambda response: response.responses)
        return {t.name: answer_or_error(t, None) for t in response.responses if t.name is not None}

    async def create_partitions(
        self, counts: Mapping[str, int], *, timeout_ms: int = 30_000, validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        """Grow each topic to this many partitions."""
        Create = messages.request(CREATE_PARTITIONS)
        message = Create(
            topics=[Create.CreatePartitionsTopic(name=n, count=c, assignments=None) for n, c in counts.items()],
            timeout_ms=timeout_ms,
            validate_only=validate_only,
        )
        response = await self._to_controller(CREATE_PARTITIONS, message, lambda response: response.results)
        return {t.name: answer_or_error(t, None) for t in response.results}

    async def list_topics(self, *, include_internal: bool = False) -> list[TopicListing]:
        response = await self.call(METADATA, messages.request(METADATA)(topics=None, allow_auto_topic_creation=False))
        check(response.error_code, "listing topics")
        return sorted(
            TopicListing(t.name, t.topic_id, t.is_internal)
            for t in response.topics
            if t.name and (include_internal or not t.is_internal)
        )

    async def describe_topics(self, names: Iterable[str]) -> dict[str, TopicDescription | KafkaError]:
        """With the eligible leader replicas where the broker knows of them (KIP-966)."""
        wanted = sorted(set(names))
        await retrying(self._client, self._client.ensure_known)
        channel = await retrying(self._client, self._client.any_channel)
        if channel.serves(DESCRIBE_TOPIC_PARTITIONS):
            return await self._describe_by_partitions(wanted)
        Metadata = messages.request(METADATA)
        topics = [Metadata.MetadataRequestTopic(name=name) for name in wanted]
        response = await self.call(METADATA, Metadata(topics=topics, allow_auto_topic_creation=False))
        return {
            t.name: answer_or_error(t, _topic(t.name, t, [_partition(p) for p in t.partitions]))
            for t in response.topics
            if t.name is not None
        }

    async def _describe_by_partitions(self, names: Sequence[str]) -> dict[str, TopicDescription | KafkaError]:
        Describe = messages.request(DESCRIBE_TOPIC_PARTITIONS)
        described: dict[str, TopicDescription | KafkaError] = {}
        cursor = None
        while True:
            topics = [Describe.TopicRequest(name=name) for name in names]
            response = await self.call(DESCRIBE_TOPIC_PARTITIONS, Describe(topics=topics, cursor=cursor))
            for t in response.topics:
                if t.name is None:
                    continue
                partitions = [_partition_with_elr(p) for p in t.partitions]
                before = described.get(t.name)
                if isinstance(before, TopicDescription):
                    partitions = [*before.partitions, *partitions]
                described[t.name] = answer_or_error(t, _topic(t.name, t, partitions))
            following = response.next_cursor
            if following is None:
                return described
            # A long answer comes in parts: go on where this one ended.
            cursor = Describe.Cursor(topic_name=following.topic_name, partition_index=following.partition_index)
            names = [name for name in names if name >= following.topic_name]

    # Configs

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry] | KafkaError]:
        """All of them, or those of these names. A broker is asked for its own configs; any broker knows the rest."""
        Describe = messages.request(DESCRIBE_CONFIGS)
        keys = None if names is None else list(names)
        by_node: dict[int | None, list[ConfigResource]] = {}
        for resource in resources:
            by_node.setdefault(resource.node_id, []).append(resource)

        async def ask(node_id: int | None, group: list[ConfigResource]) -> DescribeConfigsResponse:
            entries = [
                Describe.DescribeConfigsResource(resource_type=r.type, resource_name=r.name, configuration_keys=keys)
                for r in group
            ]
            message = Describe(
                resources=entries, include_synonyms=include_synonyms, include_documentation=include_documentation
            )
            return await self.call(DESCRIBE_CONFIGS, message, node_id=node_id)

        replies = await gather(self._client.io, [ask(node_id, group) for node_id, group in by_node.items()])
        return {
            ConfigResource(ResourceType(r.resource_type), r.resource_name): answer_or_error(
                r, [_config(c) for c in r.configs]
            )
            for reply in replies
            for r in reply.results
        }

    async def alter_configs(
        self, alterations: Mapping[ConfigResource, Sequence[Alteration]], *, validate_only: bool = False
    ) -> dict[ConfigResource, KafkaError | None]:
        """Incrementally: keys that are not named stay as they are.
        A client of controllers asks the active one for all.
        """
        Alter = messages.request(INCREMENTAL_ALTER_CONFIGS)
        controller = for_controller(self._client)
        by_node: dict[int | None, list[ConfigResource]] = {}
        for resource in alterations:
            by_node.setdefault(resource.node_id if controller is None else controller, []).append(resource)

        async def ask(node_id: int | None, group: list[ConfigResource]) -> IncrementalAlterConfigsResponse:
            entries = [
                Alter.AlterConfigsResource(
                    resource_type=r.type,
                    resource_name=r.name,
                    configs=[
                        Alter.AlterableConfig(name=a.name, config_operation=a.op, value=a.value) for a in alterations[r]
                    ],
                )
                for r in group
            ]
            message = Alter(resources=entries, validate_only=validate_only)
            return await self.call(INCREMENTAL_ALTER_CONFIGS, message, node_id=node_id)

        replies = await gather(self._client.io, [ask(node_id, group) for node_id, group in by_node.items()])
        return {
            ConfigResource(ResourceType(r.resource_type), r.resource_name): answer_or_error(r, None)
            for reply in replies
            for r in reply.responses
        }

    # Records

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> Answers[OffsetAndTimestamp]:
        """By partition, the offset of a timestamp or of EARLIEST (-2), LATEST (-1), MAX_TIMESTAMP (-3)."""
        return await offsets.list_offsets(self._client, timestamps, read_committed=read_committed)

    async def delete_records(self, before: Mapping[TopicPartition, int], *, timeout_ms: int = 30_000) -> Answers[int]:
        """Delete below these offsets (-1: the high watermark); the new low watermarks."""
        Delete = messages.request(DELETE_RECORDS)

        async def ask(node_id: int, keys: list[TopicPartition]) -> Answers[int]:
            topics: dict[str, DeleteRecordsRequest.DeleteRecordsTopic] = {}
            for topic, partition in keys:
                entry = topics.setdefault(topic, Delete.DeleteRecordsTopic(name=topic, partitions=[]))
                entry.partitions.append(
                    Delete.DeleteRecordsPartition(partition_index=partition, offset=before[topic, partition])
                )
            message = Delete(topics=list(topics.values()), timeout_ms=timeout_ms)
            response = await self._client.request(node_id, DELETE_RECORDS, message)
            return {
                (t.name, p.partition_index): answer_or_error(p, p.low_watermark, f"{t.name}-{p.partition_index}")
                for t in response.topics
                for p in t.partitions
            }

        return await by_leader(self._client, before, ask)

    # Disks

    async def describe_log_dirs(
        self, node_ids: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> dict[int, list[LogDirDescription]]:
        """Every log dir of these brokers, with the size of each replica in it, or of those of these partitions."""
        wanted = list(node_ids)
        Describe = messages.request(DESCRIBE_LOG_DIRS)
        topics = None
        if partitions is not None:
            topics = [Describe.DescribableLogDirTopic(topic=t, partitions=i) for t, i in by_topic(partitions).items()]
        message = Describe(topics=topics)
        replies = await gather(
            self._client.io, [self.call(DESCRIBE_LOG_DIRS, message, node_id=node_id) for node_id in wanted]
        )
        described = {}
        for node_id, reply in zip(wanted, replies, strict=True):
            check(reply.error_code, f"log dirs of node {node_id}")
            described[node_id] = [_log_dir(result) for result in reply.results]
        return described


def _topic(
    name: str,
    topic: MetadataResponse.MetadataResponseTopic | _DescribedTopic,
    partitions: list[PartitionDescription],
) -> TopicDescription:
    return TopicDescription(name, topic.topic_id, topic.is_internal, tuple(sorted(partitions)))


def _partition(p: MetadataResponse.MetadataResponsePartition | _DescribedPartition) -> PartitionDescription:
    return PartitionDescription(
        p.partition_index,
        p.leader_id,
        p.leader_epoch,
        tuple(p.replica_nodes),
        tuple(p.isr_nodes),
        tuple(p.offline_replicas),
        None,
        None,
    )


def _partition_with_elr(p: _DescribedPartition) -> PartitionDescription:
    return _partition(p)._replace(
        elr=tuple(p.eligible_leader_replicas or ()),
        last_known_elr=tuple(p.last_known_elr or ()),
    )


def _config(c: DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    synonyms = tuple((s.name, s.value, s.source) for s in c.synonyms)
    return ConfigEntry(
        c.name, c.value, c.config_source, c.read_only, c.is_sensitive, c.config_type, c.documentation, synonyms
    )


def _log_dir(result: DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDirDescription:
    replicas = {
        (t.name, p.partition_index): LogDirReplica(p.partition_size, p.offset_lag, p.is_future_key)
        for t in result.topics
        for p in t.partitions
    }
    error = None if result.error_code == ErrorCode.NONE else error_code(result.error_code)
    return LogDirDescription(result.log_dir, error, result.total_bytes, result.usable_bytes, replicas)
