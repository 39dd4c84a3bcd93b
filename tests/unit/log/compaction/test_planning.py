"""When a log is due, and how far a cleaning may go."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.log.compaction.planning import plan
from strandline.log.log import Log

from ..conftest import NOW, LogDir
from .cleaning import COMPACT, clean, put, records

SIZE = len(b"x") and 70
FIELDS: dict[str, Any] = {**COMPACT, "segment_bytes": 150}


def filled(directory: LogDir, count: int = 9, **fields: Any) -> Log:
    """Two batches to a segment, a millisecond apart; the active one holds the last one or two."""
    log = directory.open(**{**FIELDS, **fields})
    for i in range(count):
        put(log, {f"k{i % 3}": "v"}, timestamp=NOW + i, now_ms=NOW + i)
    return log


def test_all_closed_segments_if_all_is_committed(directory: LogDir) -> None:
    log = filled(directory)
    made = plan(log, None, 9, NOW)
    assert made.job is not None
    assert log.segments.bases == [0, 2, 4, 6, 8]
    assert [source.base_offset for source in made.job.sources] == [0, 2, 4, 6]
    assert (made.first_dirty_offset, made.end_offset, made.dirty_ratio) == (0, 8, 1.0)
    assert (made.clean_bytes, made.cleanable_bytes + made.uncleanable_bytes) == (0, log.size)
    assert not made.is_clamped


@pytest.mark.parametrize(("stable_end", "end"), [(9, 8), (8, 8), (7, 6), (6, 6), (2, 2), (1, 0), (0, 0)])
def test_nothing_above_what_is_stable(directory: LogDir, stable_end: int, end: int) -> None:
    made = plan(filled(directory), None, stable_end, NOW)
    assert made.end_offset == end
    assert (made.job is None) == (end == 0)


def test_the_dirty_ratio_decides(directory: LogDir) -> None:
    log = filled(directory, min_cleanable_dirty_ratio=0.5)
    half = plan(log, 4, 9, NOW)
    assert (half.dirty_ratio, half.job) == (0.5, None)
    more = plan(log, 2, 9, NOW)
    assert more.dirty_ratio == 0.75
    assert more.job is not None
    assert more.job.first_dirty_offset == 2
    assert [source.base_offset for source in more.job.sources] == [0, 2, 4, 6]


def test_nothing_dirty_nothing_to_do(directory: LogDir) -> None:
    log = filled(directory)
    assert plan(log, 8, 9, NOW).job is None
    assert plan(log, 9, 9, NOW).job is None
    assert plan(directory.open(**FIELDS), None, 0, NOW).dirty_ratio == 0


def test_a_log_that_is_not_compacted_is_never_due(directory: LogDir) -> None:
    assert plan(filled(directory, compact=False), None, 9, NOW).job is None


def test_what_is_younger_than_the_minimum_lag_waits(directory: LogDir) -> None:
    log = filled(directory, min_compaction_lag_ms=100)
    # The segments end with timestamps 1, 3, 5 and 7 after NOW.
    assert plan(log, None, 9, NOW + 99).end_offset == 0
    assert plan(log, None, 9, NOW + 101).end_offset == 2
    assert plan(log, None, 9, NOW + 106).end_offset == 6
    assert plan(log, None, 9, NOW + 1000).end_offset == 8
    # What was cleaned before stays clean, whatever its timestamps.
    assert plan(log, 4, 9, NOW + 99).end_offset == 4


def test_what_is_older_than_the_maximum_lag_is_due_whatever_the_ratio(directory: LogDir) -> None:
    log = filled(directory, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=100)
    assert plan(log, None, 9, NOW + 100).job is None
    made = plan(log, None, 9, NOW + 101)
    assert made.job is not None
    assert made.overdue_ms == 1
    assert plan(log, 4, 9, NOW + 101).job is None


def test_an_active_segment_older_than_the_maximum_lag_is_rolled(directory: LogDir) -> None:
    log = filled(directory, max_compaction_lag_ms=100)
    assert plan(log, None, 9, NOW + 108).end_offset == 8
    made = plan(log, None, 9, NOW + 109)
    assert (log.segments.active.base_offset, made.end_offset) == (9, 9)
    assert plan(log, None, 9, NOW + 10_000).end_offset == 9
    assert log.segments.bases[-1] == 9


def test_an_append_rolls_at_the_maximum_lag_too(directory: LogDir) -> None:
    log = directory.open(**COMPACT, max_compaction_lag_ms=100)
    for after_ms in (0, 100, 101):
        put(log, {"a": "1"}, timestamp=NOW + after_ms)
    assert log.segments.bases == [0, 2]
    plain = directory.open(max_compaction_lag_ms=100)
    put(plain, {"a": "1"}, timestamp=NOW + 500)
    assert plain.segments.bases == [0, 2]


def test_a_log_start_that_moved_takes_the_clean_offset_along(directory: LogDir) -> None:
    log = filled(directory)
    log.advance_start(5)
    made = plan(log, 2, 9, NOW)
    assert made.job is not None
    assert (made.first_dirty_offset, made.is_clamped) == (5, True)
    # Segment 0 and 2 wait for retention.
    assert [source.base_offset for source in made.job.sources] == [4, 6]


def test_a_checkpoint_beyond_the_end_is_not_believed(directory: LogDir) -> None:
    made = plan(filled(directory), 50, 9, NOW)
    assert (made.first_dirty_offset, made.is_clamped, made.dirty_ratio) == (0, True, 1.0)


def test_cleaning_goes_on_above_deleted_records(directory: LogDir) -> None:
    log = filled(directory)
    log.advance_start(3)
    clean(directory, log)
    assert [offset for offset, _, _ in records(log) if offset >= 3] == [6, 7, 8]
    log.advance_start(7)
    assert log.read(7, 1000, 9, min_one=True)
