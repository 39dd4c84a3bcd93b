"""Work on a log, performed: each effect's result goes back into the work, and so does its error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from strandline.log.effects import LogWork, OffloadWork, SyncFile, offloaded, synced
from strandline.node.log_effects import perform
from strandline.ports import Disk, File


class StubDisk:
    async def offload(self, work: Callable[[], Any], path: str) -> Any:
        await asyncio.sleep(0)
        return work()


class StubFile:
    syncs = 0

    async def sync(self) -> None:
        self.syncs += 1


DISK = cast(Disk, StubDisk())


async def test_effects_are_performed_in_order_and_their_results_come_back() -> None:
    file = StubFile()

    def work() -> LogWork[list[int]]:
        one = yield from offloaded(DISK, lambda: 1, "/log")
        yield from synced(cast(File, file))
        two = yield from offloaded(DISK, lambda: one + 1, "/log")
        return [one, two]

    assert await perform(work()) == [1, 2]
    assert file.syncs == 1


async def test_an_effects_error_is_raised_inside_the_work() -> None:
    released = []

    def work() -> LogWork[str]:
        try:
            yield from offloaded(DISK, lambda: 1 // 0, "/log")
        except ZeroDivisionError:
            return "went on"
        finally:
            released.append(True)
        return "never"

    assert await perform(work()) == "went on"
    assert released


async def test_a_cancelled_work_gives_up_what_it_held() -> None:
    released = []

    def work() -> LogWork[None]:
        try:
            yield from offloaded(DISK, lambda: None, "/log")
        finally:
            released.append(True)

    task = asyncio.ensure_future(perform(work()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert released


def test_the_same_work_can_be_done_without_a_loop() -> None:
    work = offloaded(DISK, lambda: 7, "/log")
    effect = next(work)
    assert isinstance(effect, OffloadWork)
    assert effect.path == "/log"
    with pytest.raises(StopIteration) as ended:
        work.send(effect.work())
    assert ended.value.value == 7
    assert isinstance(next(synced(cast(File, StubFile()))), SyncFile)
