"""What an API gets to work with: the broker's parts, and who is asking.

Always true: an API reaches the rest of the node only through these names.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Container, Coroutine, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from strandline.api.fetch_sessions import FetchSessions
from strandline.api.large_requests import LargeRequests
from strandline.api.topic_bytes import TopicBytes
from strandline.config.dynamic import DynamicConfig
from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.log.errors import CorruptBatch
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.ports import Clock, Disk, is_out_of_handles
from strandline.raft.messages import Request, Response
from strandline.replica.partition import Partition
from strandline.wire.headers import ENVELOPE

if TYPE_CHECKING:
    from strandline.api.follower_sessions import FollowerSessions
    from strandline.api.metadata_news import Told
    from strandline.api.shared_reads import SharedReads
    from strandline.controller.liveness import Liveness
    from strandline.groups.outcome import Moment
    from strandline.groups.outcome import Outcome as GroupOutcome
    from strandline.groups.shard import Shard
    from strandline.raft.replicas import QuorumDescription

T = TypeVar("T")


REPLY_BYTES_MAX = 8 * 1024 * 1024
WAIT_MS_MAX = 5 * 60 * 1000
"""A Fetch waits no longer than this, whatever it asks for: a peer that is gone must not hold its place for weeks (SEC-L7)."""


def wait_s(max_wait_ms: int) -> float:
    """How long a Fetch that asks for so much may wait."""
    return min(max(max_wait_ms, 0), WAIT_MS_MAX) / 1000


class Decider(Protocol):
    """The way to the controller."""

    def __call__(
        self,
        decision: Callable[
            [MetadataImage], tuple[list[MetadataRecord], T] | Generator[int, None, tuple[list[MetadataRecord], T]]
        ],
    ) -> Awaitable[T]:
        """Have `decision` make records and an answer from the newest image; the answer comes once the records are
        committed. What it raises is raised, and nothing is written. No records: nothing is written. One that may take long is
        a generator, which pauses between its parts."""


class Quorum(Protocol):
    """This node's place in the quorum of controllers, as a voter or as an observer."""

    @property
    def is_active(self) -> bool:
        """This node is the active controller."""

    @property
    def leader(self) -> tuple[int, int]:
        """The epoch, and the id of its leader, -1 if that is not known."""

    @property
    def kraft_version(self) -> int: ...

    @property
    def committed(self) -> MetadataImage:
        """The newest committed metadata, which the broker in this node may not have acted on yet."""

    def submit(self, request: Request, answer: Callable[[Response], None]) -> None:
        """Have Raft answer a request of a peer, a broker or a person; `answer` is called once."""

    def cancel(self, answer: Callable[[Response], None]) -> None:
        """Nobody waits for this answer any more."""

    def describe(self) -> QuorumDescription: ...


class Groups(Protocol):
    """The group coordinator of this node."""

    def create_topic(self) -> None:
        """Have `__consumer_offsets` created, unless that is under way; its coordinators are there some time later."""

    def write(
        self,
        group_id: str,
        operation: Callable[[Shard, Moment], GroupOutcome | None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """Have something done that may change the group. What it raises goes to `refuse`, and that it can't be done here."""

    def read(
        self,
        group_id: str,
        operation: Callable[[Shard, Moment], T],
        answer: Callable[[T], None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """Look something up: `answer` gets it once it is committed."""

    def read_all(
        self,
        operation: Callable[[Shard, Moment], list[T]],
        answer: Callable[[list[T]], None],
        refuse: Callable[[KafkaError], None],
    ) -> None:
        """The same of all groups that this node coordinates."""


@dataclass(slots=True)
class Broker:
    """The parts of a node that its APIs use. One that is a controller only hosts no partitions."""

    dynamic_config: DynamicConfig
    cluster_id: str
    disk: Disk
    clock: Clock
    randomness: random.Random
    fetch_sessions: FetchSessions
    topic_bytes: TopicBytes
    image: Callable[[], MetadataImage]
    """The newest metadata that this node has acted on."""
    decide: Decider
    partitions: dict[TopicPartition, Partition]
    """Partitions hosted here, by topic name and index."""
    partitions_by_id: dict[tuple[bytes, int], Partition]
    """The same by topic id, for versions that name topics by id."""
    unopened: Container[TopicPartition]
    """Partitions that belong here and whose log dir failed before they could be opened."""
    log_dirs: Callable[[], Mapping[str, bool]]
    """Absolute paths of the log dirs, and whether each is online."""
    on_storage_error: Callable[[Partition, OSError], None]
    """A log dir failed under this partition."""
    allocate_producer_id: Callable[[], Awaitable[int]]
    """A producer id that nobody ever had."""
    groups: Groups
    quorum: Quorum
    liveness: Liveness
    """Which brokers are alive, as the active controller sees them."""
    ask_controller: Callable[[int, Any], Awaitable[Any]]
    """Send the active controller a request in this node's own name: API key and message, to the response."""
    forward: Callable[[bytes, bytes, bytes], Awaitable[bytes]]
    """Pass a client's request on to the active controller: its frame, principal and host, to the response's frame."""
    image_until: Callable[[Callable[[MetadataImage], bool], float], Awaitable[None]]
    """Wait until the newest committed image is such, at most so many seconds."""
    follower_sessions: FollowerSessions
    shared_reads: SharedReads
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Have something done beside; if it fails, the node fails."""
    told: Told
    """What connections heard last in a Metadata reply."""
    suspects: Callable[[], frozenset[int]] = frozenset
    """Brokers with which this node has just lost touch."""
    departed: Callable[[], frozenset[int]] = frozenset
    """Brokers that were fenced a moment ago."""
    is_leader_throttled: Callable[[Partition], bool] = lambda partition: False
    """Whether the copying of a partition is to be held back for now (`leader.replication.throttled.rate`)."""
    on_refused: Callable[[int, int], None] = lambda api_key, code: None
    """A reply that is written by hand tells this error."""
    on_corrupt: Callable[[Partition, CorruptBatch], None] = lambda partition, error: None
    """A stretch of this partition's log is damaged."""
    on_replicated: Callable[[Partition, int], None] = lambda partition, size_bytes: None
    """So many bytes of a partition went to a follower."""
    on_connection_closed: Callable[[int], None] = lambda connection_id: None
    """A connection of that id, to whichever listener, is no more."""
    warn: Callable[[str], None] = lambda sentence: None
    """Log what the operator should know and the protocol has no place for."""
    client_requests: LargeRequests = field(default_factory=LargeRequests)
    cluster_requests: LargeRequests = field(default_factory=LargeRequests)
    """Those of brokers and controllers: nothing that clients send keeps them waiting, or has them refused."""
    wide_fetches_count: int = 0
    """Fetches in progress that name more partitions than a session may have."""
    connection_ids: Iterator[int] = field(default_factory=itertools.count)

    @property
    def config(self) -> NodeConfig:
        """The configuration that is in force now."""
        return self.dynamic_config.current

    @property
    def node_id(self) -> int:
        return self.config.node_id

    def partition(self, topic: str, index: int) -> Partition:
        """The partition hosted here; KafkaError if there is none."""
        partition = self.partitions.get((topic, index))
        if partition is None:
            raise KafkaError(self.absence_of(topic, index), f"{topic}-{index} is not on node {self.node_id}")
        return partition

    def absence_of(self, topic: str, index: int) -> ErrorCode:
        """Why a partition is not served here."""
        return (
            ErrorCode.KAFKA_STORAGE_ERROR if (topic, index) in self.unopened else self.image().absence_of(topic, index)
        )


@dataclass(slots=True)
class RequestContext:
    """Who asks, in which version. The requests of one connection that agree in these share one."""

    broker: Broker
    api_key: int
    version: int
    client_id: str | None
    listener: str
    peer: str
    loop: asyncio.AbstractEventLoop
    connection_id: int = 0
    """Another one for each connection that this node ever had."""
    may_act_as_broker: bool = False
    """Whether the sender may speak as a broker or a controller of this cluster, which is Kafka's CLUSTER_ACTION (SEC-T6). While
    there is no authorizer the listener decides (`NodeConfig.may_act_as_broker`)."""
    reply_room: Callable[[], int] = lambda: REPLY_BYTES_MAX
    """How many bytes a Fetch may read for this connection now."""
    hold_request: Callable[[int], Callable[[], None]] = lambda size_bytes: lambda: None
    """Count so many bytes of a request that is kept beyond its call, until what this returns is called (SEC-L4)."""

    @property
    def large_requests(self) -> LargeRequests:
        """Where this request counts if it is large. What is in an Envelope was sent by a client."""
        is_clusters = self.may_act_as_broker and self.api_key != ENVELOPE
        return self.broker.cluster_requests if is_clusters else self.broker.client_requests

    @property
    def now_ms(self) -> int:
        return self.broker.clock.wall_ms()


def note_failure(broker: Broker, partition: Partition, error: Exception) -> None:
    """Have a failed log dir, or a damaged stretch of a log, taken care of; whoever asked is told with `code_of`."""
    if isinstance(error, OSError):
        broker.on_storage_error(partition, error)
    elif isinstance(error, CorruptBatch):
        broker.on_corrupt(partition, error)


def code_of(error: Exception) -> tuple[ErrorCode, str | None]:
    """The answer that an exception stands for."""
    if isinstance(error, KafkaError):
        return error.code, error.message
    if isinstance(error, OSError):
        why = "the node has no descriptor left; try again" if is_out_of_handles(error) else "the log dir failed"
        return ErrorCode.KAFKA_STORAGE_ERROR, why
    raise error
