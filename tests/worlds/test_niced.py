"""What work in a process of its own does, in both worlds."""

from __future__ import annotations

import asyncio
import math

import pytest

from strandline.ports import Disk

from .conftest import Stage
from .slow_works import Copying, Refused, copy, double, refuse

NO_LIMIT = math.inf


async def size_reaches(disk: Disk, path: str, size: int) -> None:
    async with asyncio.timeout(30):
        while not disk.exists(path) or disk.size(path) < size:  # noqa: ASYNC110  # another process makes it grow
            await asyncio.sleep(0.01)


def test_niced_work_returns_or_raises(stage: Stage) -> None:
    async def story() -> None:
        stage.disk.write_file(f"{stage.root}/a", b"0123456789abcdefghijk")
        copying = Copying(f"{stage.root}/a", f"{stage.root}/b")
        assert await stage.disk.offload_niced(copy, copying, NO_LIMIT) == 3
        assert stage.disk.read_file(f"{stage.root}/b") == b"0123456789abcdefghijk"
        missing = Copying(f"{stage.root}/missing", f"{stage.root}/c")
        with pytest.raises(FileNotFoundError) as refused:
            await stage.disk.offload_niced(copy, missing, NO_LIMIT)
        assert refused.value.filename == missing.source
        with pytest.raises(Refused, match="one and other") as raised:
            await stage.disk.offload_niced(refuse, "other", NO_LIMIT)
        assert raised.value.other == "other"
        assert await stage.disk.offload_niced(double, 21, NO_LIMIT) == 42

    stage.run(story())


def test_niced_works_run_side_by_side(stage: Stage) -> None:
    async def story() -> None:
        stage.disk.write_file(f"{stage.root}/a", b"x" * 1000)
        works = [
            stage.disk.offload_niced(copy, Copying(f"{stage.root}/a", f"{stage.root}/{number}"), NO_LIMIT)
            for number in range(2)
        ]
        assert await asyncio.gather(*works) == [100, 100]

    stage.run(story())


def test_niced_work_keeps_its_pace(stage: Stage) -> None:
    async def story() -> None:
        stage.disk.write_file(f"{stage.root}/a", b"x" * 1000)
        await stage.disk.offload_niced(double, 1, NO_LIMIT)  # its process is there now
        began = stage.clock.monotonic()
        await stage.disk.offload_niced(copy, Copying(f"{stage.root}/a", f"{stage.root}/b"), 2500)
        assert 0.25 < stage.clock.monotonic() - began < 5

    stage.run(story())


def test_niced_work_that_is_cancelled_writes_no_more(stage: Stage) -> None:
    async def story() -> None:
        stage.disk.write_file(f"{stage.root}/a", b"x" * 100_000)
        target = f"{stage.root}/b"
        work = asyncio.get_running_loop().create_task(
            stage.disk.offload_niced(copy, Copying(f"{stage.root}/a", target), 1000)
        )
        await size_reaches(stage.disk, target, 50)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        size = stage.disk.size(target)
        await asyncio.sleep(0.2)
        assert stage.disk.size(target) == size < 100_000
        assert await stage.disk.offload_niced(double, 4, NO_LIMIT) == 8

    stage.run(story())


def test_what_niced_work_synced_is_seen_by_who_opens_it_then(stage: Stage) -> None:
    async def story() -> None:
        source = stage.disk.open(f"{stage.root}/a", create=True)
        source.append(b"not synced, and there all the same")
        await stage.disk.offload_niced(copy, Copying(source.path, f"{stage.root}/b.cleaned"), NO_LIMIT)
        stage.disk.rename(f"{stage.root}/b.cleaned", f"{stage.root}/b")
        copied = stage.disk.open(f"{stage.root}/b")
        assert copied.size == source.size
        copied.append(b"!")
        assert copied.read_blocking(copied.size - 4, 4) == b"ame!"

    stage.run(story())
