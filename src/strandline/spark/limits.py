"""How far the next micro-batch goes: maxOffsetsPerTrigger, minOffsetsPerTrigger with maxTriggerDelay, maxBytesPerTrigger.

Always true: while there are records to read and nothing says to wait, at least one offset is admitted. maxOffsetsPerTrigger is
never exceeded; maxBytesPerTrigger, by estimate, at most by one record. Shares go by lag, and a partition too small for a share
gets one offset in turn with the others of its kind, so that none starves.
With Trigger.AvailableNow nothing waits for minOffsetsPerTrigger: no more records may ever come.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

from strandline.ids import TopicPartition
from strandline.spark.options.read import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

Offsets = Mapping[TopicPartition, int]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TriggerLimits:
    offsets_max: int | None = None
    bytes_max: int | None = None
    offsets_min: int | None = None
    trigger_delay_max_ms: int = 0

    @classmethod
    def of(cls, options: ReadOptions) -> TriggerLimits:
        return cls(
            offsets_max=options.offsets_per_trigger_max,
            bytes_max=options.bytes_per_trigger_max,
            offsets_min=options.offsets_per_trigger_min,
            trigger_delay_max_ms=options.trigger_delay_max_ms,
        )


def default_read_limit(limits: TriggerLimits) -> ReadLimit:
    """What Spark hands back to us with each trigger. It has no limit of several kinds, so the rest stays with our own options."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

    if limits.offsets_max is not None:
        return ReadMaxRows(limits.offsets_max)
    if limits.bytes_max is not None:
        return ReadMaxBytes(limits.bytes_max)
    if limits.offsets_min is not None:
        return ReadMinRows(limits.offsets_min)
    return ReadAllAvailable()


def under(limits: TriggerLimits, read_limit: ReadLimit) -> TriggerLimits:
    """Our limits under what Spark asks for: everything (Trigger.Once) overrules them, a stricter number tightens them."""
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows

    match read_limit:
        case ReadAllAvailable():
            return TriggerLimits()
        case ReadMaxRows(max_rows):
            return dataclasses.replace(limits, offsets_max=_stricter(limits.offsets_max, max_rows))
        case ReadMaxBytes(max_bytes):
            return dataclasses.replace(limits, bytes_max=_stricter(limits.bytes_max, max_bytes))
        case ReadMinRows(min_rows):
            return dataclasses.replace(limits, offsets_min=min_rows)
    return limits


def within_target(latest: Offsets, target: Offsets) -> dict[TopicPartition, int]:
    """Of Trigger.AvailableNow: no further than what was there when the query began, and no partition that came later."""
    return {partition: min(offset, target[partition]) for partition, offset in latest.items() if partition in target}


class TriggerPace:
    """Whether a trigger waits for more records. The first one never does."""

    def __init__(self) -> None:
        self._last_trigger_ms: int | None = None

    def waits(
        self, limits: TriggerLimits, start: Offsets, latest: Offsets, now_ms: int, *, available_now: bool = False
    ) -> bool:
        """True: the batch would be smaller than minOffsetsPerTrigger, and maxTriggerDelay is not over."""
        last_ms = self._last_trigger_ms
        enough = (
            limits.offsets_min is None
            or available_now
            or last_ms is None
            or now_ms - last_ms >= limits.trigger_delay_max_ms
            or sum(_lags(start, latest).values()) >= limits.offsets_min
        )
        if enough:
            self._last_trigger_ms = now_ms
        return not enough


def admitted(
    limits: TriggerLimits, start: Offsets, latest: Offsets, per_offset: Mapping[TopicPartition, float]
) -> dict[TopicPartition, int]:
    """The end of the next batch, between `start` and `latest`; a partition whose log went back ends where its log does.

    `start` has new partitions at their earliest offset. One that it lacks has no known start, and waits for the next batch.
    """
    latest = {partition: end for partition, end in latest.items() if partition in start}
    lags = _lags(start, latest)
    # At least one byte, so that a partition of unknown size is no free ride.
    sizes = {partition: max(1, round(lag * per_offset.get(partition, 1.0))) for partition, lag in lags.items()}
    offsets_max = limits.offsets_max if limits.offsets_max is not None else sum(lags.values())
    bytes_max = limits.bytes_max if limits.bytes_max is not None else sum(sizes.values())
    if sum(lags.values()) <= offsets_max and sum(sizes.values()) <= bytes_max:
        return latest
    shares = _shares(lags, sizes, offsets_max, bytes_max, turn=sum(start.values()))
    return {
        partition: start[partition] + shares[partition] if partition in lags else end
        for partition, end in latest.items()
    }


def _shares(lags: Offsets, sizes: Offsets, offsets_max: int, bytes_max: int, turn: int) -> dict[TopicPartition, int]:
    """The same part of each lag, as much as both limits allow, rounded down; then one offset each for those left without."""
    all_offsets, all_bytes = sum(lags.values()), sum(sizes.values())
    shares = {
        partition: min(lag, lag * offsets_max // all_offsets, lag * bytes_max // all_bytes)
        for partition, lag in lags.items()
    }
    offsets_left = offsets_max - sum(shares.values())
    bytes_left = bytes_max - sum(-(-sizes[partition] * share // lags[partition]) for partition, share in shares.items())
    without = sorted(partition for partition, share in shares.items() if share == 0)
    # Another order each time, yet the same for the same start: Spark may ask twice.
    random.Random(turn).shuffle(without)
    for place, partition in enumerate(without):
        size_bytes = -(-sizes[partition] // lags[partition])
        # The first may be larger than what is left, or than the limit itself: it would never be read otherwise.
        if offsets_left >= 1 and (bytes_left >= size_bytes or place == 0):
            shares[partition] = 1
            offsets_left -= 1
            bytes_left -= size_bytes
    return shares


def _lags(start: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    return {p: end - start[p] for p, end in latest.items() if end > start.get(p, end)}


def _stricter(ours: int | None, theirs: int) -> int:
    return theirs if ours is None else min(ours, theirs)
