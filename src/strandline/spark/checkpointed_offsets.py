"""Offsets of a stream in Spark's checkpoint: by topic its id, by partition the next offset to read. `stream_reader.py` makes
them; here they become JSON, and are read again.

Spark keeps the end of each batch in its checkpoint and takes it for the start of the next. Of the first batch it keeps no start,
but asks initialOffset() again when a query that died in it starts anew. "Latest" is another number by then, and a batch from there
to the end that was planned would leave out records. So the end of a first batch says where it starts, and that is believed.

Always true: equal offsets give equal JSON (topics by name, partitions by number), since Spark compares texts, and what is read
and not changed is written as it was. A checkpoint of Spark's own Kafka connector is read too; it has no topic ids, so those are
unknown (ZERO_UUID) and match any.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from strandline.ids import ZERO_UUID, TopicPartition, Uuid
from strandline.spark.errors import SparkError

Json = dict[str, Any]
"""A JSON object as Spark passes it, such as an offset."""
FIRST_START = "(start of the first batch)"
"""No topic can be called so."""


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


class StreamOffset(NamedTuple):
    """What Spark takes for one offset: where the next batch starts, and, in the end of a first batch, where that one started."""

    offsets: StreamOffsets
    first_start: StreamOffsets | None = None

    def to_json(self) -> Json:
        value = self.offsets.to_json()
        return value if self.first_start is None else {**value, FIRST_START: self.first_start.to_json()}


def read_offset(value: Json) -> StreamOffset:
    """SparkError if it is no offset of ours."""
    first = value.get(FIRST_START)
    offsets = StreamOffsets.from_json({topic: entry for topic, entry in value.items() if topic != FIRST_START})
    return StreamOffset(offsets, None if first is None else StreamOffsets.from_json(first))
