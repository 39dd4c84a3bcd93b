"""Cleaned segments take their place, or give up when the log is another by then."""

# mypy: disable-error-code="arg-type, misc"

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from strandline.log import retention
from strandline.log.compaction.job import CleaningResult, CleanJob
from strandline.log.compaction.swapping import Overtaken, swap
from strandline.log.log import Log
from strandline.node.log_effects import perform

from ..conftest import ALL, NOW, LogDir, PoweredLogDir, values_in
from .cleaning import COMPACT, clean, job_for, put, records, run_job, view, wait

FIELDS: dict[str, Any] = {**COMPACT, "segment_bytes": 300}


def filled(directory: LogDir, count: int = 12) -> Log:
    log = directory.open(**FIELDS)
    for i in range(count):
        put(log, {f"k{i % 3}": f"v{i}", f"n{i}": "x" * 20}, epoch=i // 5)
    log.roll(NOW)
    return log


def cleaned(log: Log) -> tuple[CleanJob, CleaningResult]:
    job = job_for(log)
    done = run_job(log, job)
    assert len(done.groups) >= 2
    return job, done


def test_old_files_are_named_for_deletion_and_stay_until_then(directory: LogDir) -> None:
    log = filled(directory)
    job, done = cleaned(log)
    old = {f"{base:020d}" for group in done.groups for base in group.bases}
    doomed = wait(directory, perform(swap(log, job, done)))
    assert all(path.endswith(".deleted") and log.disk.exists(path) for path in doomed)
    assert {path.rpartition("/")[2].partition(".")[0] for path in doomed} == old
    assert not directory.names(".swap")
    assert not directory.names(".cleaned")
    for path in doomed:
        log.disk.remove(path)
    assert view(log) == {**{f"n{i}": "x" * 20 for i in range(12)}, "k0": "v9", "k1": "v10", "k2": "v11"}


def test_snapshots_of_segments_that_vanished_go(directory: LogDir) -> None:
    log = filled(directory)
    wait(directory, perform(log.flush()))
    log.config = directory.open(**{**FIELDS, "segment_bytes": 650}).config
    count = len(log.segments)
    clean(directory, log)
    assert len(log.segments) < count
    snapshots = {int(name.partition(".")[0]) for name in directory.names(".snapshot")}
    assert snapshots
    assert snapshots <= set(log.segments.bases)


def test_readers_see_the_same_records_at_every_moment(powered: PoweredLogDir) -> None:
    log = filled(powered)
    before = records(log)
    job, done = cleaned(log)
    newest = {key: offset for offset, key, _ in before}
    last = max(newest[key] for key in ("k0", "k1", "k2"))

    async def read_on() -> int:
        reads = 0
        while not swapping.done():
            for start in range(0, log.log_end_offset, 5):
                data = log.read(start, ALL, log.log_end_offset, min_one=True)
                found = [offset for offset, _ in values_in(data)]
                assert found == sorted(set(found))
                assert set(found) <= {offset for offset, _, _ in before}
            assert {key: offset for offset, key, _ in records(log)} == newest
            reads += 1
            await asyncio.sleep(0.0001)
        return reads

    async def both() -> int:
        nonlocal swapping
        swapping = asyncio.ensure_future(perform(swap(log, job, done)))
        reads = await read_on()
        await swapping
        return reads

    swapping: asyncio.Future[Any]
    assert powered.world.run(both()) > 3
    assert last in {offset for offset, _, _ in records(log)}
    assert len(records(log)) < len(before)


def cut(log: Log) -> None:
    log.truncate_to(log.log_end_offset - 1)


def begin_anew(log: Log) -> None:
    log.truncate_fully_and_start_at(100)


@pytest.mark.parametrize("change", [cut, begin_anew])
def test_a_log_that_was_cut_is_left_alone(directory: LogDir, change: Callable[[Log], None]) -> None:
    log = filled(directory)
    job, done = cleaned(log)
    change(log)
    before = records(log)
    with pytest.raises(Overtaken, match="cut") as overtaken:
        wait(directory, perform(swap(log, job, done)))
    assert overtaken.value.doomed == []
    assert not directory.names(".cleaned")
    assert not directory.names(".swap")
    assert records(log) == before


@pytest.mark.parametrize("change", [cut, begin_anew])
def test_a_cut_while_the_names_are_synced_turns_the_new_ones_away(
    powered: PoweredLogDir, change: Callable[[Log], None]
) -> None:
    log = filled(powered)
    job, done = cleaned(log)

    async def both() -> None:
        swapping = asyncio.ensure_future(perform(swap(log, job, done)))
        while not log.arriving:  # noqa: ASYNC110
            await asyncio.sleep(0.00001)
        assert powered.names(".swap")
        change(log)
        assert not powered.names(".swap")
        with pytest.raises(Overtaken, match="cut"):
            await swapping

    powered.flush(log)
    powered.world.run(both())
    powered.flush(log)
    before = records(log)
    powered.power_loss()
    assert not powered.names(".swap")
    assert records(powered.recover(recovery_point=0, **FIELDS).log) == before


@pytest.mark.parametrize("change", [cut, begin_anew])
def test_a_cut_while_the_new_ones_are_opened_leaves_nothing_for_a_restart_to_finish(
    powered: PoweredLogDir, change: Callable[[Log], None]
) -> None:
    log = filled(powered)
    job, done = cleaned(log)

    async def both() -> None:
        swapping = asyncio.ensure_future(perform(swap(log, job, done)))
        await asyncio.sleep(0)
        change(log)
        while not swapping.done():
            assert not powered.names(".swap")
            await asyncio.sleep(0.00001)
        with pytest.raises(Overtaken, match="cut"):
            await swapping

    powered.world.run(both())
    assert not powered.names(".cleaned")


def test_what_retention_took_meanwhile_is_not_brought_back(directory: LogDir) -> None:
    log = filled(directory)
    job, done = cleaned(log)
    gone = len(done.groups[0].bases)
    for path in log.drop_segments(gone, NOW):
        log.disk.remove(path)
    start = log.log_start_offset
    wait(directory, perform(swap(log, job, done)))
    assert log.log_start_offset == log.segments.bases[0] == start
    assert not directory.names(".cleaned")
    assert len(records(log)) < 20


def test_a_group_of_which_retention_took_a_part_is_given_up(directory: LogDir) -> None:
    log = filled(directory)
    log.config = directory.open(**{**FIELDS, "segment_bytes": 650}).config
    job, done = cleaned(log)
    assert len(done.groups[0].bases) > 1
    log.drop_segments(1, NOW)
    with pytest.raises(Overtaken, match="not those"):
        wait(directory, perform(swap(log, job, done)))
    assert not directory.names(".cleaned")


def test_compaction_and_retention_together(directory: LogDir) -> None:
    log = filled(directory)
    log.config = directory.open(**{**FIELDS, "delete": True, "retention_ms": 100}).config
    clean(directory, log)
    assert retention.due(log, log.log_end_offset, NOW + 50) == 0
    count = retention.due(log, log.log_end_offset, NOW + 101)
    assert count == len(log.segments) - 1
    log.drop_segments(count, NOW)
    assert (log.log_start_offset, records(log)) == (24, [])


def test_files_that_are_not_what_the_job_wrote(directory: LogDir) -> None:
    log = filled(directory)
    job, done = cleaned(log)
    before = records(log)
    name = f"{done.groups[0].outputs[0].base_offset:020d}.log.cleaned"
    directory.replace(name, directory.bytes(name)[:-1])
    with pytest.raises(Overtaken, match="bytes that were written"):
        wait(directory, perform(swap(log, job, done)))
    assert records(log) == before


def test_a_log_goes_on_while_it_is_cleaned(powered: PoweredLogDir) -> None:
    log = filled(powered)
    job, done = cleaned(log)
    put(log, {"k0": "newer", "late": "1"}, epoch=4)
    powered.world.run(perform(swap(log, job, done)))
    assert view(log)["k0"] == "newer"
    assert view(log)["late"] == "1"
    assert log.epochs.entries[-1] == (4, 24)
    log.truncate_to(24)
    assert view(log)["k0"] == "v9"
