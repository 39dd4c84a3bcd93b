"""Workers of the real disk: who waits behind whom."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from strandline.ports import COMPUTING_MAX, WORKERS_MAX
from strandline.runtime.disk import FileDisk


@pytest.fixture
def disk() -> Iterator[FileDisk]:
    disk = FileDisk(max_open_files=16)
    yield disk
    disk.close()


class Hung:
    """Work that a device does not finish until it is let go."""

    def __init__(self) -> None:
        self.started = threading.Semaphore(0)
        self.go_on = threading.Event()

    def __call__(self) -> None:
        self.started.release()
        assert self.go_on.wait(60)


async def hang(disk: FileDisk, hung: Hung, path: str, count: int) -> list[asyncio.Task[None]]:
    """As much work as this, of which as much as there are workers has begun."""
    working = [asyncio.create_task(disk.offload(hung, path)) for _ in range(count)]
    await asyncio.sleep(0)
    for _ in range(min(count, WORKERS_MAX)):
        assert hung.started.acquire(timeout=60)
    return working


def test_a_slow_log_dir_holds_up_neither_another_nor_the_metadata_log(disk: FileDisk, tmp_path: Path) -> None:
    slow, other, metadata = f"{tmp_path}/slow", f"{tmp_path}/slow2", f"{tmp_path}/slow/__cluster_metadata-0"
    for path in (slow, other, metadata):
        disk.mkdir(path)
        disk.dedicate_workers(path)
    hung = Hung()

    async def story() -> None:
        working = await hang(disk, hung, f"{slow}/t-0", WORKERS_MAX + 3)
        for directory in (other, metadata, str(tmp_path)):
            file = disk.open(f"{directory}/file", create=True)
            file.append(b"x")
            await file.sync()
            assert await disk.offload(lambda: 7, directory) == 7
            assert await disk.offload(lambda: 8, f"{directory}/t-1") == 8
        assert not hung.started.acquire(blocking=False), "more of them run than there are workers"
        assert not any(task.done() for task in working)
        hung.go_on.set()
        await asyncio.gather(*working)

    try:
        asyncio.run(story())
    finally:
        hung.go_on.set()


def test_workers_are_dedicated_once(disk: FileDisk, tmp_path: Path) -> None:
    """Metadata and replicas may share a log dir: it has one set of workers, however often it is named."""
    hung = Hung()

    async def story() -> None:
        for _ in range(2):
            disk.dedicate_workers(f"{tmp_path}/a")
        working = await hang(disk, hung, f"{tmp_path}/a", WORKERS_MAX)
        disk.dedicate_workers(f"{tmp_path}/a/")
        working += [asyncio.create_task(disk.offload(hung, f"{tmp_path}/a"))]
        assert await disk.offload(lambda: 7, "") == 7
        assert not hung.started.acquire(blocking=False)
        hung.go_on.set()
        await asyncio.gather(*working)

    try:
        asyncio.run(story())
    finally:
        hung.go_on.set()


class Argument:
    """What somebody computes with."""


def test_computing_that_is_cancelled_keeps_nothing_and_takes_no_thread(disk: FileDisk) -> None:
    """Not begun, it is forgotten with what it was given; begun, it is waited for, because it still has that."""
    hung = Hung()

    async def story() -> None:
        working = [asyncio.create_task(disk.offload_compute(hung)) for _ in range(COMPUTING_MAX)]
        await asyncio.sleep(0)
        for _ in working:
            assert hung.started.acquire(timeout=60)
        argument = Argument()
        left = weakref.ref(argument)
        waiting = asyncio.create_task(disk.offload_compute(partial(str, argument)))
        del argument
        await asyncio.sleep(0)
        assert left() is not None
        waiting.cancel()
        await asyncio.wait([waiting])
        del waiting
        assert left() is None
        working[0].cancel()
        third = asyncio.create_task(disk.offload_compute(lambda: 3))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not working[0].done()
        hung.go_on.set()
        await asyncio.wait(working)
        assert [task.cancelled() for task in working] == [True] + [False] * (COMPUTING_MAX - 1)
        assert await third == 3

    asyncio.run(story())
