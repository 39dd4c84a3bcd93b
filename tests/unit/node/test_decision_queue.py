"""A queue of decisions: sent until decided, one request at a time, with longer pauses after failures."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.node.decision_queue import DecisionQueue, Place
from strandline.sim.world import World

from .scripted import quiet_logger

TOPIC = Uuid(bytes(15) + b"\7")


class Reply:
    def __init__(self, *decided: int, error_code: int = 0) -> None:
        self.decided = decided
        self.error_code = error_code


class Channel:
    """A controller that answers from a script: replies, or errors; it decides about everything when that is over."""

    def __init__(self, script: list[Reply | KafkaError]) -> None:
        self.script = script
        self.asked: list[tuple[float, list[int]]] = []
        self.in_flight = self.in_flight_max = 0

    async def ask(self, api_key: int, message: list[int], timeout_s: float, **how: Any) -> Reply:
        self.asked.append((asyncio.get_running_loop().time(), message))
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self.in_flight)
        await asyncio.sleep(0.01)
        self.in_flight -= 1
        outcome = self.script.pop(0) if self.script else Reply(*message)
        if isinstance(outcome, KafkaError):
            raise outcome
        return outcome


class Numbers(DecisionQueue[int, Any]):
    api_key, purpose, content = 0, "numbers", "numbers"
    backoff_min_s, backoff_max_s = 0.1, 1.0

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel, 1, lambda: 1, random.Random(1), quiet_logger(), lambda task: None)  # type: ignore[arg-type]
        self.waiting: dict[Place, int] = {}

    def add(self, number: int) -> None:
        self.waiting[TOPIC, number] = number
        self._start()

    def _has_waiting(self) -> bool:
        return bool(self.waiting)

    def _take(self) -> dict[Place, int]:
        return dict(self.waiting)

    def _request(self, asked: Mapping[Place, int]) -> Any:
        return list(asked.values())

    def _settle(self, asked: Mapping[Place, int], response: Reply | None) -> bool:
        for number in () if response is None else response.decided:
            del self.waiting[TOPIC, number]
        return not self.waiting.keys() & asked.keys()


def play(
    story: Callable[[Numbers, Channel], Coroutine[Any, Any, None]], *script: Reply | KafkaError
) -> tuple[Channel, Numbers]:
    with World(1) as world:
        queues = []

        async def body() -> None:
            channel = Channel(list(script))
            queue = Numbers(channel)
            queues.append((channel, queue))
            await story(queue, channel)
            await queue.close()

        world.run(body())
        return queues[0]


async def add_three(queue: Numbers, channel: Channel) -> None:
    for number in range(3):
        queue.add(number)
    await asyncio.sleep(60)


def test_all_that_waits_goes_in_one_request() -> None:
    channel, queue = play(add_three)
    assert [numbers for _, numbers in channel.asked] == [[0, 1, 2]]
    assert not queue.waiting


def test_what_was_not_decided_is_sent_again() -> None:
    channel, _ = play(add_three, Reply(1), Reply(0))
    assert [numbers for _, numbers in channel.asked] == [[0, 1, 2], [0, 2], [2]]


def test_a_request_that_failed_or_was_refused_is_sent_again_after_longer_and_longer_pauses() -> None:
    failed = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")
    channel, queue = play(add_three, *(failed, Reply(error_code=ErrorCode.STALE_BROKER_EPOCH)) * 5)
    times = [at for at, _ in channel.asked]
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    bounds = [min(0.1 * 2.0**i, 1.0) for i in range(10)]
    assert all(bound / 2 <= pause <= bound + 0.02 for pause, bound in zip(pauses, bounds, strict=True))
    assert not queue.waiting


def test_one_request_is_in_flight_at_a_time() -> None:
    async def one_by_one(queue: Numbers, channel: Channel) -> None:
        for number in range(5):
            queue.add(number)
            await asyncio.sleep(0.005)
        await asyncio.sleep(1)

    channel, queue = play(one_by_one)
    assert channel.in_flight_max == 1
    assert not queue.waiting


def test_once_closed_nothing_is_sent() -> None:
    async def close_first(queue: Numbers, channel: Channel) -> None:
        queue.add(1)
        await queue.close()
        queue.add(2)
        await asyncio.sleep(60)

    channel, queue = play(close_first)
    assert channel.asked == []
    assert set(queue.waiting.values()) == {1, 2}
