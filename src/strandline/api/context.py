"""What an API gets to work with: the parts of its node, and who is asking.

Always true: an API reaches the rest of the node only through these names.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strandline.api.access.controller import ControllerAccess
from strandline.api.access.groups import GroupAccess
from strandline.api.access.hosted_partitions import HostedPartitions
from strandline.api.access.metadata import MetadataView
from strandline.api.cluster.topic_bytes import TopicBytes
from strandline.api.fetching.fetch_sessions import FetchSessions
from strandline.api.requests.large_requests import LargeRequests
from strandline.api.requests.request_stats import RequestStats
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import CorruptBatch
from strandline.ports import Clock, Disk, is_out_of_handles
from strandline.replica.partition import Partition
from strandline.wire.headers import ENVELOPE

if TYPE_CHECKING:
    from strandline.api.access.transactions import TransactionAccess
    from strandline.api.cluster.metadata_updates import SentMetadata
    from strandline.api.fetching.follower_sessions import FollowerSessions
    from strandline.api.fetching.shared_reads import SharedReads
    from strandline.api.transactions.marker_writing import MarkerWriter

REPLY_BYTES_MAX = 8 * 1024 * 1024
WAIT_MS_MAX = 5 * 60 * 1000
"""A Fetch waits no longer than this, whatever it asks for: a peer that is gone must not hold its place for weeks
(SEC-L7)."""


def wait_s(max_wait_ms: int) -> float:
    """How long a Fetch that asks for so much may wait."""
    return min(max(max_wait_ms, 0), WAIT_MS_MAX) / 1000


@dataclass(slots=True)
class FetchResources:
    """What the Fetches of clients share."""

    sessions: FetchSessions
    shared_reads: SharedReads
    topic_bytes: TopicBytes


@dataclass(slots=True)
class ReplicaFetchResources:
    """What the Fetches of followers share, and the throttle of the leaders here."""

    sessions: FollowerSessions
    is_throttled: Callable[[Partition], bool]
    """Whether the copying of a partition is to be held back for now (`leader.replication.throttled.rate`)."""
    replicated: Callable[[Partition, int], None]
    """So many bytes of a partition went to a follower."""


@dataclass(slots=True)
class Connections:
    """The numbers of the connections that this node ever had, to whichever listener, and what was said on each."""

    metadata_seen: SentMetadata
    closed: Callable[[int], None]
    """A connection of that number is no more."""
    ids: Iterator[int] = field(default_factory=itertools.count)


@dataclass(slots=True)
class RequestLimits:
    """How much of what is large is under way."""

    client_requests: LargeRequests = field(default_factory=LargeRequests)
    cluster_requests: LargeRequests = field(default_factory=LargeRequests)
    """Those of brokers and controllers: nothing that clients send keeps them waiting, or has them refused."""
    wide_fetches_count: int = 0
    """Fetches in progress that name more partitions than a session may have."""


@dataclass(slots=True)
class NodeContext:
    """The parts of a node that its APIs use. One that is a controller only hosts no partitions."""

    dynamic_config: DynamicConfig
    cluster_id: str
    disk: Disk
    clock: Clock
    randomness: random.Random
    metadata: MetadataView
    controller: ControllerAccess
    hosted: HostedPartitions
    fetches: FetchResources
    followers: ReplicaFetchResources
    groups: GroupAccess
    transactions: TransactionAccess
    markers: MarkerWriter
    connections: Connections
    request_stats: RequestStats
    allocate_producer_id: Callable[[], Awaitable[int]]
    """A producer id that was never given before."""
    spawn: Callable[[Coroutine[object, None, None]], None]
    """Have something done beside; if it fails, the node fails."""
    warn: Callable[[str], None]
    """Log what the operator should know and the protocol has no place for."""
    limits: RequestLimits = field(default_factory=RequestLimits)

    @property
    def config(self) -> NodeConfig:
        """The configuration that is in force now."""
        return self.dynamic_config.current

    @property
    def node_id(self) -> int:
        return self.config.node_id

    def partition(self, topic: str, index: int) -> Partition:
        """The partition hosted here; KafkaError if there is none."""
        partition = self.hosted.by_name.get((topic, index))
        if partition is None:
            raise KafkaError(self.absence_of(topic, index), f"{topic}-{index} is not on node {self.node_id}")
        return partition

    def absence_of(self, topic: str, index: int) -> ErrorCode:
        """Why a partition is not served here."""
        if (topic, index) in self.hosted.unopened:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return self.metadata.image().absence_of(topic, index)


@dataclass(slots=True)
class RequestContext:
    """Who asks, in which version. The requests of one connection that agree in these share one."""

    node: NodeContext
    api_key: int
    version: int
    client_id: str | None
    listener: str
    peer: str
    loop: asyncio.AbstractEventLoop
    connection_id: int = 0
    """Another one for each connection that this node ever had."""
    may_act_as_broker: bool = False
    """Whether the sender may speak as a broker or a controller of this cluster, which is Kafka's CLUSTER_ACTION
    (SEC-T6). While there is no authorizer the listener decides (`NodeConfig.may_act_as_broker`)."""
    reply_room: Callable[[], int] = lambda: REPLY_BYTES_MAX
    """How many bytes a Fetch may read for this connection now."""
    hold_request: Callable[[int], Callable[[], None]] = lambda size_bytes: lambda: None
    """Count so many bytes of a request that is kept beyond its call, until what this returns is called (SEC-L4)."""

    @property
    def large_requests(self) -> LargeRequests:
        """Where this request counts if it is large. What is in an Envelope was sent by a client."""
        is_clusters = self.may_act_as_broker and self.api_key != ENVELOPE
        return self.node.limits.cluster_requests if is_clusters else self.node.limits.client_requests

    @property
    def now_ms(self) -> int:
        return self.node.clock.wall_ms()


def note_failure(node: NodeContext, partition: Partition, error: Exception) -> None:
    """Have a failed log dir, or a damaged stretch of a log, taken care of. The answer to the request is `code_of`."""
    if isinstance(error, OSError):
        node.hosted.storage_failed(partition, error)
    elif isinstance(error, CorruptBatch):
        node.hosted.damaged(partition, error)


def code_of(error: Exception) -> tuple[ErrorCode, str | None]:
    """The answer that an exception stands for."""
    if isinstance(error, KafkaError):
        return error.code, error.message
    if isinstance(error, OSError):
        why = "the node has no descriptor left; try again" if is_out_of_handles(error) else "the log dir failed"
        return ErrorCode.KAFKA_STORAGE_ERROR, why
    raise error
