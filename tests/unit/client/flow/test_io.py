"""Waiting: signals that wake all, sleeps that end, and several coroutines beside each other."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio

import pytest

from strandline.client.aio import AsyncioIo
from strandline.client.flow.io import Condition, FifoLock, gather, sleep
from strandline.client.selecting import Scheduler
from strandline.runtime.clock import SystemClock


def test_a_condition_wakes_all_who_wait_now_and_none_later():
    scheduler = Scheduler()
    condition = Condition(scheduler)

    async def set_it() -> bool:
        await sleep(scheduler, 0.001)  # the others, which were begun before, wait by now
        condition.notify_all()
        return True

    async def story() -> list[bool]:
        woken = await gather(scheduler, [condition.wait(5.0), condition.wait(), set_it()])
        return [*woken[:2], await condition.wait(0.001)]

    assert scheduler.run(story()) == [True, True, False]
    scheduler.close()


def test_gather_keeps_the_order_and_raises_once_all_have_ended():
    scheduler = Scheduler()
    ended = []

    async def work(name: str, delay_s: float) -> str:
        await sleep(scheduler, delay_s)
        ended.append(name)
        if name == "bad":
            raise LookupError(name)
        return name

    assert scheduler.run(gather(scheduler, [work("a", 0.004), work("b", 0.001)])) == ["a", "b"]
    assert scheduler.run(gather(scheduler, [])) == []
    ended.clear()
    with pytest.raises(LookupError):
        scheduler.run(gather(scheduler, [work("bad", 0.001), work("slow", 0.004)]))
    assert ended == ["bad", "slow"]
    scheduler.close()


async def test_turns_come_in_the_order_of_asking_and_pass_over_who_gave_up():
    turns = FifoLock(AsyncioIo(asyncio.get_running_loop(), SystemClock(), None))
    done: list[str] = []

    async def act(name: str) -> None:
        async with turns:
            await asyncio.sleep(0)
            done.append(name)

    tasks = {name: asyncio.ensure_future(act(name)) for name in "abcd"}
    await asyncio.sleep(0)
    tasks["b"].cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)
    assert done == ["a", "c", "d"]


async def test_who_gives_up_just_when_its_turn_came_passes_it_on():
    turns = FifoLock(AsyncioIo(asyncio.get_running_loop(), SystemClock(), None))
    await turns.__aenter__()

    async def act() -> None:
        async with turns:
            pass

    first, second = asyncio.ensure_future(act()), asyncio.ensure_future(act())
    await asyncio.sleep(0)
    await turns.__aexit__()
    first.cancel()
    await asyncio.wait_for(second, 1.0)
    assert first.cancelled()
