"""One segment: finding a batch by an offset in it, across index entries, small batches and large ones."""

# mypy: disable-error-code="redundant-expr"

from __future__ import annotations

import pytest

from strandline.log.errors import CorruptBatch, CorruptLog, NotCached
from strandline.log.opening import new_segment
from strandline.log.segment import SCAN_CHUNK_BYTES, Segment
from strandline.log.txn_index import AbortedTxn
from strandline.records.control import ControlRecordType
from strandline.records.header import assign, iterate
from strandline.sim.file import SimFile

from .conftest import NOW, LogDir, PoweredLogDir, batch, marker, sized, topic

BASE = 1000


def segment_of(directory: LogDir, *, index_interval_bytes: int = 4096) -> Segment:
    directory.disk.mkdir(directory.path)
    return new_segment(directory.disk, directory.path, BASE, topic(index_interval_bytes=index_interval_bytes), NOW)


def add(segment: Segment, data: memoryview, *, at: int | None = None) -> tuple[int, int, int, int]:
    """Append at the next offset, or further on; base and last offset, position and size."""
    _, header = next(iterate(data))
    base_offset = segment.next_offset if at is None else at
    assign(data, base_offset, 0)
    placed = (base_offset, base_offset + header.last_offset_delta, segment.size, len(data))
    segment.append(data, placed[1], header.max_timestamp)
    return placed


@pytest.mark.parametrize("interval", [0, 100, 4096, 10**9])
@pytest.mark.parametrize("size", [80, 300, SCAN_CHUNK_BYTES - 1, SCAN_CHUNK_BYTES, 3 * SCAN_CHUNK_BYTES])
def test_every_offset_is_found_in_its_batch(directory: LogDir, interval: int, size: int) -> None:
    segment = segment_of(directory, index_interval_bytes=interval)
    placed = [add(segment, sized(size)) for _ in range(40)]
    placed.append(add(segment, batch("a", "b", "c")))
    for base_offset, last_offset, position, batch_size in placed:
        for offset in range(base_offset, last_offset + 1):
            assert segment.locate(offset) == (position, batch_size)
    assert segment.locate(segment.next_offset) is None


def test_an_offset_in_a_gap_belongs_to_the_next_batch(directory: LogDir) -> None:
    segment = segment_of(directory, index_interval_bytes=0)
    add(segment, batch("a"))
    _, _, position, size = add(segment, batch("b", "c"), at=1500)
    assert segment.locate(1200) == (position, size)
    assert segment.next_offset == 1502


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("cut", range(BASE, BASE + 62, 3))
def test_a_cut_removes_the_batch_that_holds_the_offset_and_all_after_it(
    directory: LogDir, sealed: bool, cut: int
) -> None:
    segment = segment_of(directory, index_interval_bytes=150)
    placed = [add(segment, batch("a", "b", "c", timestamps=(NOW + i,) * 3)) for i in range(20)]
    if sealed:
        segment.seal()
    segment.truncate_to(cut)
    left = [entry for entry in placed if entry[1] < cut]
    assert segment.next_offset == (left[-1][1] + 1 if left else BASE)
    assert segment.size == sum(size for *_, size in left)
    assert (segment.max_timestamp, segment.offset_of_max_timestamp) == (
        (NOW + len(left) - 1, left[-1][1]) if left else (-1, BASE)
    )
    assert segment.first_timestamp == (NOW if left else -1)
    fresh = [add(segment, batch("x", timestamps=(NOW - 5,))) for _ in range(10)]
    for base_offset, _, position, size in [*left, *fresh]:
        assert segment.locate(base_offset) == (position, size)


def test_the_index_distance_goes_on_after_a_reopening(directory: LogDir) -> None:
    written, reopened = segment_of(directory, index_interval_bytes=300), None
    for _ in range(11):
        add(written, sized(100))
    written.seal()
    size = written.size
    reopened = Segment(
        directory.disk, directory.path, BASE, index_interval_bytes=300, index_bytes_max=1024, created_ms=NOW
    )
    reopened.offset_index.load()
    reopened.time_index.load()
    reopened.load_end()
    reopened.reopen()
    assert (reopened.size, reopened.next_offset) == (size, BASE + 11)
    for _ in range(9):
        add(reopened, sized(100))
    assert [reopened.offset_index.get(i)[1] for i in range(reopened.offset_index.count)] == [400, 800, 1200, 1600]


def test_entries_name_the_last_offset_of_a_batch_and_where_it_starts(directory: LogDir) -> None:
    segment = segment_of(directory, index_interval_bytes=0)
    add(segment, batch("a", "b"))
    _, last_offset, position, _ = add(segment, batch("c", "d", "e"))
    assert [segment.offset_index.get(i) for i in range(segment.offset_index.count)] == [(last_offset - BASE, position)]


@pytest.mark.parametrize(("at", "byte"), [(8, 0xFF), (11, 3), (16, 1), (16, 9)])
def test_a_header_that_cannot_be_is_damage(directory: LogDir, at: int, byte: int) -> None:
    segment = segment_of(directory)
    add(segment, batch("a"))
    data = bytearray(batch("b"))
    data[at] = byte
    segment.file.append(data)
    with pytest.raises(CorruptBatch) as damaged:
        list(segment.batches())
    assert (damaged.value.position, damaged.value.end_position) == (len(data), 2 * len(data))
    assert [position for position, _ in segment.batches(skip_damage=True)] == [0]


def test_bytes_that_are_not_in_memory_are_asked_for_and_then_there(powered: PoweredLogDir) -> None:
    segment = segment_of(powered)
    add(segment, sized(500))
    add(segment, sized(600))
    powered.node.disk.cold_probability = 1
    with pytest.raises(NotCached) as missing:
        segment.locate(BASE + 1)
    powered.node.disk.cold_probability = 0
    with pytest.raises(NotCached):
        segment.locate(BASE + 1)
    missing.value.warm()
    assert segment.locate(BASE + 1) == (500, 600)
    assert segment.locate(BASE + 1, blocking=True) == (500, 600)


def test_deleted_files_are_renamed_and_still_readable(directory: LogDir) -> None:
    segment = segment_of(directory)
    data = bytes(add(segment, batch("a")) and segment.read(0, 1000))
    doomed = segment.mark_deleted()
    assert [name.rpartition("/")[2] for name in doomed] == [
        "00000000000000001000.log.deleted",
        "00000000000000001000.index.deleted",
        "00000000000000001000.timeindex.deleted",
    ]
    assert segment.read(0, 1000) == data
    assert directory.names(".log") == []


def aborts(powered: PoweredLogDir, count: int, distance: int) -> tuple[Segment, list[AbortedTxn]]:
    """Aborted transactions, each with so many bytes before its marker."""
    segment = segment_of(powered)
    entries = []
    for _ in range(count):
        first_offset = segment.next_offset
        add(segment, sized(distance))
        data = memoryview(marker(ControlRecordType.ABORT, 5, 0))
        last_offset = add(segment, data)[0]
        entries.append(AbortedTxn(5, first_offset, last_offset, last_offset + 1))
        segment.txn_index.add(entries[-1])
    return segment, entries


@pytest.mark.parametrize("distance", [100, 5000, SCAN_CHUNK_BYTES])
@pytest.mark.parametrize("place", [0, 1, 20, 38, 39])
@pytest.mark.parametrize("wrong", ["producer_id", "first_offset", "last_offset"])
def test_each_entry_of_aborted_transactions_is_compared_with_its_marker(
    powered: PoweredLogDir, distance: int, place: int, wrong: str
) -> None:
    segment, entries = aborts(powered, 40, distance)
    segment.check_aborted()
    changes = {"producer_id": 6, "first_offset": entries[place].last_offset, "last_offset": entries[place].first_offset}
    entries[place] = entries[place]._replace(**{wrong: changes[wrong]})
    segment.txn_index.begin()
    for aborted in entries:
        segment.txn_index.add(aborted)
    with pytest.raises(CorruptLog, match="which is not in the log"):
        segment.check_aborted()


def test_markers_that_are_near_each_other_are_read_together(
    powered: PoweredLogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment, _ = aborts(powered, 1000, 100)
    read_bytes = 0
    read_blocking = SimFile.read_blocking

    def counted(file: SimFile, position: int, size: int) -> bytes:
        nonlocal read_bytes
        data = read_blocking(file, position, size)
        read_bytes += len(data)
        return data

    monkeypatch.setattr(SimFile, "read_blocking", counted)
    segment.check_aborted()
    assert read_bytes < 4 * segment.size
