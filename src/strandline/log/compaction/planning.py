"""Whether a log should be cleaned now, and of what such a cleaning consists.

Always true: never the active segment, nothing at or above the end of what is committed and decided (TXN-P32), nothing younger than
`min.compaction.lag.ms`; whole segments only. A log is due when more than `min.cleanable.dirty.ratio` of it is dirty, or when it
holds something dirty that is older than `max.compaction.lag.ms`.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.log.compaction.job import CleanJob
from strandline.log.compaction.reading import SourceSegment
from strandline.log.indexes import OFFSET_ENTRY, TIME_ENTRY
from strandline.log.log import Log

OFFSET_MAP_ENTRIES_MAX = 1_000_000
"""Keys of one cleaning: about 200 bytes each."""


class CleaningPlan(NamedTuple):
    first_dirty_offset: int
    end_offset: int
    """Where the first segment begins that may not be cleaned yet."""
    clean_bytes: int
    cleanable_bytes: int
    uncleanable_bytes: int
    dirty_ratio: float
    """How much of what may be cleaned is dirty."""
    overdue_ms: int
    """By how much `max.compaction.lag.ms` is exceeded; 0 if it is not."""
    is_clamped: bool
    """The checkpoint named an offset that is not in the log: it should say `first_dirty_offset` now."""
    job: CleanJob | None
    """What to do, if the log is due."""


def plan(
    log: Log,
    clean_offset: int | None,
    stable_end: int,
    now_ms: int,
    *,
    offset_map_entries_max: int = OFFSET_MAP_ENTRIES_MAX,
) -> CleaningPlan:
    """`clean_offset` is from the cleaner's checkpoint, `stable_end` the lesser of high watermark and last stable offset.

    An active segment that waits for longer than `max.compaction.lag.ms` is rolled: else it could never be cleaned.
    """
    config = log.config
    if config.compact:
        _roll_overdue(log, now_ms)
    first_dirty, is_clamped = _first_dirty_offset(log, clean_offset)
    end_offset = max(_first_uncleanable_offset(log, stable_end, first_dirty, now_ms), first_dirty)
    clean_bytes = cleanable_bytes = uncleanable_bytes = 0
    earliest = None
    bases = [*log.segments.bases[1:], log.log_end_offset]
    for segment, following in zip(log.segments, bases, strict=True):
        if following <= first_dirty and segment is not log.segments.active:
            clean_bytes += segment.size
        elif following <= end_offset and segment is not log.segments.active:
            cleanable_bytes += segment.size
            if segment.first_timestamp > 0 and (earliest is None or segment.first_timestamp < earliest):
                earliest = segment.first_timestamp
        else:
            uncleanable_bytes += segment.size
    total = clean_bytes + cleanable_bytes
    ratio = cleanable_bytes / total if total else 0.0
    overdue_ms = 0 if earliest is None else max(now_ms - config.max_compaction_lag_ms - earliest, 0)
    is_due = config.compact and cleanable_bytes > 0 and (overdue_ms > 0 or ratio > config.min_cleanable_dirty_ratio)
    job = _job(log, first_dirty, end_offset, now_ms, offset_map_entries_max) if is_due else None
    return CleaningPlan(
        first_dirty, end_offset, clean_bytes, cleanable_bytes, uncleanable_bytes, ratio, overdue_ms, is_clamped, job
    )


def _roll_overdue(log: Log, now_ms: int) -> None:
    active = log.segments.active
    if active.size:
        since_ms = active.first_timestamp if active.first_timestamp >= 0 else active.created_ms
        if now_ms - since_ms > log.config.max_compaction_lag_ms:
            log.roll(now_ms)


def _first_dirty_offset(log: Log, clean_offset: int | None) -> tuple[int, bool]:
    if clean_offset is None:
        return log.log_start_offset, False
    # Above the end: the log lost what was cleaned. Nothing is known of what is there now.
    if log.log_start_offset <= clean_offset <= log.log_end_offset:
        return clean_offset, False
    return log.log_start_offset, True


def _first_uncleanable_offset(log: Log, stable_end: int, first_dirty_offset: int, now_ms: int) -> int:
    limit = min(stable_end, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    end_offset = log.segments.bases[0]
    for segment, following in zip(log.segments, log.segments.bases[1:], strict=False):
        if following > limit or (
            lag_ms > 0 and following > first_dirty_offset and segment.max_timestamp > now_ms - lag_ms
        ):
            break
        end_offset = following
    return end_offset


def _job(log: Log, first_dirty_offset: int, end_offset: int, now_ms: int, offset_map_entries_max: int) -> CleanJob:
    config = log.config
    sources = tuple(
        SourceSegment(
            segment.base_offset,
            segment.next_offset,
            following,
            segment.size,
            segment.offset_index.count * OFFSET_ENTRY.size,
            segment.time_index.count * TIME_ENTRY.size,
        )
        for segment, following in zip(log.segments, log.segments.bases[1:], strict=False)
        # What lies below the log start waits for retention to take it.
        if log.log_start_offset < following <= end_offset
    )
    return CleanJob(
        directory=log.directory,
        sources=sources,
        first_dirty_offset=first_dirty_offset,
        end_offset=end_offset,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        offset_map_entries_max=offset_map_entries_max,
        truncations=log.truncations,
        last_of_producers={
            producer.producer_id: (producer.last_offset, producer.epoch) for producer in log.producers.by_id.values()
        },
        aborted=tuple(log.aborted_between(sources[0].base_offset, end_offset)),
    )
