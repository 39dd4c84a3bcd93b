"""What is cut, held back, slowed down, reset and lost between hosts."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import asyncio

import pytest

from strandline.sim.link import NetworkLink
from strandline.sim.pipe import Pipe
from strandline.sim.world import SimNode, World

from .talk import ask, serve, two


def test_a_cut_holds_bytes_and_does_not_lose_them(world: World) -> None:
    n1, _ = two(world)

    async def story() -> None:
        await n1.spawn(serve())
        reader, writer = await asyncio.open_connection("n1", 9092)
        world.network.cut("outside", "n1")
        writer.write(b"one ")
        await asyncio.sleep(5)
        writer.write(b"two ")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await reader.read(1)
        world.network.heal("outside", "n1")
        writer.write(b"three")
        async with asyncio.timeout(5):
            assert await reader.readexactly(13) == b"one two three"

    world.run(story())


def test_a_long_cut_ends_the_connection(world: World) -> None:
    n1, _ = two(world)

    async def story() -> None:
        await n1.spawn(serve())
        reader, writer = await asyncio.open_connection("n1", 9092)
        world.network.cut("outside", "n1")
        began = world.now
        writer.write(b"hello")
        with pytest.raises(TimeoutError):
            await reader.read(1)
        assert world.now - began == pytest.approx(world.network.give_up_s, abs=1)
        with pytest.raises(TimeoutError):
            await asyncio.open_connection("n1", 9092)

    world.run(story())


def test_a_one_way_cut_lets_the_other_way_through(world: World) -> None:
    n1, n2 = two(world)
    heard: dict[str, bytearray] = {"n1": bytearray(), "n2": bytearray()}

    class Talker(asyncio.Protocol):
        def __init__(self, name: str) -> None:
            self.name = name

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            heard[self.name] += data

    talkers: list[Talker] = []

    def make(name: str) -> Talker:
        talkers.append(Talker(name))
        return talkers[-1]

    async def listen() -> None:
        await asyncio.get_running_loop().create_server(lambda: make("n1"), "n1", 9092)

    async def connect() -> None:
        await asyncio.get_running_loop().create_connection(lambda: make("n2"), "n1", 9092)

    async def story() -> None:
        await n1.spawn(listen())
        await n2.spawn(connect())
        await asyncio.sleep(1)
        world.network.cut_one_way("n1", "n2")
        for talker in talkers:
            talker.transport.write(b"hello")
        await asyncio.sleep(5)
        assert heard == {"n1": b"hello", "n2": b""}
        world.network.heal_all()
        await asyncio.sleep(5)
        assert heard == {"n1": b"hello", "n2": b"hello"}

    world.run(story())


def test_late_bytes_of_an_old_connection_arrive_after_the_new_ones() -> None:
    orders = set()
    for seed in range(30):
        with World(seed) as world:
            n1, n2 = two(world)

            async def story(world: World = world, n1: SimNode = n1, n2: SimNode = n2) -> bytes:
                received = bytearray()

                async def receive(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
                    while data := await reader.read(100):
                        received.extend(data)

                async def listen() -> None:
                    await asyncio.start_server(receive, "n1", 9092)

                async def send(word: bytes, patience_s: float) -> None:
                    _, writer = await asyncio.open_connection("n1", 9092)
                    if word == b"old ":
                        world.network.cut("n1", "n2")
                    writer.write(word)
                    await asyncio.sleep(patience_s)
                    writer.close()

                await n1.spawn(listen())
                await n2.spawn(send(b"old ", 0.004))
                world.network.heal_all()
                await n2.spawn(send(b"new ", 2))
                await asyncio.sleep(5)
                return bytes(received)

            orders.add(world.run(story()))
    assert orders == {b"old new ", b"new old "}


def test_connections_are_reset_at_both_ends(world: World) -> None:
    n1, _ = two(world)

    async def story() -> None:
        await n1.spawn(serve())
        reader, _ = await asyncio.open_connection("n1", 9092)
        assert world.network.reset_connections("outside", "n1") == 1
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        assert world.network.reset_connections("outside", "n1") == 0

    world.run(story())


def test_a_slow_link_takes_its_time(world: World) -> None:
    n1, n2 = two(world)
    world.network.set_link("n2", "n1", NetworkLink(latency_s=0.1, jitter_s=0, bytes_per_s=1000))

    async def story() -> None:
        await n1.spawn(serve())
        began = world.now
        assert await n2.spawn(ask("n1", bytes(2000), patience_s=10)) == bytes(2000)
        assert 2.1 < world.now - began < 3

    world.run(story())


def test_a_tap_is_shown_all_bytes_as_they_leave(world: World) -> None:
    leaving: dict[tuple[str, str], bytes] = {}

    def tap(pipe: Pipe, data: bytes) -> None:
        way = (pipe.source, pipe.target)
        leaving[way] = leaving.get(way, b"") + data

    world.network.tap = tap

    async def story() -> None:
        await world.node("server").spawn(serve())
        await world.node("client").spawn(ask("server", b"question"))

    world.run(story())
    assert b"question" in leaving["client", "server"]
    assert b"question" in leaving["server", "client"]


def test_a_link_is_slow_both_ways_until_it_is_restored(world: World) -> None:
    n1, n2 = two(world)

    async def duration() -> float:
        began = world.now
        assert await n2.spawn(ask("n1", bytes(37_500), patience_s=10)) == bytes(37_500)
        return world.now - began

    async def story() -> None:
        await n1.spawn(serve())
        assert await duration() < 0.05
        world.network.slow_link("n1", "n2")
        assert 0.6 < await duration() < 1.5, "four times 100 ms, and 100 ms for the bytes each way"
        world.network.restore_link("n2", "n1")
        assert await duration() < 0.05
        world.network.slow_link("n1", "n2", latency_s=1.0, bytes_per_s=1e9)
        assert 4.0 < await duration() < 8.0
        world.network.restore_links()
        assert await duration() < 0.05

    world.run(story())


async def until_reset(reader: asyncio.StreamReader) -> bytes:
    """What still arrives on a connection that does not end well."""
    received = b""
    try:
        while data := await reader.read(1):
            received += data
    except ConnectionResetError:
        return received
    raise AssertionError("it ended well")


def test_a_lost_reply_was_asked_for_and_given(world: World) -> None:
    n1, n2 = two(world)
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while question := await reader.readline():
                asked.append(question)
                await asyncio.sleep(0.01)
                writer.write(question)
        except ConnectionResetError:
            pass
        writer.close()

    async def listen() -> None:
        await asyncio.start_server(answer, "n1", 9092)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("n1", 9092)
        writer.write(b"first\n")
        assert await reader.readline() == b"first\n"
        assert world.network.lose_replies("n2", "n1") == 1
        await asyncio.sleep(1)
        writer.write(b"second\n")
        assert not (await until_reset(reader)).endswith(b"\n")
        assert asked == [b"first\n", b"second\n"], "it was done all the same"
        reader, writer = await asyncio.open_connection("n1", 9092)
        writer.write(b"second\n")
        assert await reader.readline() == b"second\n", "a new connection is whole"

    async def story() -> None:
        await n1.spawn(listen())
        assert world.network.lose_replies("n2", "n1") == 0
        await n2.spawn(client())

    world.run(story())


@pytest.mark.parametrize("seed", range(20))
def test_after_a_reset_nothing_arrives(seed: int) -> None:
    """What the server writes on, knowing nothing, must not follow the prefix as if nothing was missing."""
    numbers = b"".join(b"%d," % number for number in range(400))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        for start in range(0, len(numbers), 40):
            writer.write(numbers[start : start + 40])
        writer.close()

    async def listen() -> None:
        await asyncio.start_server(answer, "n1", 9092)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("n1", 9092)
        world.network.lose_replies("n2", "n1")
        world.network.delay_bytes("n2", "n1", 1.0)  # all of it arrives in one moment
        writer.write(b"?")
        assert numbers.startswith(await until_reset(reader))

    with World(seed) as world:
        n1, n2 = two(world)

        async def story() -> None:
            await n1.spawn(listen())
            await n2.spawn(client())

        world.run(story())


def test_a_reply_in_flight_is_lost_too(world: World) -> None:
    n1, n2 = two(world)
    world.network.set_link("n1", "n2", NetworkLink(latency_s=0.1))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("n1", 9092)
        writer.write(b"question")
        await asyncio.sleep(0.05)
        assert world.network.lose_replies("n1", "n2") == 1
        assert len(await until_reset(reader)) < len(b"question")

    async def story() -> None:
        await n1.spawn(serve())
        await n2.spawn(client())

    world.run(story())


def test_delayed_bytes_arrive_after_those_of_the_next_connection(world: World) -> None:
    n1, n2 = two(world)
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())

    async def listen() -> None:
        await asyncio.start_server(hear, "n1", 9092)

    async def say(word: bytes, delay_s: float) -> None:
        _, writer = await asyncio.open_connection("n1", 9092)
        writer.write(word)
        if delay_s:
            await asyncio.sleep(0.0001)
            assert world.network.delay_bytes("n1", "n2", delay_s) == 1
        writer.write(b"!")
        writer.close()

    async def story() -> None:
        await n1.spawn(listen())
        began = world.now
        await n2.spawn(say(b"old", 3.0))
        await n2.spawn(say(b"new", 0.0))
        await asyncio.sleep(2)
        assert heard == [b"new!"]
        await asyncio.sleep(2)
        assert heard == [b"new!", b"old!"]
        assert world.now - began < 5

    world.run(story())


@pytest.mark.parametrize("choppy", [False, True])
def test_writes_arrive_whole_or_in_pieces(world: World, choppy: bool) -> None:
    n1, n2 = two(world)
    world.network.choppy_probability = float(choppy)
    world.network.hold_probability = 0.0
    pieces: list[bytes] = []

    class Hear(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            pieces.append(data)

    async def listen() -> None:
        await asyncio.get_running_loop().create_server(Hear, "n1", 9092)

    async def say() -> None:
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, "n1", 9092)
        for number in range(50):
            transport.write(b"%02d" % number)
            transport.write(b" of fifty")
            await asyncio.sleep(0.1)

    async def story() -> None:
        await n1.spawn(listen())
        await n2.spawn(say())

    world.run(story())
    whole = [b"%02d of fifty" % number for number in range(50)]
    assert b"".join(pieces) == b"".join(whole)
    assert (pieces == whole) is not choppy


def test_some_connections_are_choppy_and_some_are_not() -> None:
    with World(3) as world:
        n1, n2 = two(world)
        seen: dict[int, bool] = {}
        world.network.tap = lambda pipe, _: seen.update({pipe.number // 2: pipe.is_choppy})

        async def story() -> None:
            await n1.spawn(serve())
            for _ in range(40):
                await n2.spawn(ask("n1"))

        world.run(story())
        assert 3 < sum(seen.values()) < 25
