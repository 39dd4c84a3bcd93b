"""The records of `__consumer_offsets`: Kafka's own types, as Apache Kafka 4.3 reads and writes them.

Each key has Kafka's name and type, and names the class of its values. `FLEXIBLE` is the first version of a value that
has tagged fields; keys never do. Share and streams groups have types of their own, which are not ours.

Always true: a record is an immutable value; a value of None removes what the key stands for; how a record becomes bytes
is in `framing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from strandline.coordinator.record import CoordinatorKey, CoordinatorValue
from strandline.ids import ZERO_UUID
from strandline.wire.declared import Bytes, Id, Int8, Int32, Int64, String, since, tagged

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1


BY_TYPE: dict[int, type[CoordinatorKey]] = {}
"""Every key, by its type. Filled by the declarations below, never changed after."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(since, tagged))
def record(cls: type) -> type:
    """A frozen dataclass: a key, a value, or a struct inside of one."""
    declared: type = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    if issubclass(declared, CoordinatorKey):
        BY_TYPE[declared.TYPE] = declared
    return declared


# Offsets


@record
class OffsetCommitValue(CoordinatorValue):
    VERSIONS = range(5)
    FLEXIBLE = 4
    GONE: ClassVar[dict[str, int]] = {"expire_timestamp": 2}

    offset: Int64
    leader_epoch: Int32 = since(3, default=NO_LEADER_EPOCH)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = since(1, default=NO_TIMESTAMP)
    """In version 1 alone, which is therefore the one to write if it is given."""
    topic_id: Id = tagged(0, since=4, default=ZERO_UUID)

    @property
    def version_to_write(self) -> int:
        return 4 if self.expire_timestamp == NO_TIMESTAMP else 1


@record
class OffsetCommitKey(CoordinatorKey):
    TYPE = 1
    VALUE = OffsetCommitValue

    group: String
    topic: String
    partition: Int32


# Classic groups


@record
class MemberMetadata:
    member_id: String
    group_instance_id: String | None = since(3, default=None)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = since(1, default=-1)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


@record
class GroupMetadataValue(CoordinatorValue):
    VERSIONS = range(5)
    FLEXIBLE = 4

    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = since(2, default=NO_TIMESTAMP)
    members: tuple[MemberMetadata, ...]

    @property
    def version_to_write(self) -> int:
        return 3


@record
class GroupMetadataKey(CoordinatorKey):
    TYPE = 2
    VALUE = GroupMetadataValue

    group: String


# Groups of the consumer protocol


@record
class ConsumerGroupMetadataValue(CoordinatorValue):
    epoch: Int32
    metadata_hash: Int64 = tagged(0, default=0)


@record
class ConsumerGroupMetadataKey(CoordinatorKey):
    TYPE = 3
    VALUE = ConsumerGroupMetadataValue

    group_id: String


@record
class SubscribedPartitionMetadata:
    partition: Int32
    racks: tuple[String, ...]


@record
class SubscribedTopicMetadata:
    topic_id: Id
    topic_name: String
    num_partitions: Int32
    partition_metadata: tuple[SubscribedPartitionMetadata, ...] = ()


@record
class ConsumerGroupPartitionMetadataValue(CoordinatorValue):
    """Written before 4.1; since then only removed."""

    topics: tuple[SubscribedTopicMetadata, ...]


@record
class ConsumerGroupPartitionMetadataKey(CoordinatorKey):
    TYPE = 4
    VALUE = ConsumerGroupPartitionMetadataValue

    group_id: String


@record
class ClassicProtocol:
    name: String
    metadata: Bytes


@record
class ClassicMemberMetadata:
    session_timeout_ms: Int32 = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


@record
class ConsumerGroupMemberMetadataValue(CoordinatorValue):
    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[String, ...]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None
    classic_member_metadata: ClassicMemberMetadata | None = tagged(0, default=None, null_is_sent=True)
    """None: the member uses the consumer protocol."""


@record
class ConsumerGroupMemberMetadataKey(CoordinatorKey):
    TYPE = 5
    VALUE = ConsumerGroupMemberMetadataValue

    group_id: String
    member_id: String


@record
class ConsumerGroupTargetAssignmentMetadataValue(CoordinatorValue):
    assignment_epoch: Int32
    assignment_timestamp: Int64 = tagged(0, default=0)


@record
class ConsumerGroupTargetAssignmentMetadataKey(CoordinatorKey):
    TYPE = 6
    VALUE = ConsumerGroupTargetAssignmentMetadataValue

    group_id: String


@record
class TopicPartition:
    """Of a target assignment: a topic's partitions, despite Kafka's name."""

    topic_id: Id
    partitions: tuple[Int32, ...]


@record
class ConsumerGroupTargetAssignmentMemberValue(CoordinatorValue):
    topic_partitions: tuple[TopicPartition, ...]


@record
class ConsumerGroupTargetAssignmentMemberKey(CoordinatorKey):
    TYPE = 7
    VALUE = ConsumerGroupTargetAssignmentMemberValue

    group_id: String
    member_id: String


@record
class TopicPartitions:
    """Of a current assignment: a topic's partitions, and the epoch in which the member was given each."""

    topic_id: Id
    partitions: tuple[Int32, ...]
    assignment_epochs: tuple[Int32, ...] | None = tagged(0, default=None)


@record
class ConsumerGroupCurrentMemberAssignmentValue(CoordinatorValue):
    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[TopicPartitions, ...]
    partitions_pending_revocation: tuple[TopicPartitions, ...]


@record
class ConsumerGroupCurrentMemberAssignmentKey(CoordinatorKey):
    TYPE = 8
    VALUE = ConsumerGroupCurrentMemberAssignmentValue

    group_id: String
    member_id: String


@record
class ConsumerGroupRegularExpressionValue(CoordinatorValue):
    topics: tuple[String, ...]
    version: Int64
    timestamp: Int64


@record
class ConsumerGroupRegularExpressionKey(CoordinatorKey):
    TYPE = 16
    VALUE = ConsumerGroupRegularExpressionValue

    group_id: String
    regular_expression: String
