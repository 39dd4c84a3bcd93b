"""A damaged stretch replaced by what another replica has: to the byte or not at all, whole or not at all (rule A18)."""

# mypy: disable-error-code="misc, return-value"

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from strandline.log.errors import CorruptBatch
from strandline.log.log import Log
from strandline.log.lookup import first_at_or_after
from strandline.log.recovery import load
from strandline.log.repairing import DoesNotFit, distrust, repair
from strandline.log.scrubbing import scrub
from strandline.node.log_effects import perform
from strandline.records.header import assign, iterate

from .conftest import ALL, NOW, PoweredLogDir, sized, topic

SIZE = 100
FIELDS: dict[str, Any] = {"segment_bytes": 5 * SIZE, "index_interval_bytes": 150}
NAME = "00000000000000000005.log"


def filled(directory: PoweredLogDir, count: int = 15) -> list[bytes]:
    """Batches of one record each, five to a segment; what another replica has."""
    log = directory.open(**FIELDS)
    for i in range(count):
        log.append_as_leader(sized(SIZE, timestamp=NOW + i), i // 4, NOW)
    replica = [log.read(i, 1, count, min_one=True) for i in range(count)]
    log.close_clean()
    return replica


def reopened(directory: PoweredLogDir, count: int = 15) -> Log:
    return directory.recover(clean=True, recovery_point=count, **FIELDS).log


def damage(directory: PoweredLogDir, log: Log, offset: int, position: int = 70) -> CorruptBatch:
    directory.node.disk.flip_bit(directory.file(f"{offset // 5 * 5:020d}.log"), offset % 5 * SIZE + position, 2)
    with pytest.raises(CorruptBatch) as damaged:
        read(log, offset)
    return damaged.value


def read(log: Log, offset: int) -> list[bytes]:
    data = log.read(offset, ALL, log.log_end_offset, min_one=True)
    return [data[position : position + header.size_bytes] for position, header in iterate(data)]


def run(directory: PoweredLogDir, work: Coroutine[Any, Any, bool]) -> bool:
    done: bool = directory.world.run(work)
    return done


@pytest.mark.parametrize("position", [7, 11, 15, 16, 26, 80])
def test_a_repaired_stretch_is_served_and_stays(powered: PoweredLogDir, position: int) -> None:
    replica = filled(powered)
    before = powered.bytes(NAME)
    log = reopened(powered)
    damaged = damage(powered, log, 7, position)
    assert run(powered, perform(repair(log, damaged, b"".join(replica[damaged.first_offset :]), NOW)))
    assert read(log, 5) == replica[5:10]
    assert powered.bytes(NAME) == before
    assert powered.names(".repair") == []
    assert first_at_or_after(log, NOW + 7) == (NOW + 7, 7, 1)
    powered.power_loss()
    log = reopened(powered)
    assert read(log, 5) == replica[5:10]


def test_damage_in_the_active_segment_closes_it_first(powered: PoweredLogDir) -> None:
    replica = filled(powered, 13)
    log = reopened(powered, 13)
    damaged = damage(powered, log, 11)
    assert run(powered, perform(repair(log, damaged, replica[11], NOW)))
    assert [segment.base_offset for segment in log.segments] == [0, 5, 10, 13]
    log.append_as_leader(sized(SIZE), 3, NOW)
    assert read(log, 10) == replica[10:]
    assert len(read(log, 13)) == 1
    powered.flush(log)


def test_one_stretch_at_a_time_leaves_the_others(powered: PoweredLogDir) -> None:
    replica = filled(powered)
    log = reopened(powered)
    first, second = damage(powered, log, 6), damage(powered, log, 8, 11)
    assert run(powered, perform(repair(log, first, replica[6], NOW)))
    assert read(log, 5) == replica[5:8]
    with pytest.raises(CorruptBatch) as again:
        read(log, 8)
    assert again.value.stretch == second.stretch
    assert run(powered, perform(repair(log, again.value, replica[8], NOW)))
    assert read(log, 5) == replica[5:10]


def other(size: int, offset: int, epoch: int) -> bytes:
    data = sized(size)
    assign(data, offset, epoch)
    return bytes(data)


@pytest.mark.parametrize(
    ("offered", "why"),
    [
        (b"", "0 bytes up to offset 7"),
        (other(SIZE - 1, 7, 1), "99 bytes"),
        (other(SIZE + 1, 7, 1), "101 bytes"),
        (other(SIZE, 8, 1), "0 bytes up to offset 7"),
        (other(SIZE, 6, 1), "starts at offset 6"),
        (other(SIZE, 7, 2), "offset 7 is of epoch 2, here it is 1"),
        (other(SIZE, 7, 1)[:-1], "did not come whole"),
        (other(SIZE, 7, 1)[:-1] + b"?", "fails its checksum"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_changes(powered: PoweredLogDir, offered: bytes, why: str) -> None:
    filled(powered)
    log = reopened(powered)
    damaged = damage(powered, log, 7)
    before = powered.bytes(NAME)
    with pytest.raises(DoesNotFit, match=why):
        run(powered, perform(repair(log, damaged, offered, NOW)))
    assert powered.bytes(NAME) == before
    with pytest.raises(CorruptBatch):
        read(log, 7)


def test_a_stretch_that_left_the_log_needs_no_repair(powered: PoweredLogDir) -> None:
    replica = filled(powered)
    log = reopened(powered)
    damaged = damage(powered, log, 7)
    log.drop_segments(2, NOW)
    assert not run(powered, perform(repair(log, damaged, replica[7], NOW)))


@pytest.mark.parametrize("cut", [6, 9])
def test_a_truncation_during_a_repair_wins(powered: PoweredLogDir, cut: int) -> None:
    """Before the stretch or after it; what takes the place of what was cut is as long, and the copy still has the old."""
    replica = filled(powered)
    log = reopened(powered)
    damaged = damage(powered, log, 7)

    async def both() -> bool:

        task = asyncio.ensure_future(perform(repair(log, damaged, replica[7], NOW)))
        await asyncio.sleep(0)
        log.truncate_to(cut)
        for _ in range(10 - cut):
            log.append_as_leader(sized(SIZE, timestamp=NOW + 99), 4, NOW)
        return await task

    assert not run(powered, both())
    assert log.log_end_offset == 10
    assert [header.partition_leader_epoch for _, header in iterate(log.read(cut, ALL, 10, min_one=True))] == [4] * (
        10 - cut
    )
    assert read(log, 5)[0] == replica[5]
    assert powered.names(".repair") == []


def test_a_flush_and_a_repair_do_not_meet(powered: PoweredLogDir) -> None:
    """The flush syncs the segment that was just closed while its files are replaced."""
    replica = filled(powered, 13)
    log = reopened(powered, 13)
    damaged = damage(powered, log, 11)

    async def both() -> bool:

        done, _ = await asyncio.gather(perform(repair(log, damaged, replica[11], NOW)), perform(log.flush()))
        return done

    assert run(powered, both())
    assert read(log, 10) == replica[10:]
    powered.power_loss()
    assert read(powered.recover(recovery_point=13, **FIELDS).log, 10) == replica[10:]


@pytest.mark.parametrize("seed", range(30))
def test_power_loss_at_any_time_leaves_the_old_segment_or_the_new(seed: int) -> None:
    powered = PoweredLogDir(f"repair {seed}")
    try:
        replica = filled(powered)
        log = reopened(powered)
        damaged = damage(powered, log, 7)

        async def work() -> None:
            task = powered.node.spawn(perform(repair(log, damaged, replica[7], NOW)))
            await asyncio.wait([task], timeout=powered.randomness.uniform(0, 0.006))

        powered.world.run(work())
        powered.power_loss()
        recovered = load(powered.disk, powered.path, topic(**FIELDS), clean=False, recovery_point=15, now_ms=NOW)
        assert recovered.log.log_end_offset == 15
        assert powered.names(".repair") == []
        assert read(recovered.log, 5)[:2] == replica[5:7]
        try:
            assert read(recovered.log, 7) == replica[7:10]
        except CorruptBatch:
            assert run(powered, perform(repair(recovered.log, damaged, replica[7], NOW)))
            assert read(recovered.log, 7) == replica[7:10]
    finally:
        powered.world.close()


def test_what_was_checked_before_damage_was_found_is_checked_again(powered: PoweredLogDir) -> None:
    replica = filled(powered)
    log = reopened(powered)
    assert read(log, 0) + read(log, 5) == replica[:10]
    segment = log.segments[1]
    powered.node.disk.flip_bit(powered.file(NAME), 2 * SIZE + 70, 2)
    found = scrub(segment, 0, 5, log.epochs).damaged
    assert found is not None
    distrust(log, found)
    assert read(log, 5) == replica[5:7]
    with pytest.raises(CorruptBatch):
        read(log, 7)
    assert read(log, 8) == replica[8:10]
    assert not log.segments[0].checked.unchecked_end, "the other segments are trusted as before"
