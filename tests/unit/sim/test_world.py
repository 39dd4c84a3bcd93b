"""Nodes that are paused, slowed, killed, without power and restarted."""

from __future__ import annotations

import asyncio

import pytest

from strandline.sim.world import SimNode, World

from .talk import ask, serve, two


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
