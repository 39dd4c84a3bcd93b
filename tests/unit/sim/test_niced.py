"""Work in a process of its own, in the simulator: what ends it, what does not, and what is left of it."""

from __future__ import annotations

import asyncio
import math

import pytest

from strandline.ports import Disk, Pace, WorkLost
from strandline.sim.world import World

ALL = b"0123456789"


def write(disk: Disk, pace: Pace, path: str) -> int:
    file = disk.open(path, create=True)
    for at in range(len(ALL)):
        file.append(ALL[at : at + 1])
        pace(1)
    file.sync_blocking()
    disk.sync_dir("/")
    return file.size


def begin(world: World) -> asyncio.Task[int]:
    """Work of ten seconds, half of which is done."""
    node = world.node("n1")
    return node.spawn(node.disk.offload_niced(write, "/a", 1.0))


def test_a_kill_ends_it_in_the_middle_and_what_it_wrote_is_there(world: World) -> None:
    node = world.node("n1")

    async def story() -> None:
        begin(world)
        await asyncio.sleep(4.5)
        node.kill()
        await asyncio.sleep(60)
        assert node.disk.read_file("/a") == ALL[:5]

    world.run(story())


def test_a_power_loss_tears_it(world: World) -> None:
    node = world.node("n1")

    async def story() -> None:
        begin(world)
        await asyncio.sleep(4.5)
        node.power_loss()
        await asyncio.sleep(60)
        left = node.disk.peek("/a")
        assert left is None or len(left) <= 5

    world.run(story())


def test_what_it_synced_survives_a_power_loss(world: World) -> None:
    node = world.node("n1")

    async def story() -> None:
        assert await begin(world) == len(ALL)
        node.power_loss()
        assert node.disk.peek("/a") == ALL

    world.run(story())


def test_a_paused_parent_does_not_stop_it(world: World) -> None:
    node = world.node("n1")

    async def story() -> None:
        work = begin(world)
        await asyncio.sleep(1)
        node.pause()
        await asyncio.sleep(60)
        assert node.disk.peek("/a") == ALL
        assert not work.done()
        node.resume()
        assert await work == len(ALL)

    world.run(story())


def test_a_process_that_is_lost_is_an_error(world: World) -> None:
    node = world.node("n1")

    async def story() -> None:
        node.disk.niced_lost_probability = 1.0
        with pytest.raises(WorkLost):
            await node.spawn(node.disk.offload_niced(write, "/a", math.inf))

    world.run(story())


def test_the_seed_decides_where_a_kill_finds_it() -> None:
    def left(seed: int) -> bytes | None:
        with World(seed) as world:
            node = world.node("n1")

            async def story() -> None:
                node.spawn(node.disk.offload_niced(write, "/a", math.inf))
                await asyncio.sleep(0.005)
                node.kill()

            world.run(story())
            return node.disk.peek("/a")

    assert [left(seed) for seed in range(20)] == [left(seed) for seed in range(20)]
    assert len({left(seed) for seed in range(20)}) > 3
