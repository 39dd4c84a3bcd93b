"""Pushed filters: which offsets may hold matching records.

Always true: narrowing may leave out only what no filter lets through, and every filter is handed back to Spark, which applies it
to each row. So what is not understood here is simply not used.
Bounds below a timestamp come from the log's time index. Bounds above need timestamps that grow with the offset, which only
LogAppendTime gives, and it only as far as the clocks of the leaders agree, and to records that were written since the topic has it.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from strandline.spark.bounds import ObservedCluster
from strandline.spark.splits import OffsetRange

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison
    from pyspark.sql.datasource import Filter

CLOCK_SKEW_MS_MAX: Final = 10 * 60_000
"""How far the clocks of two leaders of a LogAppendTime topic may be apart before an upper bound would miss records."""

T = TypeVar("T")
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LONG_MAX: Final = 2**63 - 1


class Narrowing(NamedTuple):
    """None of a set: no restriction. All bounds are inclusive."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    offset_min: int = 0
    offset_max: int = _LONG_MAX
    timestamp_min_ms: int | None = None
    timestamp_max_ms: int | None = None


def narrowing(filters: Iterable[Filter]) -> Narrowing:
    """All of these filters hold for each row that Spark wants."""
    found = Narrowing()
    for pushed in filters:
        found = _with(found, pushed)
    return found


def narrowed(ranges: Sequence[OffsetRange], by: Narrowing, view: ObservedCluster) -> list[OffsetRange]:
    """What is left to read; the log is asked only if timestamps are bounded."""
    kept = [
        r._replace(start=max(r.start, by.offset_min), end=min(r.end, by.offset_max + 1))
        for r in ranges
        if (by.topics is None or r.topic in by.topics) and (by.partitions is None or r.partition in by.partitions)
    ]
    kept = [r for r in kept if r.start < r.end]
    # Below 0 there are only records without a timestamp (-1), which no index finds.
    if by.timestamp_min_ms is not None and by.timestamp_min_ms >= 0 and kept:
        firsts = view.by_timestamp({r.topic_partition: by.timestamp_min_ms for r in kept})
        # No record of that time or later, and so none to read; a partition without an answer is read as it is.
        kept = [
            r._replace(start=max(r.start, r.end if first is None else first))
            for r in kept
            for first in (firsts.get(r.topic_partition, r.start),)
        ]
    if by.timestamp_max_ms is not None and kept:
        ordered = view.log_append_time({r.topic for r in kept})
        after_ms = max(0, by.timestamp_max_ms + 1 + CLOCK_SKEW_MS_MAX)
        lasts = view.by_timestamp({r.topic_partition: after_ms for r in kept if r.topic in ordered})
        kept = [
            r if last is None else r._replace(end=min(r.end, last))
            for r in kept
            for last in (lasts.get(r.topic_partition),)
        ]
    return [r for r in kept if r.start < r.end]


def _with(found: Narrowing, pushed: Filter) -> Narrowing:
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        LessThan,
        LessThanOrEqual,
    )

    match pushed:
        case EqualTo((column,), value) | EqualNullSafe((column,), value):
            return _among(found, column, [value])
        case In((column,), several):
            return _among(found, column, list(several))
        case GreaterThan((column,), value):
            return _between(found, column, value, None, 1)
        case GreaterThanOrEqual((column,), value):
            return _between(found, column, value, None, 0)
        case LessThan((column,), value):
            return _between(found, column, None, value, 1)
        case LessThanOrEqual((column,), value):
            return _between(found, column, None, value, 0)
    return found


def _among(found: Narrowing, column: str, several: Sequence[SupportsRichComparison | None]) -> Narrowing:
    """A null among them matches no record: these columns are never null."""
    some = [value for value in several if value is not None]
    match column:
        case "topic":
            names = [value for value in some if isinstance(value, str)]
            if len(names) == len(some):
                return found._replace(topics=_both(found.topics, frozenset(names)))
        case "partition":
            numbers = [value for value in some if type(value) is int]
            if len(numbers) == len(some):
                return found._replace(partitions=_both(found.partitions, frozenset(numbers)))
    if not some:
        return found
    try:
        low, high = min(some), max(some)
    except TypeError:
        return found
    return _between(found, column, low, high, 0)


def _between(found: Narrowing, column: str, low: object, high: object, beyond: int) -> Narrowing:
    """`beyond` 1: the bounds themselves are not included."""
    match column:
        case "offset":
            if type(low) is int:
                found = found._replace(offset_min=max(found.offset_min, low + beyond))
            if type(high) is int:
                found = found._replace(offset_max=min(found.offset_max, high - beyond))
        case "timestamp":
            # Records have whole milliseconds; Spark's timestamps have microseconds.
            low_us, high_us = _microseconds(low), _microseconds(high)
            if low_us is not None:
                found = found._replace(
                    timestamp_min_ms=_pick(max, found.timestamp_min_ms, -(-(low_us + beyond) // 1000))
                )
            if high_us is not None:
                found = found._replace(timestamp_max_ms=_pick(min, found.timestamp_max_ms, (high_us - beyond) // 1000))
    return found


def _microseconds(value: object) -> int | None:
    """Since 1970; None if it is no moment in time (a timestamp without a zone is none)."""
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // datetime.timedelta(microseconds=1)


def _both(known: frozenset[T] | None, more: frozenset[T]) -> frozenset[T]:
    return more if known is None else known & more


def _pick(which: Callable[[int, int], int], known: int | None, more: int) -> int:
    return more if known is None else which(known, more)
