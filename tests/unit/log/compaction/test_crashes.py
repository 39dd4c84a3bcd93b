"""A stop at every step of cleaning and swapping, with the power or without: the log is the old one or the new one, never less."""

# mypy: disable-error-code="method-assign"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from strandline.log.compaction.swapping import swap
from strandline.log.log import Log
from strandline.node.log_effects import perform

from ..conftest import NOW, PoweredLogDir
from .cleaning import COMPACT, batches, clean, job_for, put, records, run_job, view

FIELDS: dict[str, Any] = {**COMPACT, "segment_bytes": 420, "delete_retention_ms": 1000}


LEFTOVERS = (".swap", ".cleaned", ".deleted")


class Stopped(OSError):
    """The node is no more."""


class Stepper:
    """Counts what is done to the disk, and lets nothing happen from one step on."""

    def __init__(self, directory: PoweredLogDir, steps_left: int) -> None:
        self._disk: Any = directory.node.disk
        self.steps_left = steps_left
        self._disk._let_others_run = self._step

    def _step(self) -> None:
        self.steps_left -= 1
        if self.steps_left < 0:
            raise Stopped

    def remove(self) -> None:
        del self._disk._let_others_run


def filled(directory: PoweredLogDir) -> Log:
    """Three groups of segments, with tombstones, a producer and a transaction, part of it cleaned before."""
    log = directory.open(**FIELDS)
    for i in range(6):
        put(log, {f"k{i % 3}": f"old {i}", f"k{i}": None if i % 2 else f"v{i}"}, epoch=i // 2)
    clean(directory, log)
    for i in range(14):
        put(
            log,
            {f"k{i % 4}": None if i % 5 == 0 else f"new {i}" + "x" * 20, f"n{i % 6}": f"{i}"},
            epoch=3 + i // 8,
            producer_id=7,
            producer_epoch=0,
            base_sequence=2 * i,
        )
    log.roll(NOW)
    put(log, {"k0": "last"}, epoch=5)
    directory.flush(log)
    return log


def cleaned_until(steps: int, seed: int) -> tuple[PoweredLogDir, Log, dict[str, Any], bool]:
    """A log whose node stopped after so many steps of a cleaning, or ended it."""
    directory = PoweredLogDir(seed)
    log = filled(directory)
    before = {
        "view": view(log),
        "records": records(log),
        "end": log.log_end_offset,
        "epochs": list(log.epochs.entries),
        "sequences": {one.producer_id: one.last_sequence for one in log.producers.by_id.values()},
    }
    job = job_for(log, 12, now_ms=NOW + 2000)
    assert len({source.base_offset for source in job.sources}) > 5
    stepper = Stepper(directory, steps)
    try:
        done = run_job(log, job)
        assert len(done.groups) >= 3
        directory.world.run(perform(swap(log, job, done)))
        is_done = True
    except Stopped:
        is_done = False
    stepper.remove()
    return directory, log, before, is_done


def check(log: Log, before: dict[str, Any]) -> None:
    found = records(log)
    offsets = [offset for offset, _, _ in found]
    assert offsets == sorted(set(offsets)), "nothing is there twice"
    assert set(found) <= set(before["records"]), "no record changed or moved"
    assert view(log) == before["view"]
    newest = {key: (offset, key, value) for offset, key, value in before["records"]}
    assert {one for one in newest.values() if one[2] is not None} <= set(found)
    assert log.log_end_offset == before["end"]
    assert log.epochs.entries == before["epochs"]
    for segment, following in zip(log.segments, log.segments[1:], strict=False):
        assert segment.next_offset == following.base_offset, "no hole between segments"
    assert {one.producer_id: one.last_sequence for one in log.producers.by_id.values()} == before["sequences"]


def steps() -> Iterator[int]:
    """Every step there is."""
    directory = PoweredLogDir(1)
    log = filled(directory)
    job = job_for(log, 12, now_ms=NOW + 2000)
    stepper = Stepper(directory, 10_000)
    directory.world.run(perform(swap(log, job, run_job(log, job))))
    directory.world.close()
    yield from range(10_000 - stepper.steps_left + 1)


@pytest.mark.parametrize("bytes_max", [2**31 - 1, 150], ids=["one file a group", "several files a group"])
@pytest.mark.parametrize("loses_power", [False, True], ids=["killed", "without power"])
def test_a_stop_at_any_step_leaves_the_last_value_of_each_key(
    loses_power: bool, bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.log.compaction.writing.SEGMENT_BYTES_MAX", bytes_max)
    leftover: set[str] = set()
    ends = set()
    for step in steps():
        directory, _log, before, is_done = cleaned_until(step, step)
        ends.add(is_done)
        if loses_power:
            directory.power_loss()
        else:
            directory.node.kill()
            directory.node.restart()
        leftover |= {name.rpartition(".")[2] for name in directory.names("")}
        for recovery_point in (before["end"], 0):
            again = directory.recover(clean=False, recovery_point=recovery_point, **FIELDS).log
            check(again, before)
            assert not [name for name in directory.names("") if name.endswith(LEFTOVERS)]
            again.close()
        again = directory.recover(clean=False, **FIELDS).log
        clean(directory, again, 12, now_ms=NOW + 2000)
        check(again, before)
        assert len(records(again)) < len(before["records"])
        directory.world.close()
    assert {"cleaned", "swap", "deleted"} <= leftover, "stops met every state"
    assert ends == {False, True}


def test_a_cleaning_that_nothing_stops() -> None:
    directory, log, before, is_done = cleaned_until(10_000, 3)
    assert is_done
    check(log, before)
    assert len(batches(log)) < 21
    directory.world.close()
