"""What an API gets to work with: the broker's parts, and who is asking.

Always true: an API reaches the rest of the node only through these names.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from strandline.api.fetch_sessions import FetchSessions
from strandline.api.topic_bytes import TopicBytes
from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import MetadataRecord
from strandline.ports import Clock, Disk
from strandline.replica.partition import Partition

T = TypeVar("T")


class Decider(Protocol):
    """The way to the controller."""

    def __call__(self, decision: Callable[[MetadataImage], tuple[list[MetadataRecord], T]]) -> Awaitable[T]:
        """Have `decision` make records and an answer from the newest image; the answer comes once the records are
        committed and applied here. What it raises is raised, and nothing is written. No records: nothing is written."""


@dataclass(slots=True)
class Broker:
    """The parts of a node that its APIs use."""

    config: NodeConfig
    cluster_id: str
    disk: Disk
    clock: Clock
    randomness: random.Random
    fetch_sessions: FetchSessions
    topic_bytes: TopicBytes
    image: Callable[[], MetadataImage]
    """The newest committed metadata."""
    decide: Decider
    partitions: dict[tuple[str, int], Partition]
    """Partitions hosted here, by topic name and index."""
    partitions_by_id: dict[tuple[bytes, int], Partition]
    """The same by topic id, for versions that name topics by id."""
    log_dirs: Callable[[], Mapping[str, bool]]
    """Absolute paths of the log dirs, and whether each is online."""
    on_storage_error: Callable[[Partition, OSError], None]
    """A log dir failed under this partition."""
    allocate_producer_id: Callable[[], Awaitable[int]]
    """A producer id that nobody ever had."""

    @property
    def node_id(self) -> int:
        return self.config.node_id

    def partition(self, topic: str, index: int) -> Partition:
        """The partition hosted here; KafkaError if there is none."""
        partition = self.partitions.get((topic, index))
        if partition is None:
            raise KafkaError(self.image().absence_of(topic, index), f"{topic}-{index} is not on node {self.node_id}")
        return partition


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

    @property
    def now_ms(self) -> int:
        return self.broker.clock.wall_ms()


def code_of(error: Exception) -> tuple[ErrorCode, str | None]:
    """The answer that an exception stands for."""
    if isinstance(error, KafkaError):
        return error.code, error.message
    if isinstance(error, OSError):
        return ErrorCode.KAFKA_STORAGE_ERROR, "the log dir failed"
    raise error
