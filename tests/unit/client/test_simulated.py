"""The asyncio client in a simulated world: virtual time, split and joined bytes, connections that break at any byte."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
import random

import pytest

from strandline.client.aio import AsyncClient, Consumer, ConsumerConfig, Producer, ProducerConfig
from strandline.sim.world import World

from .server import Broker, serve

RECORDS = 60


async def produce_and_consume(node, broker: Broker) -> list[bytes | None]:
    async with AsyncClient("broker:9092", clock=node.clock, randomness=node.randomness) as client:
        async with Producer(client, ProducerConfig(linger_ms=1, batch_size=100)) as producer:
            sent = []
            for number in range(RECORDS):
                sent.append(producer.send("t", b"%d" % number))
                await asyncio.sleep(node.randomness.random() * 0.02)
            await producer.flush()
            assert [delivery.result().offset for delivery in sent] == list(range(RECORDS))
        consumer = Consumer(client, ConsumerConfig(auto_offset_reset="earliest"))
        consumer.assign([("t", 0)])
        values: list[bytes | None] = []
        while len(values) < RECORDS:
            values += [record.value for record in await consumer.poll(1.0)]
        await consumer.close()
        return values


async def break_connections(world: World, times: int, chance: random.Random) -> None:
    for _ in range(times):
        await asyncio.sleep(chance.random() * 0.2)
        world.network.reset_connections("client", "broker")


@pytest.mark.parametrize("seed", range(10))
def test_each_record_is_there_once_and_in_order_though_connections_break(seed):
    broker = Broker("broker", 9092)
    with World(seed) as world:
        server, client = world.node("broker"), world.node("client")

        async def story() -> list[bytes | None]:
            await server.spawn(serve(broker))
            breaking = asyncio.ensure_future(break_connections(world, 6, random.Random(seed)))
            values = await client.spawn(produce_and_consume(client, broker))
            await breaking
            return values

        assert world.run(story(), until=600) == [b"%d" % number for number in range(RECORDS)]
    assert broker.log.values == [b"%d" % number for number in range(RECORDS)]
    assert broker.connections > 2


def test_a_flush_that_waits_for_a_silent_broker_does_nothing_meanwhile():
    broker = Broker("broker", 9092)
    with World(1) as world:
        server, client = world.node("broker"), world.node("client")

        async def wait() -> int:
            async with AsyncClient("broker:9092", clock=client.clock, randomness=client.randomness) as connected:
                producer = Producer(connected, ProducerConfig(linger_ms=0))
                await producer.send("t", b"first")
                server.pause()
                delivery = producer.send("t", b"second")
                flushing = asyncio.ensure_future(producer.flush())
                await asyncio.sleep(0.1)
                before = world.loop.steps
                await asyncio.sleep(5.0)
                steps = world.loop.steps - before
                server.resume()
                await flushing
                assert delivery.result().offset == 1
                await producer.close()
                return steps

        async def story() -> int:
            await server.spawn(serve(broker))
            return await client.spawn(wait())

        assert world.run(story(), until=60) < 100
