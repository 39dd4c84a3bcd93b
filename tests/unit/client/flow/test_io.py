"""Waiting: signals that wake all, sleeps that end, and several coroutines beside each other."""

from __future__ import annotations

import pytest

from strandline.client.flow.io import Signal, gather, sleep
from strandline.client.selecting import Scheduler


def test_a_signal_wakes_all_who_wait_and_nobody_later():
    scheduler = Scheduler()
    signal = Signal(scheduler)

    async def story() -> list[bool]:
        scheduler.call_later(0.001, signal.set)
        woken = await gather(scheduler, [signal.wait(5.0), signal.wait()])
        return [*woken, await signal.wait(0.001)]

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
