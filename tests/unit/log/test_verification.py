"""What is checked before it is served, how often, and what happens to reads that meet damage (rule A18)."""

# mypy: disable-error-code="arg-type, attr-defined"

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.log import segment, verification
from strandline.log.errors import CorruptBatch, NotCached
from strandline.log.log import Log
from strandline.log.lookup import first_at_or_after, of_max_timestamp
from strandline.log.verification import CheckedRegions
from strandline.records.header import iterate

from .conftest import ALL, NOW, LogDir, PoweredLogDir, batch, sized, values_in

FIRST = "00000000000000000000"
SIZE = 100


# Which bytes are checked


def test_nothing_is_unchecked_in_an_empty_file() -> None:
    assert CheckedRegions(0).unchecked_end == 0


def test_regions_grow_together() -> None:
    checked = CheckedRegions(100)
    checked.add(20, 30)
    checked.add(40, 50)
    assert [checked.end_of(at) for at in (0, 19, 20, 25, 30, 39, 40, 49, 50, 99)] == [
        0, 19, 30, 30, 30, 39, 50, 50, 50, 99,
    ]  # fmt: skip
    checked.add(30, 40)
    assert checked.end_of(20) == 50
    checked.add(10, 60)
    assert (checked.end_of(10), checked.end_of(9), checked.unchecked_end) == (60, 9, 100)


def test_what_is_checked_up_to_the_end_needs_no_memory() -> None:
    checked = CheckedRegions(100)
    checked.add(60, 100)
    assert checked.unchecked_end == 60
    checked.add(0, 30)
    checked.add(30, 60)
    assert checked.unchecked_end == 0


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)])
def test_any_order_comes_to_all_of_it(order: tuple[int, ...]) -> None:
    checked = CheckedRegions(40)
    for i in order:
        assert checked.unchecked_end > 0
        checked.add(10 * i, 10 * i + 10)
    assert checked.unchecked_end == 0


def test_a_cut_forgets_only_what_is_gone() -> None:
    checked = CheckedRegions(100)
    checked.add(20, 50)
    checked.cut(40)
    assert (checked.unchecked_end, checked.end_of(25)) == (20, 25)
    checked.cut(10)
    assert checked.unchecked_end == 10
    whole = CheckedRegions(100)
    whole.all()
    whole.cut(40)
    assert whole.unchecked_end == 0


# Reading


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is run through the checksum to serve it."""
    sizes: list[int] = []
    crc32c = verification.crc32c

    def count(data: Any) -> int:
        sizes.append(len(data))
        return int(crc32c(data))

    monkeypatch.setattr(verification, "crc32c", count)
    return sizes


def restarted(directory: LogDir, batches: int = 10, **fields: Any) -> Log:
    """A log of batches of one record, SIZE bytes each, five to a segment, opened again after a clean shutdown."""
    fields = {"segment_bytes": 5 * SIZE, "index_interval_bytes": 150, **fields}
    log = directory.open(**fields)
    for i in range(batches):
        log.append_as_leader(sized(SIZE, timestamp=NOW + i), 0, NOW)
    log.close_clean()
    return directory.recover(clean=True, recovery_point=batches, **fields).log


def rot(directory: LogDir, offset: int, position: int = 70) -> None:
    """One bit of the batch at this offset."""
    name = f"{offset // 5 * 5:020d}.log"
    at = offset % 5 * SIZE + position
    data = bytearray(directory.bytes(name))
    data[at] ^= 16
    assert isinstance(directory, PoweredLogDir)
    directory.node.disk.flip_bit(directory.file(name), at, 4)
    assert directory.bytes(name) == bytes(data)


def read(log: Log, offset: int, max_bytes: int = ALL) -> list[int]:
    data = log.read(offset, max_bytes, log.log_end_offset, min_one=True)
    return [header.base_offset for _, header in iterate(data)]


def test_own_appends_are_served_unchecked(directory: LogDir, counted: list[int]) -> None:
    log = directory.open()
    log.append_as_leader(batch("a"), 0, NOW)
    assert read(log, 0) == [0]
    assert counted == []


def test_after_a_restart_each_batch_is_checked_once(powered: PoweredLogDir, counted: list[int]) -> None:
    log = restarted(powered)
    assert counted == []
    assert read(log, 2, 2 * SIZE) == [2, 3]
    assert len(counted) == 2
    assert read(log, 0) == [0, 1, 2, 3, 4]
    assert len(counted) == 7, "from a gap on, what comes after is checked again"
    for offset in range(5):
        assert read(log, offset) == list(range(offset, 5))
    assert len(counted) == 7
    assert log.segments[0].checked.unchecked_end == 0
    log.append_as_leader(sized(SIZE), 0, NOW)
    assert read(log, 10) == [10]
    assert len(counted) == 7, "what this process wrote is not checked even where the rest of its segment is not yet"


def test_reading_in_order_checks_as_it_goes(powered: PoweredLogDir, counted: list[int]) -> None:
    log = restarted(powered)
    for offset in range(10):
        # A batch that is cut off can't be checked: it is not served.
        assert read(log, offset, SIZE + 50) == [offset]
        assert len(log.read(offset, SIZE + 50, 10, min_one=True)) == SIZE
    assert sum(size + 21 for size in counted) == 10 * SIZE
    assert [segment.checked.unchecked_end for segment in log.segments] == [0, 0]


def test_an_unclean_start_that_read_it_all_need_not_do_so_again(powered: PoweredLogDir, counted: list[int]) -> None:
    restarted(powered).close()
    log = powered.recover(segment_bytes=5 * SIZE).log
    assert read(log, 0) == [0, 1, 2, 3, 4]
    assert counted == []


def test_what_comes_from_the_device_again_is_checked_again(powered: PoweredLogDir, counted: list[int]) -> None:
    log = restarted(powered)
    read(log, 0)
    powered.node.disk.cold_probability = 1
    with pytest.raises(NotCached) as cold:
        read(log, 0)
    powered.node.disk.cold_probability = 0
    cold.value.warm()
    rot(powered, 3)
    assert read(log, 0) == [0, 1, 2]
    with pytest.raises(CorruptBatch):
        read(log, 3)


def test_a_miss_makes_all_of_the_segment_doubtful_for_the_system_reads_ahead(powered: PoweredLogDir) -> None:
    batches = 3 * segment.SCAN_CHUNK_BYTES // SIZE
    log = restarted(powered, batches, segment_bytes=batches * SIZE)
    assert read(log, 0) == list(range(batches))
    powered.node.disk.cold_probability = 1
    with pytest.raises(NotCached) as cold:
        read(log, 0, SIZE)
    powered.node.disk.cold_probability = 0
    cold.value.warm()
    powered.node.disk.flip_bit(powered.file(f"{FIRST}.log"), (batches - 1) * SIZE + 70, 4)
    assert read(log, 0, SIZE) == [0]
    with pytest.raises(CorruptBatch):
        read(log, batches - 1)


def test_the_answer_ends_before_a_bad_batch_and_goes_on_after_it(powered: PoweredLogDir) -> None:
    log = restarted(powered)
    rot(powered, 2)
    assert read(log, 0) == [0, 1]
    assert read(log, 1) == [1]
    for _ in range(2):
        with pytest.raises(CorruptBatch) as damaged:
            read(log, 2)
        assert damaged.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert damaged.value.retriable
        assert damaged.value.stretch == (0, 2 * SIZE, 3 * SIZE, 3)
        assert damaged.value.first_offset == 2
    assert read(log, 3) == [3, 4]
    assert read(log, 5) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("position", [7, 11, 15, 16, 17, 26, 80])
def test_a_follower_gets_no_bad_batch_whatever_is_wrong_with_it(powered: PoweredLogDir, position: int) -> None:
    """Base offset, length, leader epoch, magic, checksum, last offset delta, records."""
    log = restarted(powered)
    rot(powered, 6, position)
    served = []
    for offset in range(10):
        try:
            found = read(log, offset)
        except CorruptBatch:
            continue
        assert found[0] == offset
        served.append(offset)
    assert 6 not in served
    assert len(served) >= 8


@pytest.mark.parametrize("interval", [50, 150, 10_000])
def test_many_bad_batches_are_each_refused(powered: PoweredLogDir, interval: int) -> None:
    log = restarted(powered, 20, index_interval_bytes=interval)
    for offset in (0, 3, 9, 10, 19):
        rot(powered, offset)
    for offset in range(20):
        if offset in (0, 3, 9, 10, 19):
            with pytest.raises(CorruptBatch) as damaged:
                read(log, offset)
            assert (damaged.value.first_offset, damaged.value.end_offset) == (offset, offset + 1)
        else:
            assert read(log, offset)[0] == offset


def test_a_limit_inside_of_damage_serves_what_comes_before(powered: PoweredLogDir) -> None:
    log = restarted(powered)
    rot(powered, 2, 11)
    assert [h.base_offset for _, h in iterate(log.read(0, ALL, 3, min_one=True))] == [0, 1]


def test_a_question_by_time_meets_damage_too(powered: PoweredLogDir) -> None:
    log = restarted(powered)
    rot(powered, 7)
    assert first_at_or_after(log, NOW + 6) is not None
    with pytest.raises(CorruptBatch):
        first_at_or_after(log, NOW + 7)
    rot(powered, 9)
    with pytest.raises(CorruptBatch):
        of_max_timestamp(log)


def test_a_cut_after_damage_leaves_it(powered: PoweredLogDir) -> None:
    log = restarted(powered, index_interval_bytes=10_000)
    rot(powered, 6, 11)
    log.truncate_to(9)
    assert log.log_end_offset == 9
    assert read(log, 7) == [7, 8]
    with pytest.raises(CorruptBatch):
        read(log, 6)


def test_a_cut_at_damage_removes_it(powered: PoweredLogDir) -> None:
    """A follower that must cut its log where it can't be read cuts before that, and fetches the rest again."""
    log = restarted(powered, index_interval_bytes=10_000)
    rot(powered, 6, 11)
    log.truncate_to(7)
    assert log.log_end_offset == 6
    assert read(log, 5) == [5]
    log.append_as_leader(sized(SIZE), 0, NOW)
    assert read(log, 5) == [5, 6]


def test_a_gap_that_compaction_left_is_no_damage(powered: PoweredLogDir, counted: list[int]) -> None:
    log = restarted(powered)
    log.close()
    name = f"{FIRST}.log"
    whole = powered.bytes(name)
    powered.replace(name, whole[:SIZE] + whole[3 * SIZE :])
    for suffix in (".index", ".timeindex"):
        powered.disk.remove(powered.file(FIRST + suffix))
    log = powered.recover(clean=True, recovery_point=10, segment_bytes=5 * SIZE).log
    assert read(log, 1) == [3, 4]
    assert values_in(log.read(2, SIZE, 10, min_one=True))[0][0] == 3


def test_what_is_checked_is_not_copied(directory: LogDir) -> None:
    """A read ends in the middle of a batch nearly always."""
    log = directory.open()
    for _ in range(5):
        log.append_as_leader(sized(SIZE), 0, NOW)
    log.close_clean()
    log = directory.open()
    whole = log.segments[0].read(0, 350)
    found = verification.sound_prefix(log.segments[0], 0, whole, log.epochs)
    assert isinstance(found, memoryview)
    assert found.obj is whole
    assert found == whole[:300]
    assert log.read(0, 350, 5, min_one=True) == whole[:300]
