"""The cluster's metadata at one offset: brokers, topics, partitions, configuration, features, producer ids.

Always true: an image never changes; replaying records makes the next one (`replay.py`), which shares what did not change.
A reader can go on with the image that it holds while newer ones come.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.records import NO_LEADER, MetadataRecord

_EMPTY: Mapping[str, str] = MappingProxyType({})

BROKER_RESOURCE, TOPIC_RESOURCE, GROUP_RESOURCE = 4, 2, 32
"""Kafka's ConfigResource types."""
CLUSTER_DEFAULT = ""
"""The name of the broker resource that stands for all brokers."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    directories: tuple[Uuid, ...] = ()
    leader_recovery_state: int = 0
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_LEADER


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    topic_id: Uuid
    partitions: tuple[PartitionImage, ...] = ()

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    listener: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class BrokerImage:
    broker_id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    features: tuple[tuple[str, int, int], ...] = ()
    """Name, lowest and highest level of each feature that it supports."""
    cordoned_log_dirs: tuple[Uuid, ...] = ()
    """Those of its log dirs that get no new partitions."""

    @property
    def active(self) -> bool:
        """May lead partitions and join in-sync replicas."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """Everything up to, not including, `end_offset`."""

    end_offset: int = 0
    epoch: int = 0
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[Uuid, TopicImage] = field(default_factory=dict)
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    """Overrides by resource type and name."""
    features: Mapping[str, int] = field(default_factory=dict)
    next_producer_id: int = 0
    others: Mapping[tuple[int, Hashable], MetadataRecord] = field(default_factory=dict)
    """Records of parts that keep no view of their own here (controllers, quotas, ACLs, credentials, tokens), by key and id."""

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        return self.configs.get((resource_type, name), _EMPTY)

    def topic(self, name_or_id: str | bytes) -> TopicImage | None:
        return self.topics.get(name_or_id) if isinstance(name_or_id, str) else self.topics_by_id.get(Uuid(name_or_id))

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found is not None and 0 <= index < len(found.partitions) else None

    def absence_of(self, topic: str, index: int) -> ErrorCode:
        """Why a broker that does not host this partition can't serve it."""
        if self.partition(topic, index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
