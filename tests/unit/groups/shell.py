"""A shard with a log in memory: what the node does for it, as plainly as can be. Every batch is committed at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Answer, CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.groups import framing
from strandline.groups.caller import Caller
from strandline.groups.dependencies import GroupConfig
from strandline.groups.shard import GroupShard
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage

CONFIG = {
    "node.id": "1",
    "process.roles": "broker",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "c1:9093",
    "listeners": "PLAINTEXT://b1:9092",
    "log.dirs": "/data",
}
PARTITION = PartitionImage(replicas=(1,), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0)


class FakeDependencies:
    def __init__(self, **settings: str) -> None:
        named = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = NodeConfig.build(of({**CONFIG, **named}), insecure=True)
        self.image = MetadataImage()
        self.randomness = random.Random(7)

    def group_config(self, group_id: str) -> GroupConfig:
        return GroupConfig(session_timeout_ms=45_000, heartbeat_interval_ms=5_000, assignment_interval_ms=0)

    def set_topics(self, *topics: TopicImage) -> None:
        self.image = MetadataImage(
            end_offset=self.image.end_offset + 1,
            topics={topic.name: topic for topic in topics},
            topics_by_id={topic.topic_id: topic for topic in topics},
        )

    def create(self, name: str, partitions: int) -> TopicImage:
        topic = TopicImage(name, Uuid.draw(self.randomness), (PARTITION,) * partitions)
        self.set_topics(*self.image.topics.values(), topic)
        return topic

    def delete(self, name: str) -> TopicImage:
        topic = self.image.topics[name]
        self.set_topics(*(other for other in self.image.topics.values() if other is not topic))
        return topic


class Entry(NamedTuple):
    """Of the log: a record, or the end of a producer's transaction."""

    key: bytes = b""
    value: bytes | None = None
    producer_id: int = -1
    commits: bool | None = None


class Shell:
    def __init__(self, **settings: str) -> None:
        self.dependencies = FakeDependencies(**settings)
        self.shard = GroupShard(0, self.dependencies)
        self.log: list[Entry] = []
        self.batches: list[int] = []
        self.at = Moment(1000.0, 1_700_000_000_000)
        self.write_error = ErrorCode.NONE
        """Why nothing can be written."""

    def elapse(self, ms: int) -> None:
        self.at = Moment(self.at.now + ms / 1000, self.at.wall_ms + ms)

    def ask(self, operation: Callable[..., CoordinatorResult | None], request: Any, version: int) -> Any:
        """The one answer to a request that has it at once."""
        answers: list[Any] = []
        answer: Answer[Any] = answers.append
        self.carry_out(operation(request, Caller("client", "/127.0.0.1", version), self.at, answer))
        (response,) = answers
        return response

    def carry_out(self, result: CoordinatorResult | None) -> None:
        while result is not None:
            if self.write_error is ErrorCode.NONE:
                producer_id = -1 if result.producer is None else result.producer[0]
                self.write(result.records, replayed=result.replayed, producer_id=producer_id)
            result = result.done(self.write_error, self.at)

    def write(self, records: list[CoordinatorRecord], *, replayed: bool = True, producer_id: int = -1) -> None:
        self.batches.append(len(records))
        for record in records:
            self.log.append(Entry(*framing.encode(record), producer_id))
            if replayed:
                self.shard.replay(record, self.at.wall_ms, producer_id)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        self.log.append(Entry(producer_id=producer_id, commits=commit))
        self.shard.replay_marker(producer_id, commit=commit)

    def reload(self) -> None:
        """Another coordinator takes over, from what the log says."""
        self.shard.unload()
        self.shard = GroupShard(0, self.dependencies)
        for entry in self.log:
            if entry.commits is not None:
                self.shard.replay_marker(entry.producer_id, commit=entry.commits)
                continue
            record = framing.decode(entry.key, entry.value)
            assert record is not None
            self.shard.replay(record, self.at.wall_ms, entry.producer_id)
        self.carry_out(self.shard.loaded(self.at))
