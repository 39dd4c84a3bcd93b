"""The records of `__cluster_metadata`: Kafka's own types, as Apache Kafka 4.3 reads and writes them.

Each class has Kafka's name, key and versions; `LEVELS[i]` is the metadata.version from which version `VERSIONS[i]` is the one
to write. Fields that Kafka gives no default must be given, except lists that are nearly always empty.

Always true: a record is an immutable value; how it becomes bytes is in `framing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from strandline.wire.declared import Bool, Bytes, Float64, Id, Int8, Int16, Int32, Int64, String, UInt16, since, tagged

METADATA_VERSION_MIN = 7
"""metadata.version 3.3-IV3, the oldest that Kafka 4 can read."""
METADATA_VERSION_4_2 = 29
"""metadata.version 4.2-IV1."""
METADATA_VERSION_4_3 = 30
"""metadata.version 4.3-IV0, the newest that Apache Kafka 4.3.1 knows and the one it formats a cluster with."""

NO_LEADER = -1
NO_LEADER_CHANGE = -2


class MetadataRecord:
    """What all records have. A record type that has had one version only states no more than its key."""

    __slots__ = ()
    KEY: ClassVar[int]
    VERSIONS: ClassVar[range] = range(1)
    LEVELS: ClassVar[tuple[int, ...]] = (METADATA_VERSION_MIN,)


def version_for(record_class: type[MetadataRecord], metadata_version: int) -> int:
    """The version in which this record is written at this metadata.version; ValueError if it did not exist then."""
    fitting = [
        version
        for version, level in zip(record_class.VERSIONS, record_class.LEVELS, strict=True)
        if level <= metadata_version
    ]
    if not fitting:
        raise ValueError(f"{record_class.__name__} does not exist at metadata.version {metadata_version}")
    return fitting[-1]


BY_KEY: dict[int, type[MetadataRecord]] = {}
"""Every record type, by its key. Filled by the declarations below, never changed after."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(since, tagged))
def record(cls: type) -> type:
    """A frozen dataclass; a record type if it has a key, otherwise a struct inside of one."""
    declared: type = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    if issubclass(declared, MetadataRecord):
        BY_KEY[declared.KEY] = declared
    return declared


# Brokers and controllers


@record
class BrokerEndpoint:
    name: String
    host: String
    port: UInt16
    security_protocol: Int16


@record
class BrokerFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@record
class RegisterBrokerRecord(MetadataRecord):
    KEY = 0
    VERSIONS = range(5)
    LEVELS = (0, METADATA_VERSION_MIN, 8, 17, METADATA_VERSION_4_3)

    broker_id: Int32
    is_migrating_zk_broker: Bool = since(2, default=False)
    incarnation_id: Id
    broker_epoch: Int64
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...] = ()
    rack: String | None = None
    fenced: Bool = True
    in_controlled_shutdown: Bool = since(1, default=False)
    log_dirs: tuple[Id, ...] = tagged(0, since=3, default=())
    cordoned_log_dirs: tuple[Id, ...] | None = tagged(1, since=4, default=None)


@record
class UnregisterBrokerRecord(MetadataRecord):
    KEY = 1

    broker_id: Int32
    broker_epoch: Int64


@record
class FenceBrokerRecord(MetadataRecord):
    """Superseded by BrokerRegistrationChangeRecord; still read."""

    KEY = 7

    id: Int32
    epoch: Int64


@record
class UnfenceBrokerRecord(MetadataRecord):
    """Superseded by BrokerRegistrationChangeRecord; still read."""

    KEY = 8

    id: Int32
    epoch: Int64


@record
class BrokerRegistrationChangeRecord(MetadataRecord):
    """`fenced`: 1 fences, -1 unfences, 0 leaves it. `in_controlled_shutdown`: 1 begins it. None and () change nothing."""

    KEY = 17
    VERSIONS = range(4)
    LEVELS = (0, METADATA_VERSION_MIN, 17, METADATA_VERSION_4_3)

    broker_id: Int32
    broker_epoch: Int64
    fenced: Int8 = tagged(0, default=0)
    in_controlled_shutdown: Int8 = tagged(1, since=1, default=0)
    log_dirs: tuple[Id, ...] = tagged(2, since=2, default=())
    cordoned_log_dirs: tuple[Id, ...] | None = tagged(3, since=3, default=None)


@record
class ControllerEndpoint:
    name: String
    host: String
    port: UInt16
    security_protocol: Int16


@record
class ControllerFeature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


@record
class RegisterControllerRecord(MetadataRecord):
    KEY = 27
    LEVELS = (15,)

    controller_id: Int32
    incarnation_id: Id
    zk_migration_ready: Bool = False
    end_points: tuple[ControllerEndpoint, ...]
    features: tuple[ControllerFeature, ...] = ()


# Topics and partitions


@record
class TopicRecord(MetadataRecord):
    KEY = 2

    name: String
    topic_id: Id


@record
class RemoveTopicRecord(MetadataRecord):
    """Removes its partitions too."""

    KEY = 9

    topic_id: Id


@record
class PartitionRecord(MetadataRecord):
    """`directories` is as long as `replicas`, in the same order. `leader_recovery_state`: 1 while recovering, else 0."""

    KEY = 3
    VERSIONS = range(3)
    LEVELS = (METADATA_VERSION_MIN, 17, 23)

    partition_id: Int32
    topic_id: Id
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    removing_replicas: tuple[Int32, ...] = ()
    adding_replicas: tuple[Int32, ...] = ()
    leader: Int32 = NO_LEADER
    leader_recovery_state: Int8 = tagged(0, default=0)
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: tuple[Id, ...] = since(1, default=())
    eligible_leader_replicas: tuple[Int32, ...] | None = tagged(1, since=2, default=None)
    last_known_elr: tuple[Int32, ...] | None = tagged(2, since=2, default=None)


@record
class PartitionChangeRecord(MetadataRecord):
    """What changed in a partition; whatever has its default did not."""

    KEY = 5
    VERSIONS = range(3)
    LEVELS = (METADATA_VERSION_MIN, 17, 23)

    partition_id: Int32
    topic_id: Id
    isr: tuple[Int32, ...] | None = tagged(0, default=None)
    leader: Int32 = tagged(1, default=NO_LEADER_CHANGE)
    replicas: tuple[Int32, ...] | None = tagged(2, default=None)
    removing_replicas: tuple[Int32, ...] | None = tagged(3, default=None)
    adding_replicas: tuple[Int32, ...] | None = tagged(4, default=None)
    leader_recovery_state: Int8 = tagged(5, default=-1)
    directories: tuple[Id, ...] | None = tagged(8, since=1, default=None)
    eligible_leader_replicas: tuple[Int32, ...] | None = tagged(6, since=2, default=None)
    last_known_elr: tuple[Int32, ...] | None = tagged(7, since=2, default=None)


@record
class ClearElrRecord(MetadataRecord):
    """Forgets the eligible leader replicas of one topic, or of all if the name is empty."""

    KEY = 28
    LEVELS = (23,)

    topic_name: String


# Configuration, features, quotas, producer ids


@record
class ConfigRecord(MetadataRecord):
    """`value` None deletes the key."""

    KEY = 4

    resource_type: Int8
    resource_name: String
    name: String
    value: String | None


@record
class FeatureLevelRecord(MetadataRecord):
    """A metadata log and every snapshot begin with the one for metadata.version. Level 0 is a feature turned off."""

    KEY = 12

    name: String
    feature_level: Int16


@record
class EntityData:
    """`entity_name` None is the default entity of its type."""

    entity_type: String
    entity_name: String | None


@record
class ClientQuotaRecord(MetadataRecord):
    KEY = 14

    entity: tuple[EntityData, ...]
    key: String
    value: Float64
    remove: Bool = False


@record
class ProducerIdsRecord(MetadataRecord):
    """`next_producer_id` is the first one after the block that was handed out."""

    KEY = 15

    broker_id: Int32
    broker_epoch: Int64 = -1
    next_producer_id: Int64


# Security


@record
class AccessControlEntryRecord(MetadataRecord):
    KEY = 18

    id: Id
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@record
class RemoveAccessControlEntryRecord(MetadataRecord):
    KEY = 19

    id: Id


@record
class UserScramCredentialRecord(MetadataRecord):
    KEY = 11
    LEVELS = (11,)

    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


@record
class RemoveUserScramCredentialRecord(MetadataRecord):
    KEY = 22
    LEVELS = (11,)

    name: String
    mechanism: Int8


@record
class DelegationTokenRecord(MetadataRecord):
    KEY = 10
    LEVELS = (14,)

    owner: String
    requester: String
    renewers: tuple[String, ...] = ()
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


@record
class RemoveDelegationTokenRecord(MetadataRecord):
    KEY = 26
    LEVELS = (14,)

    token_id: String


# The log itself


@record
class NoOpRecord(MetadataRecord):
    """Written now and then, so that a quiet log still shows who leads it and how far it is replicated."""

    KEY = 20


@record
class BeginTransactionRecord(MetadataRecord):
    """What follows, up to the end of this metadata transaction, takes effect at once or never."""

    KEY = 23
    LEVELS = (13,)

    name: String | None = tagged(0, default=None)


@record
class EndTransactionRecord(MetadataRecord):
    KEY = 24
    LEVELS = (13,)


@record
class AbortTransactionRecord(MetadataRecord):
    KEY = 25
    LEVELS = (13,)

    reason: String | None = tagged(0, default=None)


@record
class ZkMigrationStateRecord(MetadataRecord):
    """Left in the logs of clusters that came from ZooKeeper."""

    KEY = 21
    LEVELS = (8,)

    zk_migration_state: Int8
