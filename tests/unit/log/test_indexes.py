"""Sparse indexes: where to start looking, what is left after a cut, which files can't be right."""

from __future__ import annotations

import pytest

from strandline.log.errors import CorruptLog
from strandline.log.indexes import OffsetIndex, TimeIndex

from .conftest import LogDir

BASE = 100


@pytest.fixture
def offsets(directory: LogDir) -> OffsetIndex:
    directory.disk.mkdir(directory.path)
    index = OffsetIndex(directory.disk, directory.file("a.index"), BASE, 1024)
    index.begin()
    return index


@pytest.fixture
def times(directory: LogDir) -> TimeIndex:
    directory.disk.mkdir(directory.path)
    index = TimeIndex(directory.disk, directory.file("a.timeindex"), BASE, 1024)
    index.begin()
    return index


def test_the_last_entry_not_beyond_an_offset(offsets: OffsetIndex) -> None:
    assert offsets.floor(50) == -1
    for last_offset, position in ((110, 1000), (120, 2000), (130, 3000)):
        offsets.add(last_offset, position)
    floors = [offsets.floor(at - BASE) for at in (100, 109, 110, 119, 120, 129, 130, 999)]
    assert floors == [-1, -1, 0, 0, 1, 1, 2, 2]
    assert [offsets.entry(i) for i in range(3)] == [(110, 1000), (120, 2000), (130, 3000)]
    assert [offsets.before(position) for position in (0, 1000, 1001, 2000, 3000, 9999)] == [-1, -1, 0, 0, 1, 2]


def test_offset_entries_are_kafkas_bytes(offsets: OffsetIndex, directory: LogDir) -> None:
    offsets.add(110, 1000)
    offsets.add(120, 2000)
    offsets.seal()
    assert directory.bytes("a.index") == bytes.fromhex("0000000a000003e800000014000007d0")


def test_time_entries_are_kafkas_bytes(times: TimeIndex, directory: LogDir) -> None:
    times.add_if_later(0x0102, 110)
    times.seal()
    assert directory.bytes("a.timeindex") == bytes.fromhex("00000000000001020000000a")


def test_a_sealed_index_answers_from_its_file_and_can_be_written_again(offsets: OffsetIndex) -> None:
    offsets.add(110, 1000)
    offsets.seal()
    assert offsets.entry(offsets.floor(15)) == (110, 1000)
    offsets.reopen()
    offsets.add(120, 2000)
    offsets.seal()
    again = OffsetIndex(offsets._disk, offsets.path, BASE, 1024)
    again.load()
    assert [again.get(i) for i in range(again.count)] == [(10, 1000), (20, 2000)]


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize(("offset", "left"), [(100, 0), (110, 0), (111, 1), (120, 1), (121, 2), (500, 3)])
def test_truncation_keeps_the_entries_below(offsets: OffsetIndex, sealed: bool, offset: int, left: int) -> None:
    for last_offset, position in ((110, 1000), (120, 2000), (130, 3000)):
        offsets.add(last_offset, position)
    if sealed:
        offsets.seal()
    offsets.truncate_to(offset)
    offsets.add(600, 9000)
    offsets.seal()
    again = OffsetIndex(offsets._disk, offsets.path, BASE, 1024)
    again.load()
    entries = [(10, 1000), (20, 2000), (30, 3000)][:left]
    assert [again.get(i) for i in range(again.count)] == [*entries, (500, 9000)]


def test_time_index_takes_only_later_timestamps(times: TimeIndex) -> None:
    for timestamp, offset in ((50, 110), (50, 120), (40, 130), (60, 140)):
        times.add_if_later(timestamp, offset)
    assert [times.get(i) for i in range(times.count)] == [(50, 10), (60, 40)]
    assert times.last == (60, 140)


def test_the_last_entry_not_beyond_a_timestamp(times: TimeIndex) -> None:
    times.add_if_later(50, 110)
    times.add_if_later(60, 140)
    assert [times.floor(at) for at in (9, 49, 50, 59, 60)] == [-1, -1, 0, 0, 1]
    assert [times.entry(i) for i in range(2)] == [(50, 110), (60, 140)]


def test_a_time_index_that_was_cut_takes_timestamps_from_there_again(times: TimeIndex) -> None:
    times.add_if_later(50, 110)
    times.add_if_later(60, 140)
    times.truncate_to(140)
    assert times.last == (50, 110)
    times.add_if_later(55, 141)
    assert times.last == (55, 141)


def test_an_index_is_full_at_its_size_and_the_time_index_keeps_a_place_for_its_last(directory: LogDir) -> None:
    directory.disk.mkdir(directory.path)
    offsets = OffsetIndex(directory.disk, directory.file("b.index"), 0, 20)
    times = TimeIndex(directory.disk, directory.file("b.timeindex"), 0, 40)
    offsets.begin()
    times.begin()
    fills = []
    for i in range(1, 4):
        offsets.add(i, i)
        times.add_if_later(i, i)
        fills.append((offsets.full, times.full))
    assert fills == [(False, False), (True, True), (True, True)]


@pytest.mark.parametrize("size", [1, 7, 9, 15])
def test_a_file_with_half_an_entry_is_refused(offsets: OffsetIndex, directory: LogDir, size: int) -> None:
    offsets.close()
    directory.replace("a.index", bytes(size))
    with pytest.raises(CorruptLog, match="multiple of 8"):
        offsets.load()


@pytest.mark.parametrize(
    "entries",
    [[(-1, 10)], [(5, 900)], [(5, -1)], [(9, 10), (50, 20), (7, 30)]],
    ids=["before the base", "beyond the log", "negative position", "not in order"],
)
def test_an_offset_index_that_cannot_be_right_is_refused(offsets: OffsetIndex, entries: list[tuple[int, int]]) -> None:
    for relative, position in entries:
        offsets.append(relative, position)
    with pytest.raises(CorruptLog):
        offsets.check(900)


@pytest.mark.parametrize("entries", [[(5, -1)], [(50, 1), (40, 2)]], ids=["before the base", "not in order"])
def test_a_time_index_that_cannot_be_right_is_refused(times: TimeIndex, entries: list[tuple[int, int]]) -> None:
    for timestamp, relative in entries:
        times.append(timestamp, relative)
    with pytest.raises(CorruptLog):
        times.check()


def test_sound_and_empty_indexes_pass(offsets: OffsetIndex, times: TimeIndex) -> None:
    offsets.check(0)
    times.check()
    offsets.add(110, 899)
    times.add_if_later(5, 110)
    offsets.check(900)
    times.check()
