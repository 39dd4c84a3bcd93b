"""A poll waits as long as it was told to, but not when there is something to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from strandline.client.aio import AsyncClient, Consumer, ConsumerConfig
from strandline.sim.world import World
from strandline.wire.headers import read_request_header

from ..core.broker import metadata
from ..server import Broker, serve

FETCH = 1


class Waiting(Broker):
    """Its Fetch of what is not there yet waits for ever; it notes what else it is asked."""

    leader = (1, 0)

    def __init__(self) -> None:
        super().__init__("broker", 9092)
        self.log.values = [b"first", b"second"]
        self.asked: list[int] = []
        self.waiting = 0

    def reply(self, frame: bytes) -> bytes | None:
        self.asked.append(read_request_header(frame).api_key)
        reply = super().reply(frame)
        if self.waiting and self.asked[-1] == FETCH:
            self.waiting -= 1
            return b""
        return reply

    def fetch(self, request: Any) -> Any:
        ends = [p.fetch_offset >= len(self.log.values) for topic in request.topics for p in topic.partitions]
        self.waiting += all(ends)
        return super().fetch(request)

    def metadata(self, _: Any) -> Any:
        answer = metadata({0: self.leader}, nodes=(1, 2))
        for broker in answer.brokers:
            broker.host, broker.port = self.host, self.port
        return answer


def play(act: Callable[[Waiting, AsyncClient, Consumer], Any], *, taken: int) -> tuple[list[bytes | None], float]:
    """Something is done a second after a poll has begun to wait; what the poll brings, and after how long."""
    broker = Waiting()
    with World(1) as world:
        server, node = world.node("broker"), world.node("client")

        async def story() -> tuple[list[bytes | None], float]:
            async with AsyncClient("broker:9092", clock=node.clock, randomness=node.randomness) as client:
                consumer = Consumer(client, ConsumerConfig(auto_offset_reset="earliest"))
                consumer.assign([("t", 0)])
                assert len(await consumer.poll(5.0, records_max=taken)) == taken
                await asyncio.sleep(1.0)
                if taken == 1:
                    consumer.pause([("t", 0)])
                began, steps = world.loop.time(), world.loop.steps
                polling = asyncio.ensure_future(consumer.poll(20.0))
                await asyncio.sleep(1.0)
                assert not polling.done()
                assert world.loop.steps - steps < 10, "it waits, and does nothing else"
                broker.asked.clear()
                acted = act(broker, client, consumer)
                if asyncio.iscoroutine(acted):
                    await acted
                records = await polling
                waited_s = world.loop.time() - began
                await consumer.close()
                return [record.value for record in records], waited_s

        async def main() -> tuple[list[bytes | None], float]:
            await server.spawn(serve(broker))
            return await node.spawn(story())

        return world.run(main(), until=60)


def test_a_resumed_partition_shows_at_once_what_is_here() -> None:
    values, waited_s = play(lambda broker, client, consumer: consumer.resume([("t", 0)]), taken=1)
    assert values == [b"second"]
    assert waited_s < 1.01


@pytest.mark.parametrize(
    "act",
    [
        lambda consumer: consumer.seek_to_beginning(),
        lambda consumer: consumer.assign([("t", 0), ("other", 0)]),
        lambda consumer: consumer.seek("t", 0, 1, leader_epoch=0),
    ],
)
def test_who_seeks_or_assigns_does_not_wait_for_the_poll(act: Callable[[Consumer], None]) -> None:
    seen: list[int] = []

    async def acting(broker: Waiting, client: AsyncClient, consumer: Consumer) -> None:
        act(consumer)
        await asyncio.sleep(0.05)
        seen.extend(broker.asked)

    play(acting, taken=2)
    assert seen, "what is wanted now was not asked for"


def test_a_leader_that_somebody_else_learned_of_is_asked_at_once() -> None:
    async def moved(broker: Waiting, client: AsyncClient, consumer: Consumer) -> None:
        broker.leader = (2, 1)
        broker.log.values.append(b"third")
        await client.refresh(["t"])

    values, waited_s = play(moved, taken=2)
    assert values == [b"third"]
    assert waited_s < 1.1
