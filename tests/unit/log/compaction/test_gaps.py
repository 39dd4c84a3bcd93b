"""A log with gaps is a log like any other: followers copy it, readers find their way, rot is found and healed."""

# mypy: disable-error-code="return-value"

from __future__ import annotations

from typing import Any

import pytest

from strandline.log.errors import CorruptBatch
from strandline.log.log import Log
from strandline.log.lookup import first_at_or_after
from strandline.log.repairing import DoesNotFit, is_damaged, repair
from strandline.log.scrubbing import scrub
from strandline.node.log_effects import perform
from strandline.records.header import iterate

from ..conftest import ALL, NOW, LogDir, PoweredLogDir
from .cleaning import COMPACT, batches, clean, put, puts, records, view

FIELDS: dict[str, Any] = {**COMPACT, "delete_retention_ms": 1000}


def filled(directory: LogDir, *, cleaned: bool = True) -> Log:
    """Batches 0-1, 2-3, … 18-19 of two records each and two of one, of which a cleaning takes 4-5, 8-9, and half of some others."""
    log = directory.open(**FIELDS)
    for i in range(10):
        put(
            log,
            {"again" if i % 2 == 0 else f"k{i}": f"v{i}", f"n{i % 4 or i}": "x" * 10},
            timestamp=NOW + i,
            epoch=i // 4,
        )
    for name in ("n4", "n8"):
        put(log, {name: "y"}, timestamp=NOW + 10, epoch=2)
    if cleaned:
        clean(directory, log)
    else:
        log.roll(NOW)
    return log


def bases(log: Log) -> list[int]:
    return [header.base_offset for header, _ in batches(log)]


def test_what_this_is_about(directory: LogDir) -> None:
    assert bases(filled(directory)) == [0, 2, 6, 10, 12, 14, 16, 18, 20, 21]


@pytest.mark.parametrize("offset", range(22))
def test_a_reader_in_a_gap_gets_what_follows_it(directory: LogDir, offset: int) -> None:
    log = filled(directory)
    expected = next(header.base_offset for header, _ in batches(log) if header.last_offset >= offset)
    data = log.read(offset, ALL, 22, min_one=True)
    assert next(iterate(data))[1].base_offset == expected
    log.close_clean()
    again = directory.open(**FIELDS)
    assert again.read(offset, ALL, 22, min_one=True) == data
    limit = max(offset, 9)
    limited = log_read(again, offset, limit)
    assert all(header.base_offset < limit for _, header in iterate(limited))


def log_read(log: Log, offset: int, limit: int) -> bytes:
    return log.read(offset, ALL, limit, min_one=True)


def test_a_follower_copies_a_cleaned_log_to_its_end(directory: LogDir, powered: PoweredLogDir) -> None:
    leader = filled(directory)
    follower = powered.open(**FIELDS, segment_bytes=300)
    while data := leader.read(follower.log_end_offset, 200, leader.log_end_offset, min_one=True):
        fetched = follower.append_fetched(data, 5, NOW)
        assert fetched.problem is None
    assert follower.log_end_offset == leader.log_end_offset
    assert records(follower) == records(leader)
    assert follower.epochs.entries[-1] == leader.epochs.entries[-1]
    for segment, following in zip(follower.segments, follower.segments[1:], strict=False):
        assert segment.next_offset == following.base_offset
    powered.flush(follower)
    powered.power_loss()
    for recovery_point in (22, 10, 0):
        recovered = powered.recover(recovery_point=recovery_point, **FIELDS, segment_bytes=300)
        assert recovered.truncated_bytes == 0
        assert records(recovered.log) == records(leader)
        recovered.log.close()


def test_a_follower_cleans_what_it_copied(directory: LogDir, powered: PoweredLogDir) -> None:
    leader = filled(directory)
    follower = powered.open(**FIELDS)
    follower.append_fetched(leader.read(0, ALL, 22, min_one=True), 5, NOW)
    put(follower, {"again": "last"}, epoch=6)
    clean(powered, follower)
    assert view(follower) == {**view(leader), "again": "last"}


def test_offsets_by_time(directory: LogDir) -> None:
    log = filled(directory)
    for after_ms, offset in ((0, 1), (2, 6), (4, 10), (8, 16), (10, 20)):
        found = first_at_or_after(log, NOW + after_ms)
        assert found is not None
        assert found.offset == offset, after_ms


def test_a_restart_trusts_gaps_and_keeps_the_epochs(directory: LogDir) -> None:
    log = filled(directory)
    entries = list(log.epochs.entries)
    log.close_clean()
    again = directory.recover(clean=True, recovery_point=22, **FIELDS)
    assert (again.scanned_bytes, again.rebuilt_epochs, again.truncated_bytes) == (0, False, 0)
    assert again.log.epochs.entries == entries
    again.log.close()
    crashed = directory.recover(**FIELDS)
    assert (crashed.rebuilt_epochs, crashed.log.epochs.entries) == (False, entries)


# Rot


def rotten(directory: PoweredLogDir, log: Log, offset: int, byte: int = 70) -> CorruptBatch:
    """Flip a bit of the batch at `offset`, and meet it."""
    found = log.segments[0].locate(offset)
    assert found is not None
    path = log.segments[0].file.path
    log.segments[0].checked.forget(log.segments[0].size)
    directory.node.disk.flip_bit(path, found[0] + byte, 2)
    with pytest.raises(CorruptBatch) as damaged:
        log.read(offset, ALL, 22, min_one=True)
    return damaged.value


@pytest.mark.parametrize("byte", [9, 16, 25, 58, 65])
@pytest.mark.parametrize("offset", [2, 6, 10, 16])
def test_damage_ends_at_the_next_batch_behind_a_gap(powered: PoweredLogDir, offset: int, byte: int) -> None:
    log = filled(powered)
    following = next(header.base_offset for header, _ in batches(log) if header.base_offset > offset)
    damaged = rotten(powered, log, offset, byte)
    assert damaged.end_offset == following
    assert next(iterate(log.read(following, ALL, 22, min_one=True)))[1].base_offset == following
    step = scrub(log.segments[0], 0, 0, log.epochs)
    assert step.damaged is None or step.damaged.stretch == damaged.stretch


def test_a_sound_cleaned_segment_is_scrubbed_in_peace(directory: LogDir) -> None:
    log = filled(directory)
    segment = log.segments[0]
    position, offset = 0, 0
    while position < segment.size:
        step = scrub(segment, position, offset, log.epochs)
        assert step.damaged is None
        position, offset = step.position, step.offset
    assert offset == 22


@pytest.mark.parametrize("is_cleaned_there", [True, False])
@pytest.mark.parametrize("offset", [2, 6, 10, 20])
def test_a_replica_that_was_cleaned_otherwise_heals(
    powered: PoweredLogDir, directory: LogDir, offset: int, is_cleaned_there: bool
) -> None:
    log, replica = filled(powered, cleaned=not is_cleaned_there), filled(directory, cleaned=is_cleaned_there)
    before = view(log)
    damaged = rotten(powered, log, offset)
    data = replica.read(damaged.first_offset, ALL, 22, min_one=True)
    assert powered.world.run(perform(repair(log, damaged, data, NOW)))
    assert view(log) == before
    found = [at for at, _, _ in records(log)]
    assert found == sorted(set(found))
    assert not powered.world.run(perform(is_damaged(log, damaged)))
    log.close_clean()
    again = powered.recover(clean=True, recovery_point=22, **FIELDS).log
    assert view(again) == before


def test_the_same_bytes_heal_however_old(powered: PoweredLogDir, directory: LogDir) -> None:
    log, replica = filled(powered), filled(directory)
    damaged = rotten(powered, log, 10)
    data = replica.read(damaged.first_offset, ALL, 22, min_one=True)
    assert powered.world.run(perform(repair(log, damaged, data, NOW + 10**9)))
    assert records(log) == records(replica)


def test_what_is_older_than_delete_retention_is_refused(powered: PoweredLogDir, directory: LogDir) -> None:
    """A tombstone may be gone here, and its value still be there."""
    log, replica = filled(powered), filled(directory, cleaned=False)
    damaged = rotten(powered, log, 10)
    data = replica.read(damaged.first_offset, ALL, 22, min_one=True)
    with pytest.raises(
        DoesNotFit, match=r"older than delete\.retention\.ms \(1000\): this replica should be made anew"
    ):
        powered.world.run(perform(repair(log, damaged, data, NOW + 2000)))
    with pytest.raises(CorruptBatch):
        log.read(10, ALL, 22, min_one=True)


def test_a_part_of_the_stretch_is_not_enough(powered: PoweredLogDir, directory: LogDir) -> None:
    log, replica = filled(powered), filled(directory, cleaned=False)
    damaged = rotten(powered, log, 6)
    assert (damaged.first_offset, damaged.end_offset) == (4, 10)
    for end_offset in (6, 8):
        data = replica.read(4, ALL, end_offset, min_one=True)
        with pytest.raises(DoesNotFit):
            powered.world.run(perform(repair(log, damaged, data, NOW)))
    overlapping = bytearray(puts({"k": "1", "l": "1", "m": "1"}))
    overlapping[:8] = (9).to_bytes(8, "big")
    with pytest.raises(DoesNotFit):
        powered.world.run(perform(repair(log, damaged, bytes(overlapping), NOW)))


def test_a_stretch_that_a_cleaning_moved_is_not_touched(powered: PoweredLogDir) -> None:
    log = filled(powered)
    damaged = CorruptBatch(log.directory, 0, 100, 200, 4, 6, "found before the cleaning")
    before = powered.bytes("00000000000000000000.log")
    assert not powered.world.run(perform(is_damaged(log, damaged)))
    data = log.read(4, ALL, 22, min_one=True)
    assert not powered.world.run(perform(repair(log, damaged, data, NOW)))
    assert powered.bytes("00000000000000000000.log") == before
