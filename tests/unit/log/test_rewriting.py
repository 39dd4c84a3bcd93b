"""A sync that failed, and a new process on the same page cache: what recovery vouches for is on the device (rule A18)."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from typing import Any

import pytest

from strandline.log import rewriting
from strandline.log.log import Log
from strandline.log.rewriting import promises_device, rewrite_tail
from strandline.sim.faults import Fault

from .conftest import NOW, PoweredLogDir, contents, sized, topic

SYNCED = {"flush_messages": 1}


def fails_to_sync(directory: PoweredLogDir, log: Log) -> None:
    directory.node.disk.faults.set("/", Fault.SYNC_ERROR)
    with pytest.raises(OSError):
        directory.flush(log)
    directory.node.disk.faults.clear()


def starts_again(directory: PoweredLogDir) -> None:
    """The process only, as a supervisor does it."""
    directory.node.kill()
    directory.node.restart()


def append(log: Log, count: int, size: int = 200) -> None:
    for _ in range(count):
        log.append_as_leader(sized(size), 0, NOW)


@pytest.mark.parametrize("fields", [SYNCED, {"flush_ms": 1000}, {**SYNCED, "segment_bytes": 500}])
def test_what_was_flushed_after_a_failed_sync_and_a_restart_survives(fields: dict[str, Any]) -> None:
    for seed in range(20):
        powered = PoweredLogDir(seed)
        log = powered.open(**fields)
        append(log, 3)
        powered.flush(log)
        flushed = log.recovery_point
        append(log, 4)
        fails_to_sync(powered, log)
        starts_again(powered)
        log = powered.recover(recovery_point=flushed, **fields).log
        assert (log.log_end_offset, log.recovery_point) == (7, 7)
        append(log, 1)
        powered.flush(log)
        expected = contents(log)
        # Nobody has written down yet that the recovery point moved.
        powered.power_loss()
        log = powered.recover(recovery_point=flushed, **fields).log
        assert contents(log) == expected, seed
        powered.world.close()


def test_a_power_loss_at_any_point_of_it_loses_nothing_that_was_flushed() -> None:
    for seed in range(40):
        powered = PoweredLogDir(seed)
        log = powered.open(**SYNCED)
        append(log, 5)
        powered.flush(log)
        expected = contents(log)
        append(log, 3)
        fails_to_sync(powered, log)
        starts_again(powered)
        segment = powered.open(**SYNCED).segments.active
        rewrite_tail(segment, seed % 6)
        powered.power_loss()
        log = powered.recover(recovery_point=seed % 6, **SYNCED).log
        assert contents(log)[:5] == expected, seed
        powered.world.close()


def test_only_what_lies_beyond_the_recovery_point_is_written_again(
    powered: PoweredLogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewriting, "PIECE_BYTES", 150)
    log = powered.open()
    append(log, 6)
    segment = log.segments.active
    assert [rewrite_tail(segment, offset) for offset in (0, 1, 4, 6)] == [1200, 1000, 400, 0]
    assert contents(log) == contents(powered.recover().log), "and nothing has changed"
    # A header that rotted: from there on everything, wherever the recovery point is.
    powered.node.disk.flip_bit(segment.file.path, 200 + 8, 2)
    assert rewrite_tail(segment, 4) == 1000


@pytest.mark.parametrize(("fields", "is_there"), [({}, False), (SYNCED, True)])
def test_logs_that_promise_nothing_of_the_device_are_not_written_again(
    powered: PoweredLogDir, fields: dict[str, Any], is_there: bool
) -> None:
    log = powered.open(**fields)
    append(log, 1)
    powered.flush(log)
    append(log, 3)
    fails_to_sync(powered, log)
    starts_again(powered)
    file = powered.recover(**fields).log.segments.active.file
    assert promises_device(topic(**fields)) == is_there
    assert (powered.node.disk.durable_size(file.path) == file.size) == is_there


def test_a_device_that_refuses_again_is_told(powered: PoweredLogDir) -> None:
    log = powered.open(**SYNCED)
    append(log, 3)
    fails_to_sync(powered, log)
    starts_again(powered)
    powered.node.disk.faults.set("/", Fault.WRITE_ERROR)
    with pytest.raises(OSError):
        powered.recover(**SYNCED)
