"""The simulated disk's faults, its virtual time, and what a node finds after a kill or a power loss."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="func-returns-value"

from __future__ import annotations

import asyncio
import errno
import threading

import pytest

from strandline.ports import COMPUTING_MAX, WORKERS_MAX
from strandline.sim.faults import Fault
from strandline.sim.world import World


@pytest.fixture
def world():
    with World(5) as world:
        world.node("n1").disk.mkdir("/data")
        world.node("n1").disk.sync_dir("/")
        yield world


def test_sync_takes_time_and_covers_what_came_before(world: World) -> None:
    disk = world.node("n1").disk

    async def story() -> None:
        file = disk.open("/data/a", create=True)
        file.append(b"before")
        began = world.now
        syncing = asyncio.create_task(file.sync())
        await asyncio.sleep(0)
        file.append(b"after")
        await syncing
        assert world.now > began
        assert file.inode.durable == b"before"

    world.run(story())


def test_a_sync_in_offloaded_work_covers_what_came_before_the_call(world: World) -> None:
    disk = world.node("n1").disk

    async def story() -> None:
        file = disk.open("/data/a", create=True)
        clean = disk.open("/data/b", create=True)
        file.append(b"before")
        working = asyncio.create_task(disk.offload(lambda: (file.sync_blocking(), clean.sync_blocking()), ""))
        await asyncio.sleep(0)
        file.append(b"after")
        clean.append(b"after")
        await working
        assert file.inode.durable == b"before"
        assert clean.inode.durable == b""

        def rewrite() -> None:
            other = disk.open("/data/c", create=True)
            other.append(b"own")
            other.sync_blocking()
            assert other.inode.durable == b"own"

        await disk.offload(rewrite, "")

    world.run(story())


def test_a_kill_keeps_what_was_written(world: World) -> None:
    node = world.node("n1")
    node.disk.open("/data/a", create=True).append(b"never synced")
    node.kill()
    node.restart()
    assert node.disk.read_file("/data/a") == b"never synced"


def test_a_power_loss_keeps_what_was_synced(world: World) -> None:
    node = world.node("n1")

    async def story() -> None:
        file = node.disk.open("/data/a", create=True)
        node.disk.sync_dir("/data")
        file.append(b"synced")
        await file.sync()
        file.append(b"x" * 10_000)
        node.disk.write_file("/data/meta", b"whole")

    world.run(story())
    node.power_loss()
    node.restart()
    assert node.disk.read_file("/data/a").startswith(b"synced")
    assert node.disk.read_file("/data/meta") == b"whole"
    again = node.disk.open("/data/a")
    assert again.read(0, 6) is None, "nothing is in memory after a power loss"
    assert again.read_blocking(0, 6) == b"synced"
    node.disk.cold_probability = 0
    assert again.read(0, 6) == b"synced"


def test_a_lock_goes_with_its_process(world: World) -> None:
    node = world.node("n1")

    async def lock() -> None:
        node.disk.lock("/data/.lock")

    async def story() -> None:
        await node.spawn(lock())
        with pytest.raises(BlockingIOError):
            await node.spawn(lock())
        node.kill()
        node.restart()
        await node.spawn(lock())

    world.run(story())


def test_faults_are_the_systems_errors(world: World) -> None:
    disk = world.node("n1").disk
    disk.cold_probability = 0

    async def story() -> None:
        file = disk.open("/data/a", create=True)
        file.append(b"abc")
        disk.faults.set("/data/a", Fault.FULL)
        with pytest.raises(OSError) as full:
            file.append(b"def")
        assert full.value.errno == errno.ENOSPC
        assert file.read(0, 9) == b"abc"
        disk.write_file("/data/b", b"elsewhere there is room")
        disk.faults.clear()
        disk.faults.set("/data", Fault.READ_ONLY)
        for change in (lambda: disk.mkdir("/data/x"), lambda: disk.remove("/data/a"), lambda: file.truncate(0)):
            with pytest.raises(OSError) as read_only:
                change()
            assert read_only.value.errno == errno.EROFS
        disk.faults.clear()
        disk.faults.set("/data", Fault.READ_ERROR, times=1)
        with pytest.raises(OSError):
            file.read(0, 1)
        assert file.read(0, 1) == b"a"
        disk.faults.set("/data", Fault.SYNC_ERROR, times=1)
        with pytest.raises(OSError):
            await file.sync()
        await file.sync()
        assert file.inode.durable == b"\0\0\0", "what a failed sync dropped is gone for good"

    world.run(story())


def test_a_disk_fills_up(world: World) -> None:
    disk = world.node("n1").disk
    disk.capacity_bytes = 100
    file = disk.open("/data/a", create=True)
    file.append(b"x" * 80)
    with pytest.raises(OSError):
        file.append(b"x" * 21)
    assert file.size == 80
    assert disk.usage("/data") == (100, 20)
    file.truncate(0)
    file.append(b"x" * 100)
    disk.remove("/data/a")
    disk.open("/data/b", create=True).append(b"x" * 100)


def test_a_slow_disk(world: World) -> None:
    disk = world.node("n1").disk

    async def duration() -> float:
        file = disk.open("/data/a", create=True)
        began = world.now
        await file.sync()
        return world.now - began

    assert world.run(duration()) < 0.1
    disk.faults.slow("/data", 1000)
    assert world.run(duration()) > 0.1


def test_a_bit_rots_in_memory_and_on_the_device(world: World) -> None:
    disk = world.node("n1").disk
    disk.write_file("/data/a", bytes(100))
    position = disk.flip_bit("/data/a")
    damaged = disk.read_file("/data/a")
    assert damaged[position] in {1 << bit for bit in range(8)}
    assert sum(damaged) == damaged[position]
    world.node("n1").power_loss()
    assert disk.read_file("/data/a") == damaged


def test_a_lock_taken_in_offloaded_work_ends_with_the_process_that_asked_for_it() -> None:
    with World(7) as world:
        node = world.node("a")

        async def take() -> None:
            await node.disk.offload(lambda: node.disk.lock("/lock"), "")

        async def story() -> None:
            await node.spawn(take())
            node.kill()
            node.restart()
            await node.spawn(take())

        world.run(story())


def test_two_offloaded_works_overtake_each_other(world: World) -> None:
    disk = world.node("n1").disk
    disk.thread_probability = disk.overtake_probability = 1.0
    order: list[str] = []

    def write(name: str) -> None:
        file = disk.open(f"/data/{name}", create=True)
        for _ in range(5):
            file.append(b"x")
            order.append(name)
        file.sync_blocking()

    async def story() -> None:
        await asyncio.gather(disk.offload(lambda: write("a"), ""), disk.offload(lambda: write("b"), ""))
        order.append("both done")

    world.run(story())
    assert order != sorted(order)
    assert order != ["b"] * 5 + ["a"] * 5 + ["both done"]
    assert disk.read_file("/data/a") == disk.read_file("/data/b") == b"xxxxx"


def test_a_power_loss_cuts_offloaded_work_short(world: World) -> None:
    node = world.node("n1")
    node.disk.thread_probability = node.disk.overtake_probability = 1.0
    unwound: list[str] = []

    def work() -> None:
        try:
            for number in range(1000):
                node.disk.write_file(f"/data/{number}", b"whole")
        finally:
            unwound.append("after its death")

    async def story() -> None:
        node.spawn(node.disk.offload(work, ""))
        await asyncio.sleep(0.05)
        node.power_loss()
        await asyncio.sleep(5.0)

    world.run(story())
    names = node.disk.listdir("/data")
    assert 0 < len(names) < 1000
    assert {node.disk.read_file(f"/data/{name}") for name in names} == {b"whole"}
    assert unwound == []
    world.close()
    assert unwound == ["after its death"]


def test_an_error_in_offloaded_work_reaches_whoever_waits(world: World) -> None:
    disk = world.node("n1").disk

    async def story() -> None:
        with pytest.raises(FileNotFoundError):
            await disk.offload(lambda: disk.read_file("/data/none"), "")

    world.run(story())


def test_a_new_disk_is_empty(world: World) -> None:
    node = world.node("n1")
    node.disk.write_file("/data/a", b"old")
    changes = node.disk.changes
    node.kill()
    node.disk.replace_with_new()
    assert node.disk.peek_names("/") == []
    assert node.disk.peek("/data/a") is None
    assert node.disk.changes > changes


def test_peeking_meets_no_fault(world: World) -> None:
    disk = world.node("n1").disk
    disk.write_file("/data/a", b"there")
    disk.faults.set("/data", Fault.READ_ERROR)
    assert disk.peek("/data/a") == b"there"
    assert disk.peek_names("/data") == ["a"]


def test_what_is_sure_to_survive_is_known(world: World) -> None:
    disk = world.node("n1").disk

    async def story() -> None:
        file = disk.open("/data/a", create=True)
        file.append(b"12345")
        await file.sync()
        assert disk.durable_size("/data/a") == -1
        disk.sync_dir("/data")
        assert disk.durable_size("/data/a") == 5
        file.append(b"678")
        assert disk.durable_size("/data/a") == 5
        file.truncate(3)
        assert disk.durable_size("/data/a") == 3

    world.run(story())


def test_a_disk_is_full_after_so_many_more_bytes(world: World) -> None:
    disk = world.node("n1").disk
    file = disk.open("/data/a", create=True)
    disk.faults.set("/data", Fault.FULL, after_bytes=100)
    assert disk.usage("/data")[1] == 100
    file.append(b"x" * 60)
    with pytest.raises(OSError) as full:
        file.append(b"x" * 41)
    assert full.value.errno == errno.ENOSPC
    assert file.size == 60, "a write is taken as a whole or not at all"
    disk.write_file("/data/b", b"x" * 40)
    for change in (lambda: file.append(b"x"), lambda: disk.mkdir("/data/c"), lambda: disk.write_file("/data/b", b"")):
        with pytest.raises(OSError) as full:
            change()
        assert full.value.errno == errno.ENOSPC
    assert disk.usage("/data")[1] == 0
    disk.write_file("/elsewhere", b"x" * 1000)
    disk.faults.clear()
    file.append(b"x" * 1000)
    assert disk.usage("/data")[1] > 1000


def test_a_bit_rots_where_it_is_told_to(world: World) -> None:
    disk = world.node("n1").disk
    file = disk.open("/data/a", create=True)
    file.append(bytes(100))
    file.sync_blocking()
    file.append(bytes(1000))
    assert {disk.flip_bit("/data/a") < 100 for _ in range(50)} == {True}, "at rest"
    assert {disk.flip_bit("/data/a", range(200, 204)) for _ in range(50)} == {200, 201, 202, 203}
    disk.write_file("/data/b", bytes(3))
    assert disk.flip_bit("/data/b", 2, 7) == 2
    assert disk.read_file("/data/b") == b"\0\0\x80"
    disk.flip_bit("/data/b", 2, 7)
    assert disk.read_file("/data/b") == bytes(3)


def test_most_offloaded_work_runs_at_one_moment_without_a_thread(world: World) -> None:
    disk = world.node("n1").disk
    disk.overtake_probability = 1.0
    times: list[set[float]] = []
    threads: set[int] = set()

    def write() -> None:
        file = disk.open("/data/a", create=True)
        moments = set()
        for _ in range(5):
            file.append(b"x")
            moments.add(world.now)
        threads.add(threading.get_ident())
        times.append(moments)

    async def story() -> None:
        for _ in range(200):
            await disk.offload(write, "")

    world.run(story())
    in_threads = sum(len(moments) > 1 for moments in times)
    assert 10 < in_threads < 50
    assert threading.get_ident() in threads
    assert disk.size("/data/a") == 1000


@pytest.mark.parametrize("thread_probability", [0.0, 1.0])
def test_offloaded_work_of_a_paused_process_waits(world: World, thread_probability: float) -> None:
    node = world.node("n1")
    node.disk.thread_probability = thread_probability
    node.disk.offload_s = (0.5, 0.5)
    done: list[float] = []

    async def story() -> None:
        node.spawn(node.disk.offload(lambda: done.append(world.now), ""))
        await asyncio.sleep(0.25)
        node.pause()
        await asyncio.sleep(10)
        assert done == []
        events = next(world.loop.sequence)
        await asyncio.sleep(10)
        assert next(world.loop.sequence) - events < 10, "it waits without asking"
        node.resume()
        await asyncio.sleep(0.1)
        assert done == [pytest.approx(20.25)]
        node.spawn(node.disk.offload(lambda: done.append(world.now), ""))
        await asyncio.sleep(0.25)
        node.kill()
        await asyncio.sleep(1)
        assert len(done) == 1

    world.run(story())


# Workers


def test_a_slow_log_dir_holds_up_neither_another_nor_the_metadata_log(world: World) -> None:
    node = world.node("n1")
    disk = node.disk
    disk.sync_s = disk.offload_s = (0.001, 0.001)
    disk.thread_probability = 0.0
    slow, other, metadata = "/slow", "/slow2", "/slow/__cluster_metadata-0"
    for path in (slow, other, metadata):
        disk.mkdir(path)
        disk.dedicate_workers(path)
    disk.faults.slow("/slow/t-", 1000.0)
    done: list[tuple[str, float]] = []

    async def sync(path: str) -> None:
        file = disk.open(f"{path}/file", create=True)
        file.append(b"x")
        await file.sync()
        await disk.offload(lambda: None, path)
        done.append((path, world.now))

    async def story() -> None:
        disk.mkdir(f"{slow}/t-0")
        for _ in range(WORKERS_MAX + 1):
            node.spawn(disk.offload(lambda: done.append((slow, world.now)), f"{slow}/t-0"))
        for path in (other, metadata, f"{slow}/u-0"):
            disk.mkdir(path)
            node.spawn(sync(path))
        await asyncio.sleep(0.5)
        assert [path for path, _ in done] == [other, metadata]
        await asyncio.sleep(10)
        by_path: dict[str, float] = dict(done)
        assert by_path[f"{slow}/u-0"] == pytest.approx(1.0, abs=0.2), "one of the same log dir waits for a worker"
        assert by_path[slow] == pytest.approx(2.0, abs=0.2), "and so does the ninth of them"

    world.run(story())


def test_a_restarted_process_has_workers_of_its_own(world: World) -> None:
    node = world.node("n1")
    disk = node.disk
    disk.offload_s = disk.sync_s = (100.0, 100.0)
    done: list[float] = []

    async def sync() -> None:
        file = disk.open("/file", create=True)
        file.append(b"x")
        await file.sync()
        done.append(world.now)

    async def story() -> None:
        for _ in range(2 * WORKERS_MAX):
            node.spawn(sync())
        await asyncio.sleep(1)
        node.kill()
        node.restart()
        disk.offload_s = disk.sync_s = (1.0, 1.0)
        node.spawn(sync())
        await asyncio.sleep(2)
        assert len(done) == 1
        await asyncio.sleep(500)
        assert len(done) == 1, "what a dead process had waiting is never begun"

    world.run(story())


def test_what_is_computed_waits_for_its_like_and_for_no_device(world: World) -> None:
    node = world.node("n1")
    disk = node.disk
    disk.offload_s = (1.0, 1.0)
    done: list[tuple[str, float]] = []

    async def compute() -> None:
        await disk.offload_compute(lambda: done.append(("computed", world.now)))

    async def story() -> None:
        for _ in range(2 * WORKERS_MAX):
            node.spawn(disk.offload(lambda: done.append(("read", world.now)), ""))
        for _ in range(COMPUTING_MAX + 1):
            node.spawn(compute())
        await asyncio.sleep(10)
        times = [at for what, at in done if what == "computed"]
        assert times == pytest.approx([1.0, 1.0, 2.0], abs=0.2)

    world.run(story())
