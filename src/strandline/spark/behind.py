"""How far a streaming query is behind the log: latest offsets less those it has read, from its progress.

    offsets_behind_latest(query.lastProgress).maximum

Spark's Kafka connector reports these as source metrics; a Python source has none, so they are worked out of the offsets that Spark
keeps in every progress. They are as fresh as that progress: of the last batch or, on an idle topic, of the last ten seconds.

Always true: the numbers count offsets, not records, and none is below 0; a source that is no log of records is left out.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from strandline.ids import TopicPartition
from strandline.spark.checkpointed_offsets import Json, StreamOffsets, read_offset
from strandline.spark.errors import SparkError


class OffsetsBehindLatest(NamedTuple):
    by_partition: dict[TopicPartition, int]

    @property
    def minimum(self) -> int:
        return min(self.by_partition.values(), default=0)

    @property
    def maximum(self) -> int:
        return max(self.by_partition.values(), default=0)

    @property
    def average(self) -> float:
        return self.total / len(self.by_partition) if self.by_partition else 0.0

    @property
    def total(self) -> int:
        return sum(self.by_partition.values())


def offsets_behind_latest(progress: Json | None) -> OffsetsBehindLatest:
    """Of a `StreamingQueryProgress`, or of the JSON object that it is; of all its sources together. None: no progress yet."""
    behind: dict[TopicPartition, int] = {}
    for source in () if progress is None else progress["sources"]:
        latest, read = _offsets(source, "latestOffset"), _offsets(source, "endOffset")
        if latest is None or read is None:
            continue
        for partition, latest_offset in latest.offsets.items():
            # A partition that no batch has reached yet is not in the offsets; it is read from 0 if nothing was deleted.
            behind[partition] = max(0, latest_offset - read.offsets.get(partition, 0))
    return OffsetsBehindLatest(behind)


def _offsets(source: Json, name: str) -> StreamOffsets | None:
    value = source.get(name)
    if value is None:
        return None
    try:
        return read_offset(json.loads(value) if isinstance(value, str) else value).offsets
    except (SparkError, ValueError, TypeError, AttributeError):
        return None
