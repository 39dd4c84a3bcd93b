"""From offset ranges to splits, one for each of Spark's tasks.

Always true: the splits of a range cover it, in order and without overlap; none is empty. Without minPartitions and
maxRecordsPerPartition a range is one split. With them, splits are of about equal bytes, estimated as bytes per offset: a log's
size over its offsets, so that gaps of compacted topics and large records both count as what they are.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from strandline.ids import TopicPartition, Uuid

_Known = tuple[int, int]
"""A log's bytes and offsets."""


class OffsetRange(NamedTuple):
    """Offsets `start` up to and without `end` of one partition."""

    topic: str
    topic_id: Uuid
    partition: int
    start: int
    end: int

    @property
    def topic_partition(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def offsets_count(self) -> int:
        return self.end - self.start


class Split(NamedTuple):
    """What one task reads; small, since Spark sends it to an executor."""

    topic: str
    topic_id: Uuid
    partition: int
    start: int
    end: int
    size_bytes_estimate: int


def bytes_per_offset(
    sizes_bytes: Mapping[TopicPartition, int],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> dict[TopicPartition, float]:
    """Of each partition in `latest`. One of unknown size is taken to be as its topic's others, or else as all others.

    If nothing is known, one byte per offset: then shares go by offsets.
    """
    known: dict[TopicPartition, _Known] = {}
    of_topic: dict[str, list[_Known]] = {}
    for partition, end in latest.items():
        count = end - earliest.get(partition, end)
        if count > 0 and sizes_bytes.get(partition, 0) > 0:
            known[partition] = sizes_bytes[partition], count
            of_topic.setdefault(partition[0], []).append(known[partition])
    alike = {topic: _ratio(several) for topic, several in of_topic.items()}
    overall = _ratio(known.values())
    return {
        partition: _ratio([known[partition]]) if partition in known else alike.get(partition[0], overall)
        for partition in latest
    }


def splits(
    ranges: Sequence[OffsetRange],
    per_offset: Mapping[TopicPartition, float],
    *,
    partitions_min: int | None = None,
    records_per_partition_max: int | None = None,
) -> list[Split]:
    """In the order of topic, partition and offset; at least `partitions_min`, as far as there are offsets for them."""
    whole = sorted(r for r in ranges if r.offsets_count > 0)
    parts = [
        1 if records_per_partition_max is None else -(-r.offsets_count // records_per_partition_max) for r in whole
    ]
    if partitions_min is not None:
        _divide_largest(whole, parts, per_offset, partitions_min)
    divided: list[Split] = []
    for r, count in zip(whole, parts, strict=True):
        cuts = [r.start + r.offsets_count * part // count for part in range(count + 1)]
        divided += [
            Split(r.topic, r.topic_id, r.partition, start, end, _size(r, end - start, per_offset))
            for start, end in itertools.pairwise(cuts)
        ]
    return divided


def _divide_largest(
    ranges: Sequence[OffsetRange], parts: list[int], per_offset: Mapping[TopicPartition, float], partitions_min: int
) -> None:
    """One part more for whichever range has the largest parts, until there are enough: no other way has a smaller largest part."""
    sizes = [r.offsets_count * per_offset.get(r.topic_partition, 1.0) for r in ranges]
    largest = [(-size / parts[i], i) for i, size in enumerate(sizes) if parts[i] < ranges[i].offsets_count]
    heapq.heapify(largest)
    for _ in range(partitions_min - sum(parts)):
        if not largest:
            return  # each offset is a split of its own
        _, i = largest[0]
        parts[i] += 1
        if parts[i] < ranges[i].offsets_count:
            heapq.heapreplace(largest, (-sizes[i] / parts[i], i))
        else:
            heapq.heappop(largest)


def _size(r: OffsetRange, offsets_count: int, per_offset: Mapping[TopicPartition, float]) -> int:
    return round(offsets_count * per_offset.get(r.topic_partition, 1.0))


def _ratio(several: Collection[_Known]) -> float:
    return sum(size for size, _ in several) / sum(count for _, count in several) if several else 1.0
