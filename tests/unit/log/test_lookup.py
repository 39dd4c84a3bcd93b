"""Offsets by time: ties, timestamps out of order, the greatest one."""

from __future__ import annotations

import random

import pytest

from strandline.log.lookup import TimestampAndOffset, first_at_or_after, of_max_timestamp
from strandline.records.compression import CompressionType

from .conftest import NOW, LogDir, batch, topic

LATER = 10**9


def test_the_first_record_in_offset_order_that_fits(directory: LogDir) -> None:
    log = directory.open()
    log.append_as_leader(batch("a", "b", "c", timestamps=(10, 30, 20)), 4, NOW)
    log.append_as_leader(batch("d", "e", timestamps=(30, 15)), 5, NOW)
    log.append_as_leader(batch("f", timestamps=(40,)), 6, NOW)
    assert first_at_or_after(log, 0) == TimestampAndOffset(10, 0, 4)
    assert first_at_or_after(log, 15) == TimestampAndOffset(30, 1, 4)
    assert first_at_or_after(log, 30) == TimestampAndOffset(30, 1, 4)
    assert first_at_or_after(log, 31) == TimestampAndOffset(40, 5, 6)
    assert first_at_or_after(log, 41) is None


def test_deleted_records_are_not_found(directory: LogDir) -> None:
    log = directory.open()
    log.append_as_leader(batch("a", "b", "c", timestamps=(10, 30, 20)), 0, NOW)
    log.advance_start(2)
    assert first_at_or_after(log, 5) == TimestampAndOffset(20, 2, 0)
    assert first_at_or_after(log, 25) is None


def test_the_greatest_timestamp_is_the_first_of_its_equals(directory: LogDir) -> None:
    log = directory.open(segment_bytes=200)
    assert of_max_timestamp(log) is None
    for timestamps in ((5, 9), (7, 8), (9, 3), (1, 2)):
        log.append_as_leader(batch("a", "b", timestamps=timestamps), 1, NOW)
    assert len(log.segments) > 1
    assert of_max_timestamp(log) == TimestampAndOffset(9, 1, 1)
    log.append_as_leader(batch("a", "b", timestamps=(10, 10)), 1, NOW)
    assert of_max_timestamp(log) == TimestampAndOffset(10, 8, 1)


def test_a_log_without_timestamps_finds_none(directory: LogDir) -> None:
    log = directory.open()
    log.append_as_leader(batch("a", timestamps=(-1,)), 0, NOW)
    assert first_at_or_after(log, 0) is None
    assert of_max_timestamp(log) is None


def test_log_append_time_is_what_is_found(directory: LogDir) -> None:
    log = directory.open(log_append_time=True)
    log.append_as_leader(batch("a", "b", timestamps=(1, 2)), 0, NOW)
    log.append_as_leader(batch("c", timestamps=(1,)), 0, NOW + 5)
    assert first_at_or_after(log, NOW + 1) == TimestampAndOffset(NOW + 5, 2, 0)
    assert of_max_timestamp(log) == TimestampAndOffset(NOW + 5, 2, 0)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("restart", [False, True])
def test_any_log_answers_as_a_list_would(directory: LogDir, seed: int, restart: bool) -> None:
    randomness = random.Random(seed)
    config = topic(segment_bytes=1500, index_interval_bytes=150)
    log = directory.open(segment_bytes=config.segment_bytes, index_interval_bytes=config.index_interval_bytes)
    model: list[int] = []
    for _ in range(60):
        timestamps = tuple(randomness.randrange(200) for _ in range(randomness.randrange(1, 5)))
        codec = randomness.choice([CompressionType.NONE, CompressionType.GZIP])
        log.append_as_leader(batch(*"abcd"[: len(timestamps)], timestamps=timestamps, codec=codec), 3, LATER)
        model += timestamps
    if randomness.random() < 0.5:
        log.truncate_to(len(model) // 2)
        del model[log.log_end_offset :]
    if restart:
        log.close_clean()
        log = directory.open(segment_bytes=config.segment_bytes, index_interval_bytes=config.index_interval_bytes)
    start = randomness.randrange(len(model) // 2)
    log.advance_start(start)
    assert len(log.segments) > 1
    for wanted in range(202):
        expected = next((TimestampAndOffset(t, o, 3) for o, t in enumerate(model) if o >= start and t >= wanted), None)
        assert first_at_or_after(log, wanted) == expected
    assert of_max_timestamp(log) == TimestampAndOffset(max(model), model.index(max(model)), 3)
