"""What a leader sent: the longest sound prefix is taken, and why no more (rules A10 and A11)."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.log.fetched import AppendedFetch, whole_valid_batches
from strandline.log.log import Log
from strandline.records.control import ControlRecordType
from strandline.records.header import assign, iterate

from .conftest import ALL, NOW, LogDir, PoweredLogDir, batch, contents, marker, sized


@pytest.fixture
def directory(powered: PoweredLogDir) -> LogDir:
    return powered


def placed(data: memoryview | bytearray, base_offset: int, epoch: int = 0) -> bytes:
    assign(data, base_offset, epoch)
    return bytes(data)


def three() -> list[bytes]:
    """Offsets 0-1 of epoch 1, 2 of epoch 1, 3-5 of epoch 2."""
    return [placed(batch("a", "b"), 0, 1), placed(batch("c"), 2, 1), placed(batch("d", "e", "f"), 3, 2)]


def take(log: Log, *batches: bytes, max_epoch: int = 9) -> AppendedFetch:
    return log.append_fetched(memoryview(b"".join(batches)), max_epoch, NOW)


def flipped(data: bytes, position: int) -> bytes:
    rotten = bytearray(data)
    rotten[position] ^= 4
    return bytes(rotten)


# Checking


def test_all_of_it_passes() -> None:
    data = b"".join(three())
    found = whole_valid_batches(data, 0, 2)
    assert (len(found.headers), found.size_bytes, found.end_offset, found.problem) == (3, len(data), 6, None)
    assert found.headers == [header for _, header in iterate(data)]


def test_nothing_is_no_problem() -> None:
    assert whole_valid_batches(b"", 7, 2) == ([], 0, 7, None)


def test_a_batch_that_is_cut_off_at_the_end_is_left_alone() -> None:
    first, second, _ = three()
    for size in range(1, len(second)):
        found = whole_valid_batches(first + second[:size], 0, 2)
        assert (found.size_bytes, found.end_offset, found.problem) == (len(first), 2, None)


def test_a_first_batch_that_is_not_whole_is_a_problem() -> None:
    first = three()[0]
    for size in (1, 60, 61, len(first) - 1):
        found = whole_valid_batches(first[:size], 0, 2)
        assert (found.headers, found.size_bytes, found.end_offset) == ([], 0, 0)
        assert "did not come whole" in str(found.problem)


def test_any_flipped_bit_under_the_checksum_stops_there() -> None:
    first, second, third = three()
    for position in range(17, len(second)):
        found = whole_valid_batches(first + flipped(second, position) + third, 0, 2)
        assert (found.size_bytes, found.end_offset) == (len(first), 2), position
        assert found.problem is not None


@pytest.mark.parametrize(
    ("position", "problem"),
    [(0, "starts at offset"), (8, "length"), (12, "later than 2"), (16, "magic")],
)
def test_what_the_checksum_does_not_cover_is_checked_by_sense(position: int, problem: str) -> None:
    first, second, _ = three()
    rotten = bytearray(second)
    rotten[position] ^= 0x80 if position in (0, 8) else 0x40
    found = whole_valid_batches(first + bytes(rotten), 0, 2)
    assert found.end_offset == 2
    assert problem in str(found.problem)


def test_an_offset_that_comes_again_is_refused_and_a_gap_is_not() -> None:
    first, second, third = three()
    again = whole_valid_batches(first + second + second, 0, 2)
    assert (again.end_offset, "starts at offset 2" in str(again.problem)) == (3, True)
    gap = whole_valid_batches(first + third, 0, 2)  # compaction left it
    assert (gap.end_offset, gap.problem) == (6, None)


def test_a10_batches_of_a_later_epoch_are_dropped() -> None:
    """KAFKA-18723: the leader may have changed, and changed back, while it answered."""
    data = b"".join(three())
    found = whole_valid_batches(data, 0, 1)
    assert found.end_offset == 3
    assert "leader epoch 2, later than 1" in str(found.problem)


def test_epochs_do_not_go_back() -> None:
    first, second, _ = three()
    found = whole_valid_batches(first + second, 0, 9, min_epoch=2)
    assert (found.end_offset, "the log is at 2 already" in str(found.problem)) == (0, True)


# Appending


def test_a_follower_takes_the_longest_sound_prefix(directory: LogDir) -> None:
    log = directory.open()
    first, second, third = three()
    took = take(log, first, second, flipped(third, 70))
    assert (took.end_offset, took.bytes) == (3, len(first) + len(second))
    assert "fails its checksum" in str(took.problem)
    assert contents(log) == [(0, "a"), (1, "b"), (2, "c")]
    assert log.epochs.entries == [(1, 0)]
    assert take(log, third) == AppendedFetch(6, len(third), None)
    assert [offset for offset, _ in contents(log)] == list(range(6))
    assert log.epochs.entries == [(1, 0), (2, 3)]
    assert log.appended_bytes == log.size


@pytest.mark.parametrize("junk", [b"", b"\0" * 5, b"\0" * 61, b"\xff" * 200, bytes(range(256))])
def test_junk_is_not_taken_and_raises_nothing(directory: LogDir, junk: bytes) -> None:
    log = directory.open()
    took = take(log, junk)
    assert (took.end_offset, took.bytes, took.problem is None) == (0, 0, not junk)
    assert log.size == 0


def test_one_write_for_all_that_goes_into_a_segment(directory: LogDir, monkeypatch: pytest.MonkeyPatch) -> None:
    log = directory.open(segment_bytes=1000)
    writes: list[int] = []
    kind = type(log.segments.active.file)
    write = kind.append

    def counted(file: Any, data: Any) -> None:
        if file.path.endswith(".log"):
            writes.append(len(data))
        write(file, data)

    monkeypatch.setattr(kind, "append", counted)
    took = take(log, *(placed(sized(200), offset) for offset in range(12)))
    assert took == AppendedFetch(12, 2400, None)
    assert writes == [1000, 1000, 400]
    assert [segment.base_offset for segment in log.segments] == [0, 5, 10]


@pytest.mark.parametrize("fields", [{"segment_bytes": 700}, {"segment_ms": 40}, {"segment_index_bytes": 24}])
def test_many_at_once_make_the_same_log_as_one_by_one(directory: LogDir, fields: dict[str, Any]) -> None:
    """Segments, indexes, epochs and producers, whichever setting rolls the segments."""
    batches: list[bytes] = []
    for i in range(40):
        kind = {"producer_id": i % 3, "producer_epoch": 0, "base_sequence": i // 3, "transactional": i % 3 == 0}
        batches.append(placed(sized(80 + i, timestamp=NOW + 7 * i if i % 11 != 5 else -1, **kind), i, i // 9))
    batches.append(placed(marker(ControlRecordType.ABORT, 0, 0), 40, 5))
    logs = []
    for name, step in (("one", 1), ("seven", 7), ("all", 41)):
        log = LogDir(directory.disk, f"{directory.path}-{name}").open(index_interval_bytes=150, **fields)
        for start in range(0, len(batches), step):
            assert take(log, *batches[start : start + step]).problem is None
        logs.append(log)
    assert len(logs[0].segments) > 3
    for log in logs[1:]:
        assert _shape(log) == _shape(logs[0])


def _shape(log: Log) -> tuple[object, ...]:
    return (
        contents(log),
        log.epochs.entries,
        {producer_id: list(producer.batches) for producer_id, producer in log.producers.by_id.items()},
        [(s.base_offset, s.next_offset, s.size, s.max_timestamp, s.first_timestamp) for s in log.segments],
        [[s.offset_index.get(i) for i in range(s.offset_index.count)] for s in log.segments],
        [[s.time_index.get(i) for i in range(s.time_index.count)] for s in log.segments],
        log.aborted_between(0, 99),
    )


def test_a_log_that_begins_in_the_middle_of_a_batch_gets_all_of_it(directory: LogDir) -> None:
    """The leader's records below 4 were deleted: the follower begins there, and the first batch comes as a whole."""
    log = directory.open()
    log.truncate_fully_and_start_at(4)
    third = three()[2]
    assert take(log, third) == AppendedFetch(6, len(third), None)
    assert (log.log_start_offset, log.log_end_offset, log.segments.active.base_offset) == (4, 6, 3)
    assert [offset for offset, _ in contents(log)] == [4, 5]
    assert log.read(5, ALL, 6, min_one=True) == third


def test_one_that_is_not_empty_never_takes_a_batch_from_before_its_end(directory: LogDir) -> None:
    log = directory.open()
    take(log, *three())
    took = take(log, three()[2])
    assert (took.end_offset, took.bytes) == (6, 0)
    assert "starts at offset 3, but 6 is the next" in str(took.problem)
