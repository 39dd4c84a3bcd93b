"""One end of a connection: whose memory is whose, and when bytes leave."""

from __future__ import annotations

import asyncio

import pytest

from strandline.sim.transport import poison
from strandline.sim.world import World

from .talk import serve, two


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


def test_only_what_held_bytes_is_poisoned_and_all_of_that(world: World) -> None:
    n1, _ = two(world)
    size = 1 << 16

    class Reader(asyncio.BufferedProtocol):
        """It reads to the rest of its buffer until a message of 3,000 bytes is whole, then starts again at the front."""

        buffer = bytearray(b"?" * size)
        end = 0

        def get_buffer(self, sizehint: int) -> memoryview:
            return memoryview(self.buffer)[self.end :]

        def buffer_updated(self, nbytes: int) -> None:
            self.end += nbytes
            assert self.buffer[: self.end] == b"m" * self.end
            assert not set(self.buffer[self.end :]) - set(b"\xdb?"), "nothing of an earlier message is left"
            if self.end >= 3000:
                self.end = 0

    async def listen() -> None:
        await asyncio.get_running_loop().create_server(Reader, "n1", 9092)

    async def story() -> None:
        await n1.spawn(listen())
        _, writer = await asyncio.open_connection("n1", 9092)
        for _ in range(20):
            for _ in range(3):
                writer.write(b"m" * 1000)
                await asyncio.sleep(0.1)

    world.network.choppy_probability = 0.0
    world.run(story())
    assert Reader.buffer.endswith(b"?" * (size // 2)), "memory nobody used costs nothing"


def test_bytes_leave_at_the_end_of_the_turn_they_were_written_in(world: World) -> None:
    n1, n2 = two(world)
    world.network.hold_probability = 0.0
    left: list[bytes] = []

    async def client() -> None:
        _, writer = await asyncio.open_connection("n1", 9092)
        writer.write(b"one ")
        assert left == []
        writer.write(b"two")
        await asyncio.sleep(0)
        assert left == [b"one two"]

    async def story() -> None:
        await n1.spawn(serve())
        world.network.choppy_probability = 0.0
        world.network.tap = lambda _, data: left.append(data)
        await n2.spawn(client())

    world.run(story())


def test_a_process_that_kills_itself_sends_nothing_of_its_last_turn(world: World) -> None:
    n1, n2 = two(world)
    left: list[bytes] = []

    async def client() -> None:
        _, writer = await asyncio.open_connection("n1", 9092)
        writer.write(b"last words")
        n2.kill()

    async def story() -> None:
        await n1.spawn(serve())
        world.network.tap = lambda _, data: left.append(data)
        n2.spawn(client())
        await asyncio.sleep(5)

    world.run(story())
    assert left == []
