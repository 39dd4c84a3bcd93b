"""Work that a cancellation must not cut off."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio

import pytest

from strandline.node.tasks import to_the_end


async def begun(work):
    """A task that waits for the work, cancelled when the work is under way."""
    task = asyncio.create_task(to_the_end(work))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    return task


async def test_the_result_is_handed_on():
    async def work():
        return 7

    assert await to_the_end(work()) == 7


async def test_a_cancelled_task_waits_for_its_work():
    gate, ended = asyncio.Event(), []

    async def work():
        await gate.wait()
        ended.append(True)

    task = await begun(work())
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended


async def test_the_works_own_error_counts_for_more():
    gate = asyncio.Event()

    async def work():
        await gate.wait()
        raise OSError("full")

    task = await begun(work())
    gate.set()
    with pytest.raises(OSError, match="full"):
        await task


async def test_work_that_is_cancelled_itself():
    async def work():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await to_the_end(work())
