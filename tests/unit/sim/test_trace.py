"""All that happens is in the hash, with its time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from strandline.sim.disk import SimDisk
from strandline.sim.faults import Fault
from strandline.sim.world import World

from .talk import ask, serve

Entry = tuple[bytes, float, int, bytes]


def trace(do: Callable[[World], object]) -> tuple[list[Entry], str]:
    """What is recorded when something is done at the second second, and the hash."""
    entries: list[Entry] = []
    with World(1) as world:
        disk = world.node("n1").disk
        disk.mkdir("/data/empty")
        disk.open("/data/a", create=True).append(b"abc")
        disk.sync_dir("/data")
        disk.sync_dir("/")

        async def story() -> None:
            await asyncio.sleep(2)
            world.loop.trace.watch = lambda *entry: entries.append(entry)
            do(world)
            await asyncio.sleep(1)

        world.run(story())
        return entries, world.trace_hash


NOTHING = trace(lambda world: None)[1]


def disk_of(world: World) -> SimDisk:
    return world.node("n1").disk


def sync(world: World) -> None:
    asyncio.get_running_loop().create_task(disk_of(world).open("/data/a").sync())


def fail_to_sync(world: World) -> None:
    disk_of(world).faults.set("/data", Fault.SYNC_ERROR)
    with pytest.raises(OSError):
        disk_of(world).open("/data/a").sync_blocking()


@pytest.mark.parametrize(
    ("kind", "data", "do"),
    [
        (b"crea", b"/data/b", lambda world: disk_of(world).open("/data/b", create=True)),
        (b"writ", b"def", lambda world: disk_of(world).open("/data/a").append(b"def")),
        (b"trun", b"2", lambda world: disk_of(world).open("/data/a").truncate(2)),
        (b"sync", b"3", sync),
        (b"sync", b"3", lambda world: disk_of(world).open("/data/a").sync_blocking()),
        (b"nsyn", b"3", fail_to_sync),
        (b"move", b"/data/a /data/b", lambda world: disk_of(world).rename("/data/a", "/data/b")),
        (b"rmov", b"/data/a", lambda world: disk_of(world).remove("/data/a")),
        (b"rmtr", b"/data", lambda world: disk_of(world).remove_tree("/data")),
        (b"mkdr", b"/data/b", lambda world: disk_of(world).mkdir("/data/b")),
        (b"file", b"/data/b\0whole", lambda world: disk_of(world).write_file("/data/b", b"whole")),
        (b"sdir", b"/data", lambda world: disk_of(world).sync_dir("/data")),
        (b"crea", b"/lock", lambda world: disk_of(world).lock("/lock")),
        (b"flip", b"/data/a\0001 7", lambda world: disk_of(world).flip_bit("/data/a", 1, 7)),
        (b"powr", b"", lambda world: world.node("n1").power_loss()),
        (b"kept", b"/data/a", lambda world: world.node("n1").power_loss()),
        (b"gone", b"", lambda world: disk_of(world).replace_with_new()),
        (b"jump", b"", lambda world: world.node("n1").clock.jump(1000)),
        (b"drif", b"", lambda world: world.node("n1").clock.set_drift(0.001)),
        (b"time", b"", lambda world: asyncio.get_running_loop().call_later(0.5, int)),
        (b"turn", b"1", lambda world: asyncio.get_running_loop().call_later(0.5, int)),
    ],
)
def test_what_is_done_is_recorded_with_its_time(kind: bytes, data: bytes, do: Callable[[World], object]) -> None:
    entries, hash = trace(do)
    found = [entry for entry in entries if entry[0] == kind and data in entry[3]]
    assert found, entries
    assert all(2.0 <= entry[1] <= 3.0 for entry in found)
    assert hash != NOTHING
    assert trace(do) == (entries, hash)


def test_every_byte_that_is_delivered_is_recorded() -> None:
    with World(2) as world:
        delivered: dict[int, bytes] = {}
        ends: list[bytes] = []

        def watch(kind: bytes, now: float, who: int, data: bytes) -> None:
            assert now == world.now
            if kind == b"recv":
                delivered[who] = delivered.get(who, b"") + data
            elif kind in (b"FIN", b"RST", b"conn", b"refu"):
                ends.append(kind)

        async def story() -> None:
            world.loop.trace.watch = watch
            with pytest.raises(ConnectionRefusedError):
                await ask("n1")
            await world.node("n1").spawn(serve())
            for _ in range(20):
                await world.node("n2").spawn(ask("n1", b"question" * 1000))
            await asyncio.sleep(1)

        world.node("n1")
        world.run(story())
        assert delivered == dict.fromkeys(range(40), b"question" * 1000)
        assert ends.count(b"refu") == 1
        assert ends.count(b"conn") == 20
        assert ends.count(b"FIN") == 40


def test_one_byte_another_time_or_another_place_is_another_hash() -> None:
    def append(data: bytes, path: str = "/data/a", after_s: float = 0.0) -> str:
        def do(world: World) -> None:
            disk_of(world).open("/data/b", create=True)
            file = disk_of(world).open(path)
            asyncio.get_running_loop().call_later(after_s, file.append, data)

        return trace(do)[1]

    hashes = {append(b"x"), append(b"y"), append(b"x", "/data/b"), append(b"x", after_s=1e-6)}
    assert len(hashes) == 4
    assert append(b"x") in hashes
