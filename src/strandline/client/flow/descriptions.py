"""What administration takes and gives: plain values under Kafka's names.

Always true: nothing here knows how it travels.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition, Uuid


@dataclasses.dataclass(frozen=True, slots=True)
class NewTopic:
    """-1 leaves a number to the broker's default; assignments name the replicas of each partition instead."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = dataclasses.field(default_factory=dict)


class CreatedTopic(NamedTuple):
    name: str
    topic_id: Uuid
    num_partitions: int
    replication_factor: int


class TopicListing(NamedTuple):
    name: str
    topic_id: Uuid
    is_internal: bool


class PartitionDescription(NamedTuple):
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    elr: tuple[int, ...] | None
    """Eligible leader replicas; None if the broker does not say."""
    last_known_elr: tuple[int, ...] | None


class TopicDescription(NamedTuple):
    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


class ResourceType(enum.IntEnum):
    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def _missing_(cls, value: object) -> ResourceType:
        return cls.UNKNOWN


class ConfigResource(NamedTuple):
    """A topic, a broker by its id, or the brokers' default (BROKER with an empty name)."""

    type: ResourceType
    name: str

    @property
    def node_id(self) -> int | None:
        """Who has to be asked; None if anybody can be."""
        is_one_broker = self.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and self.name != ""
        return int(self.name) if is_one_broker else None


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: int
    """Kafka's number: 1 dynamic topic, 2 dynamic broker, 3 dynamic default broker, 4 static broker, 5 default, …"""
    read_only: bool
    is_sensitive: bool
    type: int
    documentation: str | None
    synonyms: tuple[tuple[str, str | None, int], ...]


class LogDirReplica(NamedTuple):
    size_bytes: int
    offset_lag: int
    is_future: bool


class LogDirDescription(NamedTuple):
    path: str
    error: ErrorCode | None
    total_bytes: int
    usable_bytes: int
    replicas: dict[TopicPartition, LogDirReplica]


class ClusterDescription(NamedTuple):
    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerMetadata, ...]
    fenced: frozenset[int]


class RaftEndpoint(NamedTuple):
    """Where a controller listens for the others."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


class QuorumReplicaState(NamedTuple):
    """A voter or observer of the metadata quorum, as its leader sees it. Times are -1 if not known."""

    replica_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumInfo(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplicaState, ...]
    observers: tuple[QuorumReplicaState, ...]
    endpoints: dict[int, tuple[RaftEndpoint, ...]]
    """By controller; empty if the cluster does not say."""


class Feature(NamedTuple):
    """What a node supports, and the level that holds for the cluster (0: turned off)."""

    name: str
    min_version: int
    max_version: int
    finalized_level: int


class FeaturesDescription(NamedTuple):
    features: tuple[Feature, ...]
    epoch: int | None
    """The offset of the metadata that the node knows; None if it does not say."""


class ElectionType(enum.IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class Reassignment(NamedTuple):
    """A partition on its way: `replicas` holds the adding and the removing ones as long as it lasts."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
