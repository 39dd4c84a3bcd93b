"""Records that a query should have read and cannot: what was lost where, and what can still be read.

Always true: judging changes nothing and raises nothing; `settle` does, by failOnDataLoss. A topic that was created anew is never
read on at the old topic's offsets: its records are others.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from strandline.ids import TopicPartition
from strandline.spark.bounds import Topics
from strandline.spark.checkpointed_offsets import StreamOffsets
from strandline.spark.errors import DataLoss
from strandline.spark.limits import Offsets
from strandline.spark.splits import OffsetRange


class LossCause(enum.Enum):
    GONE = "gone"
    RECREATED = "recreated"
    ADDED_LATE = "added late"
    AGED_OUT = "aged out"
    WENT_BACK = "went back"


class LostRecords(NamedTuple):
    """`topic_partition` of the first partition that is affected; `what` is a clause that names it."""

    cause: LossCause
    topic_partition: TopicPartition
    what: str


class ReadableRanges(NamedTuple):
    ranges: list[OffsetRange]
    """What can be read, empty ranges left out."""
    losses: list[LostRecords]


def judge(
    start: StreamOffsets, end: StreamOffsets, topics: Topics, earliest: Offsets, latest: Offsets
) -> ReadableRanges:
    """A batch from `start` to `end` against the log as it is now.

    A partition that `start` does not have is new, and is read from its earliest offset.
    """
    judged = ReadableRanges([], [])
    for topic_partition in sorted(start.offsets.keys() - end.offsets.keys()):
        judged.losses.append(_gone(topic_partition))
    for topic_partition, until in sorted(end.offsets.items()):
        topic, partition = topic_partition
        if topic_partition not in earliest or topic_partition not in latest or topic not in topics:
            judged.losses.append(_gone(topic_partition))
        elif not end.is_same_topic(topic, topics[topic].topic_id):
            judged.losses.append(_recreated(topic_partition))
        else:
            first, loss = _first(start, end, topic_partition, earliest[topic_partition])
            last, other_loss = _clipped(
                topic_partition, first, until, earliest[topic_partition], latest[topic_partition]
            )
            judged.losses.extend(found for found in (loss, other_loss) if found is not None)
            first = max(first, earliest[topic_partition])
            if first < last:
                judged.ranges.append(OffsetRange(topic, topics[topic].topic_id, partition, first, last))
    return judged


def vanished(known: StreamOffsets, topics: Topics) -> list[LostRecords]:
    """What a stream has read of and is not there any more, or is there under another id."""
    losses = []
    for topic, partition in sorted(known.offsets):
        if topic not in topics or partition not in topics[topic].partitions:
            losses.append(_gone((topic, partition)))
        elif not known.is_same_topic(topic, topics[topic].topic_id):
            losses.append(_recreated((topic, partition)))
    return losses


def went_back(known: Offsets, latest: Offsets) -> list[TopicPartition]:
    """Partitions whose log ends before what was read of them. It may be a stale answer: ask again before it is believed."""
    return sorted(partition for partition, end in latest.items() if end < known.get(partition, 0))


def settle(losses: Sequence[LostRecords], *, fail_on_data_loss: bool) -> list[str]:
    """DataLoss with the first of them, or one warning for each."""
    if losses and fail_on_data_loss:
        more = f" (and {len(losses) - 1} more partitions)" if len(losses) > 1 else ""
        raise DataLoss(
            f"{losses[0].what}{more}: records may be lost; set failOnDataLoss to false to go on with what is there, "
            "or start with a new checkpointLocation"
        )
    return [f"{loss.what}: records may be lost; the query goes on, since failOnDataLoss is false" for loss in losses]


def _first(
    start: StreamOffsets, end: StreamOffsets, topic_partition: TopicPartition, earliest: int
) -> tuple[int, LostRecords | None]:
    """Where the batch begins in this partition."""
    topic, partition = topic_partition
    if topic in start.topic_ids and not start.is_same_topic(topic, end.topic_ids[topic]):
        return earliest, _recreated(topic_partition)
    if topic_partition in start.offsets:
        return start.offsets[topic_partition], None
    if earliest == 0:
        return 0, None
    what = f"{topic}-{partition} is new to the query and starts at offset {earliest} instead of 0"
    return earliest, LostRecords(LossCause.ADDED_LATE, topic_partition, what)


def _clipped(
    topic_partition: TopicPartition, first: int, until: int, earliest: int, latest: int
) -> tuple[int, LostRecords | None]:
    """How far it can be read, and what is wrong with these offsets."""
    topic, partition = topic_partition
    name = f"{topic}-{partition}"
    if first > until or until > latest:
        end = min(until, latest)
        what = f"{name} is wanted up to offset {max(first, until)}, and its log ends at {end}"
        return end, LostRecords(LossCause.WENT_BACK, topic_partition, what)
    if first < earliest and first < until:
        what = f"{name} has no offset {first} any more: its log starts at {earliest}"
        return until, LostRecords(LossCause.AGED_OUT, topic_partition, what)
    return until, None


def _gone(topic_partition: TopicPartition) -> LostRecords:
    topic, partition = topic_partition
    return LostRecords(
        LossCause.GONE, topic_partition, f"{topic}-{partition} is not there any more, or no longer selected"
    )


def _recreated(topic_partition: TopicPartition) -> LostRecords:
    topic, partition = topic_partition
    what = f"{topic}-{partition} belongs to a topic that was deleted and created again under the same name"
    return LostRecords(LossCause.RECREATED, topic_partition, what)
