"""Nodes that are paused, slowed, killed, cut off and restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from strandline.sim.network import Link, poison
from strandline.sim.pipe import Pipe
from strandline.sim.world import SimNode, World


@pytest.fixture(params=range(5))
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with World(request.param) as world:
        world.network.default_link = Link(spike_probability=0)
        yield world


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1000):
            writer.write(data)
    except OSError:
        pass
    writer.close()


async def serve() -> None:
    await asyncio.start_server(echo, "0.0.0.0", 9092)


async def ask(host: str, question: bytes = b"hello", patience_s: float = 1.0) -> bytes:
    async with asyncio.timeout(patience_s):
        reader, writer = await asyncio.open_connection(host, 9092)
        try:
            writer.write(question)
            return await reader.readexactly(len(question))
        finally:
            writer.close()


def two(world: World) -> tuple[SimNode, SimNode]:
    return world.node("n1"), world.node("n2")


def test_a_paused_node_answers_once_it_is_resumed(world: World) -> None:
    n1, n2 = two(world)

    async def story() -> None:
        await n1.spawn(serve())
        assert await n2.spawn(ask("n1")) == b"hello"
        n1.pause()
        waiting = n2.spawn(ask("n1", patience_s=60))
        await asyncio.sleep(10)
        assert not waiting.done()
        n1.resume()
        assert await waiting == b"hello"

    world.run(story())


def test_timers_of_a_paused_node_wait(world: World) -> None:
    n1, _ = two(world)

    async def sleep() -> float:
        await asyncio.sleep(1)
        return world.now

    async def story() -> None:
        sleeping = n1.spawn(sleep())
        await asyncio.sleep(0.5)
        n1.pause()
        await asyncio.sleep(10)
        n1.resume()
        assert await sleeping == pytest.approx(10.5, abs=0.01)

    world.run(story())


def test_a_slow_node_takes_longer(world: World) -> None:
    n1, _ = two(world)

    async def work() -> float:
        began = world.now
        for _ in range(100):
            await asyncio.sleep(0)
        return world.now - began

    async def story() -> None:
        usual = await n1.spawn(work())
        n1.slow(100)
        assert await n1.spawn(work()) > 50 * usual

    world.run(story())


def test_a_killed_node_runs_no_finally(world: World) -> None:
    n1, n2 = two(world)
    ran: list[str] = []

    async def careful() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            ran.append("finally")

    async def story() -> None:
        await n1.spawn(serve())
        n1.spawn(careful())
        reader, writer = await asyncio.open_connection("n1", 9092)
        await asyncio.sleep(0.5)
        n1.kill()
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            pass
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await n2.spawn(ask("n1"))
        await asyncio.sleep(100)
        assert not ran
        n1.restart()
        await n1.spawn(serve())
        assert await n2.spawn(ask("n1")) == b"hello"
        assert not ran

    world.run(story())


def test_a_node_may_kill_itself(world: World) -> None:
    n1, _ = two(world)
    seen: list[str] = []

    async def suicide() -> None:
        asyncio.get_running_loop().call_soon(seen.append, "after")
        n1.kill()
        seen.append("last words")

    async def story() -> None:
        n1.spawn(suicide())
        await asyncio.sleep(1)

    world.run(story())
    assert seen == ["last words"]


def test_a_kill_lets_any_prefix_of_the_bytes_through() -> None:
    lengths = set()
    for seed in range(60):
        with World(seed) as world:
            n1, n2 = two(world)

            async def story(world: World = world, n1: SimNode = n1, n2: SimNode = n2) -> int:
                received = bytearray()

                async def receive(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
                    try:
                        while data := await reader.read(100):
                            received.extend(data)
                    except ConnectionResetError:
                        pass

                async def listen() -> None:
                    await asyncio.start_server(receive, "n2", 9092)

                async def send() -> None:
                    _, writer = await asyncio.open_connection("n2", 9092)
                    for _ in range(50):
                        writer.write(bytes(100))
                        await asyncio.sleep(0.0001)
                    await asyncio.Event().wait()

                await n2.spawn(listen())
                n1.spawn(send())
                await asyncio.sleep(0.005)
                n1.kill()
                await asyncio.sleep(1)
                return len(received)

            lengths.add(world.run(story()))
    assert len(lengths) > 20
    assert any(length % 100 for length in lengths), "also within a write"


def test_a_host_without_power_is_silent_until_it_is_back(world: World) -> None:
    n1, n2 = two(world)

    async def story() -> None:
        await n1.spawn(serve())
        reader, writer = await asyncio.open_connection("n1", 9092)
        n1.power_loss()
        with pytest.raises(TimeoutError):
            await n2.spawn(ask("n1", patience_s=5))
        writer.write(b"are you there?")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await reader.read(1)
        n1.restart()
        with pytest.raises(ConnectionResetError):
            async with asyncio.timeout(10):
                await reader.read(1)

    world.run(story())


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
                await n2.spawn(send(b"old ", 2))
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
    world.network.set_link("n2", "n1", Link(latency_s=0.1, jitter_s=0, bytes_per_s=1000))

    async def story() -> None:
        await n1.spawn(serve())
        began = world.now
        assert await n2.spawn(ask("n1", bytes(2000), patience_s=10)) == bytes(2000)
        assert 2.1 < world.now - began < 3

    world.run(story())


def test_a_written_buffer_belongs_to_the_transport_until_it_left(world: World) -> None:
    n1, _ = two(world)

    async def story() -> None:
        await n1.spawn(serve())
        reader, writer = await asyncio.open_connection("n1", 9092)
        buffer = bytearray(b"good")
        writer.transport.write(memoryview(buffer))
        buffer[:] = b"evil"
        with pytest.raises(BufferError):
            buffer.clear()
        assert await reader.readexactly(4) == b"evil"

    world.run(story())


def test_a_view_that_is_kept_turns_to_garbage(world: World) -> None:
    n1, _ = two(world)
    kept: list[memoryview] = []

    class Careless(asyncio.BufferedProtocol):
        buffer = bytearray(16)

        def get_buffer(self, sizehint: int) -> bytearray:
            return self.buffer

        def buffer_updated(self, nbytes: int) -> None:
            kept.append(memoryview(self.buffer)[:nbytes])

    async def listen() -> None:
        await asyncio.get_running_loop().create_server(Careless, "n1", 9092)

    async def story() -> None:
        await n1.spawn(listen())
        _, writer = await asyncio.open_connection("n1", 9092)
        writer.write(b"frame 1!")
        await asyncio.sleep(1)
        writer.write(b"x")
        await asyncio.sleep(1)

    world.run(story())
    assert bytes(kept[0])[1:] == b"\xdb" * (len(kept[0]) - 1)
    poison(kept[0])
    assert bytes(kept[0]) == b"\xdb" * len(kept[0])


def test_clocks_drift_and_jump_but_monotonic_never_moves_back(world: World) -> None:
    n1, n2 = two(world)

    async def story() -> None:
        first, wall_ms = n1.clock.monotonic(), n1.clock.wall_ms()
        n1.clock.jump(-3_600_000)
        assert n1.clock.monotonic() == first
        assert n1.clock.wall_ms() == pytest.approx(wall_ms - 3_600_000, abs=1)
        await asyncio.sleep(10)
        n1.clock.set_drift(0.5)
        before = n1.clock.monotonic()
        assert before == pytest.approx(first + 10, rel=1e-3)
        await asyncio.sleep(10)
        assert n1.clock.monotonic() == pytest.approx(before + 15)
        assert n1.clock.monotonic() != n2.clock.monotonic()

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
