"""Retention: whole segments from the oldest on, never above the high watermark."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.log import retention
from strandline.log.log import Log
from strandline.log.txn_index import AbortedTxn

from .conftest import NOW, LogDir, contents, sized


def segments_of(directory: LogDir, *timestamps: int, **fields: Any) -> Log:
    """A log with a segment for each timestamp, of two records and 200 bytes each."""
    log = directory.open(segment_bytes=200, **fields)
    for timestamp in timestamps:
        for _ in range(2):
            log.append_as_leader(sized(100, timestamp=timestamp), 0, NOW)
    assert len(log.segments) == len(timestamps)
    return log


@pytest.mark.parametrize(("retention_ms", "count"), [(-1, 0), (0, 3), (50, 3), (99, 3), (100, 2), (300, 0)])
def test_by_time_the_old_ones_go(directory: LogDir, retention_ms: int, count: int) -> None:
    log = segments_of(directory, NOW - 300, NOW - 200, NOW - 100, NOW, retention_ms=retention_ms)
    assert retention.due(log, log.log_end_offset, NOW) == count


def test_by_time_a_young_segment_protects_what_comes_after(directory: LogDir) -> None:
    log = segments_of(directory, NOW - 300, NOW, NOW - 300, retention_ms=100)
    assert retention.due(log, log.log_end_offset, NOW) == 1


@pytest.mark.parametrize(
    ("retention_bytes", "count"), [(-1, 0), (800, 0), (799, 0), (601, 0), (600, 1), (399, 2), (0, 4)]
)
def test_by_size_only_what_is_whole_above_the_limit_goes(directory: LogDir, retention_bytes: int, count: int) -> None:
    log = segments_of(directory, NOW, NOW, NOW, NOW, retention_bytes=retention_bytes)
    assert retention.due(log, log.log_end_offset, NOW) == count


@pytest.mark.parametrize("high_watermark", range(9))
@pytest.mark.parametrize("limit", [{"retention_ms": 0}, {"retention_bytes": 0}])
def test_nothing_above_the_high_watermark(directory: LogDir, high_watermark: int, limit: dict[str, int]) -> None:
    log = segments_of(directory, *[NOW - 10] * 4, **limit)
    assert retention.due(log, high_watermark, NOW) == high_watermark // 2


def test_txn_p33_an_open_transaction_holds_back_no_segment_and_its_marker_still_ends_it(directory: LogDir) -> None:
    log = directory.open(segment_bytes=200, retention_ms=100)
    for sequence in range(4):
        of_txn = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence, "transactional": True}
        log.append_as_leader(sized(100, timestamp=NOW - 300, **of_txn), 0, NOW)
    log.append_as_leader(sized(100, timestamp=NOW), 0, NOW)
    count = retention.due(log, log.log_end_offset, NOW)
    assert count == 2
    log.drop_segments(count, NOW)
    assert (log.log_start_offset, log.producers.first_unstable_offset(5)) == (4, 0)
    log.append_marker((5, 0), False, 0, 0, NOW, transaction_version=0)
    assert log.producers.first_unstable_offset(log.log_end_offset) is None
    assert log.aborted_between(4, 6) == [AbortedTxn(5, 0, 5, 6)]


def test_what_lies_below_the_log_start_goes_whatever_the_policy(directory: LogDir) -> None:
    log = segments_of(directory, NOW, NOW, NOW, retention_ms=-1, delete=False, compact=True)
    for start, count in ((1, 0), (2, 1), (3, 1), (4, 2), (6, 2)):
        log.advance_start(start)
        assert retention.due(log, log.log_end_offset, NOW) == count


def test_a_compacted_topic_keeps_the_old_and_the_large(directory: LogDir) -> None:
    log = segments_of(directory, 1, 2, 3, retention_ms=1, retention_bytes=1, delete=False, compact=True)
    assert retention.due(log, log.log_end_offset, NOW) == 0


def test_without_timestamps_a_segment_is_as_old_as_its_file(directory: LogDir) -> None:
    log = segments_of(directory, -1, -1, retention_ms=60_000)
    written_ms = directory.disk.mtime_ms(log.segments[0].file.path)
    assert retention.due(log, log.log_end_offset, written_ms + 1000) == 0
    assert retention.due(log, log.log_end_offset, written_ms + 120_000) == 2


def test_dropping_moves_the_log_start_and_marks_the_files(directory: LogDir) -> None:
    log = segments_of(directory, NOW, NOW, NOW)
    doomed = log.drop_segments(2, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (4, 6)
    assert [offset for offset, _ in contents(log)] == [4, 5]
    assert directory.names(".log") == ["00000000000000000004.log"]
    assert len(doomed) == 6
    assert all(directory.disk.exists(path) for path in doomed)
    assert log.epochs.entries == [(0, 4)]


def test_dropping_all_begins_an_empty_segment_at_the_log_end(directory: LogDir) -> None:
    log = segments_of(directory, NOW, NOW, retention_bytes=0)
    log.drop_segments(retention.due(log, 4, NOW), NOW)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (4, 4, 0)
    assert retention.due(log, 4, NOW) == 0
    log.append_as_leader(sized(100), 0, NOW)
    assert [offset for offset, _ in contents(log)] == [4]
    log.close_clean()
    log = directory.open()
    assert (log.log_start_offset, log.log_end_offset) == (4, 5)
