"""Small compacted logs: filled, cleaned, looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

from strandline.log.compaction.job import CleaningResult, CleanJob, run
from strandline.log.compaction.planning import plan
from strandline.log.compaction.swapping import swap
from strandline.log.log import Log
from strandline.node.log_effects import perform
from strandline.records.batch import BatchBuilder, decode
from strandline.records.header import BatchHeader, iterate
from strandline.records.record import Record

from ..conftest import ALL, NOW, LogDir, PoweredLogDir

COMPACT: dict[str, Any] = {
    "compact": True,
    "delete": False,
    "cleanup_policy": ("compact",),
    "min_cleanable_dirty_ratio": 0.0,
    "index_interval_bytes": 150,
}
Pairs = Mapping[str, str | None] | list[tuple[str | None, str | None]]


def puts(pairs: Pairs, *, timestamp: int = NOW, **fields: Any) -> bytearray:
    """A batch that puts these values; None deletes."""
    builder = BatchBuilder()
    for key, value in pairs.items() if isinstance(pairs, Mapping) else pairs:
        builder.append(
            None if key is None else key.encode(), None if value is None else value.encode(), timestamp=timestamp
        )
    return builder.build(**fields)


def put(log: Log, pairs: Pairs, *, epoch: int = 0, now_ms: int = NOW, **fields: Any) -> int:
    return log.append_own(puts(pairs, **fields), epoch, now_ms)


def job_for(log: Log, clean_offset: int | None = None, *, now_ms: int = NOW, **fields: Any) -> CleanJob:
    """What there is to clean if all that is written is committed."""
    job = plan(log, clean_offset, log.log_end_offset, now_ms).job
    assert job is not None
    return replace(job, **fields)


def run_job(log: Log, job: CleanJob) -> CleaningResult:
    return run(log.disk, lambda size: None, job)


def wait(directory: LogDir, work: Coroutine[Any, Any, Any]) -> Any:
    return directory.world.run(work) if isinstance(directory, PoweredLogDir) else asyncio.run(work)


def clean(
    directory: LogDir, log: Log, clean_offset: int | None = None, *, now_ms: int = NOW, roll: bool = True, **fields: Any
) -> CleaningResult:
    """Close the active segment, clean all that is closed, and let it take its place."""
    if roll:
        log.roll(now_ms)
    job = job_for(log, clean_offset, now_ms=now_ms, **fields)
    cleaned = run_job(log, job)
    for path in wait(directory, perform(swap(log, job, cleaned))):
        log.disk.remove(path)
    return cleaned


def batches(log: Log, offset: int | None = None) -> list[tuple[BatchHeader, list[Record]]]:
    """All that is in the log, batch by batch, as a consumer fetches it."""
    found: list[tuple[BatchHeader, list[Record]]] = []
    offset = log.log_start_offset if offset is None else offset
    while data := log.read(offset, ALL, log.log_end_offset, min_one=True):
        for position, header in iterate(data):
            found.append((header, list(decode(data[position : position + header.size_bytes]))))
            offset = header.next_offset
    return found


def records(log: Log, offset: int | None = None) -> list[tuple[int, str, str | None]]:
    """Offset, key and value of each record."""
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for header, records in batches(log, offset)
        if not header.is_control
        for record in records
    ]


def view(log: Log) -> dict[str, str]:
    """The last value of each key: what somebody knows who has read it all."""
    state: dict[str, str] = {}
    for _, key, value in records(log):
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
    return state
