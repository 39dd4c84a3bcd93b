"""Offsets of a stream, as Spark keeps them in its checkpoint: by topic its id, by partition the next offset to read.

Always true: equal offsets give equal JSON (topics by name, partitions by number), since Spark compares texts.
A checkpoint of Spark's own Kafka connector is read too; it has no topic ids, so those are unknown (ZERO_UUID) and match any.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from strandline.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.spark.errors import SparkError

Json = dict[str, Any]
"""A JSON object as Spark passes it, such as an offset."""


@dataclasses.dataclass(frozen=True, slots=True)
class StreamOffsets:
    topic_ids: Mapping[str, Uuid]
    offsets: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        assert {topic for topic, _ in self.offsets} == set(self.topic_ids), "each topic has an id and a partition"

    @classmethod
    def of(cls, topic_ids: Mapping[str, Uuid], offsets: Mapping[TopicPartition, int]) -> StreamOffsets:
        """With the ids of the topics that have offsets; `topic_ids` may know of more."""
        return cls({topic: topic_ids[topic] for topic, _ in sorted(offsets)}, dict(sorted(offsets.items())))

    @classmethod
    def from_json(cls, value: Json) -> StreamOffsets:
        """From our own form, or {"topic": {"0": n}} of Spark's Kafka connector; SparkError if it is neither."""
        topic_ids: dict[str, Uuid] = {}
        offsets: dict[TopicPartition, int] = {}
        try:
            for topic, entry in sorted(value.items()):
                is_ours = "partitions" in entry
                partitions = entry["partitions"] if is_ours else entry
                topic_ids[topic] = Uuid.parse(entry["id"]) if is_ours else ZERO_UUID
                numbered = {int(partition): offset for partition, offset in partitions.items()}
                if not numbered or not all(type(offset) is int and offset >= 0 for offset in numbered.values()):
                    raise ValueError("an offset is a number of at least 0")
                offsets |= {(topic, partition): numbered[partition] for partition in sorted(numbered)}
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            raise SparkError(
                f"the checkpoint's offsets {value!r} are not those of this source ({error}); use a new checkpointLocation"
            ) from None
        return cls(topic_ids, offsets)

    def to_json(self) -> Json:
        value: Json = {topic: {"id": str(self.topic_ids[topic]), "partitions": {}} for topic in sorted(self.topic_ids)}
        for (topic, partition), offset in sorted(self.offsets.items()):
            value[topic]["partitions"][str(partition)] = offset
        return value

    def is_same_topic(self, topic: str, topic_id: Uuid) -> bool:
        """False only if both ids are known and differ: the topic was deleted and created again."""
        known = self.topic_ids.get(topic, ZERO_UUID)
        return known == topic_id or ZERO_UUID in (known, topic_id)
