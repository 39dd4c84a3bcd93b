"""A cluster as the driver sees it, written down: topics, offsets, timestamps, groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from strandline.ids import TopicPartition, Uuid
from strandline.spark.bounds import ObservedTopic, Topics
from strandline.spark.checkpointed_offsets import StreamOffsets
from strandline.spark.options import ReadOptions, read_options

BROKER = {"kafka.bootstrap.servers": "broker:9092"}


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def options(streaming: bool = False, **given: str) -> ReadOptions:
    return read_options(BROKER | {"subscribe": "t"} | given, streaming=streaming)


def offsets(ids: Mapping[str, Uuid] | None = None, /, **by_topic: dict[int, int]) -> StreamOffsets:
    """`offsets(t={0: 5})`; ids are topic_id(1) unless given."""
    known = {topic: topic_id(1) for topic in by_topic} | dict(ids or {})
    return StreamOffsets.of(known, {(topic, p): offset for topic, at in by_topic.items() for p, offset in at.items()})


@dataclasses.dataclass
class MemoryClusterView:
    """`logs`: by partition its earliest and latest offset, and the timestamp of each record between, in milliseconds."""

    logs: dict[TopicPartition, tuple[int, int]]
    ids: dict[str, Uuid] = dataclasses.field(default_factory=dict)
    timestamps: dict[TopicPartition, list[int]] = dataclasses.field(default_factory=dict)
    committed: dict[tuple[str, TopicPartition], int] = dataclasses.field(default_factory=dict)
    sizes: dict[TopicPartition, int] = dataclasses.field(default_factory=dict)
    by_append_time: frozenset[str] = frozenset()
    asked: list[str] = dataclasses.field(default_factory=list)

    def topics(self, names: Iterable[str] | None) -> Topics:
        there = {name for name, _ in self.logs}
        picked = there if names is None else there & set(names)
        return {
            name: ObservedTopic(self.ids.get(name, topic_id(1)), frozenset(p for t, p in self.logs if t == name))
            for name in sorted(picked)
        }

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append("earliest")
        return {p: self.logs[p][0] for p in partitions if p in self.logs}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked.append("latest")
        return {p: self.logs[p][1] for p in partitions if p in self.logs}

    def by_timestamp(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        self.asked.append("by_timestamp")
        assert all(at_least >= 0 for at_least in timestamps_ms.values()), (
            "below 0 Kafka means something else: -1 is latest"
        )
        return {p: self._first(p, at_least) for p, at_least in timestamps_ms.items() if p in self.logs}

    def _first(self, partition: TopicPartition, at_least: int) -> int | None:
        earliest, latest = self.logs[partition]
        times = self.timestamps.get(partition, [])
        assert len(times) in (0, latest - earliest)
        return next((earliest + i for i, time in enumerate(times) if time >= at_least), None)

    def group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: self.committed[group_id, p] for p in partitions if (group_id, p) in self.committed}

    def sizes_bytes(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: self.sizes[p] for p in partitions if p in self.sizes}

    def log_append_time(self, topics: Iterable[str]) -> frozenset[str]:
        return self.by_append_time & frozenset(topics)
