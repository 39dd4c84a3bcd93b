"""The client on asyncio, against a broker in the same loop."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
import random

import pytest

from strandline.client.aio import AsyncClient, ClientConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from strandline.client.errors import Closed, NoBrokerReachable

from .server import Broker, serve


class NoonClock:
    def monotonic(self) -> float:
        return 0.0

    def wall_ms(self) -> int:
        return 43_200_000


def client_of(broker: Broker, **config) -> AsyncClient:
    return AsyncClient(
        f"{broker.host}:{broker.port}", clock=NoonClock(), randomness=random.Random(1), config=ClientConfig(**config)
    )


async def test_records_go_there_and_come_back():
    broker = Broker()
    server = await serve(broker)
    async with client_of(broker) as client:
        async with Producer(client, ProducerConfig(linger_ms=0)) as producer:
            sent = [producer.send("t", b"%d" % i) for i in range(10)]
            assert [(await delivery).offset for delivery in sent] == list(range(10))
            assert (await sent[0]).timestamp == 43_200_000
        consumer = Consumer(client, ConsumerConfig(auto_offset_reset="earliest"))
        consumer.assign([("t", 0)])
        assert await consumer.end_offsets([("t", 0)]) == {("t", 0): 10}
        assert [record.value for record in await consumer.poll(5.0)] == [b"%d" % i for i in range(10)]
        assert await consumer.position("t", 0) == 10
        await consumer.close()
        with pytest.raises(Closed):
            await consumer.poll()
    server.close()


async def test_a_reply_lost_after_the_append_is_not_a_second_append():
    broker = Broker(lose_replies=(1, 2, 4))
    server = await serve(broker)
    async with client_of(broker) as client, Producer(client, ProducerConfig(linger_ms=0, batch_size=1)) as producer:
        sent = [producer.send("t", b"%d" % i) for i in range(6)]
        await producer.flush()
        assert [delivery.result().offset for delivery in sent] == list(range(6))
    assert broker.log.values == [b"%d" % i for i in range(6)]
    assert broker.produced[0] == broker.produced[1] == broker.produced[2]
    assert broker.connections >= 4
    server.close()


async def test_who_stops_waiting_for_one_record_does_not_disturb_the_others():
    broker = Broker()
    server = await serve(broker)
    async with client_of(broker) as client, Producer(client, ProducerConfig(linger_ms=20)) as producer:
        first, second = producer.send("t", b"1"), producer.send("t", b"2")

        async def wait() -> None:
            await first

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        assert (await second).offset == 1
        assert first.result().offset == 0
    server.close()


async def test_nobody_there_is_said_in_one_line():
    broker = Broker()
    server = await serve(broker)
    server.close()
    await server.wait_closed()
    async with client_of(broker) as client:
        with pytest.raises(NoBrokerReachable, match=f"no broker reachable at 127.0.0.1:{broker.port} ") as caught:
            await client.refresh()
        assert "\n" not in str(caught.value)


async def test_a_server_that_does_not_answer_is_given_up():
    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(ignore, "127.0.0.1", 0)
    broker = Broker(port=server.sockets[0].getsockname()[1])
    async with client_of(broker, connection_setup_timeout_ms=50) as client:
        with pytest.raises(NoBrokerReachable, match="did not answer in time"):
            await client.refresh()
    server.close()


async def test_what_was_not_delivered_fails_when_the_producer_is_closed():
    broker = Broker(port=1)
    async with client_of(broker) as client:
        producer = Producer(client)
        delivery = producer.send("t", b"v")
        await producer.close(timeout_s=0.01)
        with pytest.raises(Closed):
            delivery.result()
        with pytest.raises(Closed):
            producer.send("t", b"v")
