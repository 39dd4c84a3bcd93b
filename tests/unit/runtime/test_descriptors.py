"""Descriptors: how they are divided, and what happens when there are none (SEC-L5)."""

# mypy: disable-error-code="misc"

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strandline.ports import is_out_of_handles
from strandline.runtime import files
from strandline.runtime.descriptors import divide
from strandline.runtime.disk import FileDisk
from strandline.runtime.loop import run


@pytest.mark.parametrize("limit", [64, 256, 1024, 4096, 20_000, 65_536, 1 << 20])
@pytest.mark.parametrize("max_connections", [1, 100, 10_000, 2**31 - 1])
def test_no_more_is_given_out_than_there_is(limit: int, max_connections: int) -> None:
    files_, connections, reserve = divide(limit, max_connections)
    assert files_ + connections + reserve == limit
    assert files_ >= min(8192, (limit - reserve) // 2)
    assert connections >= min(max_connections, limit // 3)
    assert reserve >= limit // 4 or reserve == 256


def test_connections_get_what_they_may_be_where_there_is_enough() -> None:
    assert divide(20_000, 10_000) == (9_744, 10_000, 256)
    assert divide(1024, 10_000) == (384, 384, 256)
    assert divide(65_536, 10_000) == (32_640, 32_640, 256)


@pytest.fixture
def none_left() -> Iterator[list[int]]:
    """A limit just above what is open, and how many more may be."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    yield taken
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for fd in taken:
        os.close(fd)


def take_all(taken: list[int]) -> None:
    """As connections would that nobody counted."""
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))


def test_a_file_can_be_opened_when_no_handle_is_left(tmp_path: Path, none_left: list[int]) -> None:
    disk = FileDisk(max_open_files=100)
    kept = [disk.open(f"{tmp_path}/{number}", create=True) for number in range(40)]
    take_all(none_left)
    with pytest.raises(OSError, match="Too many open files"):
        os.open(os.devnull, os.O_RDONLY)
    for number in range(100):
        file = disk.open(f"{tmp_path}/new-{number}", create=True)
        file.append(b"x")
        disk.write_file(f"{tmp_path}/checkpoint", b"%d" % number)
    disk.rename(f"{tmp_path}/new-0", f"{tmp_path}/renamed")
    assert len(disk.listdir(str(tmp_path))) == 141
    for file in kept:
        file.append(b"still the same file")
    resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
    disk.close()


def test_work_beside_the_loop_writes_checkpoints_from_the_reserve(tmp_path: Path, none_left: list[int]) -> None:
    async def story() -> None:
        disk = FileDisk(max_open_files=100)
        await asyncio.gather(*(disk.offload(lambda: None, "") for _ in range(20)))
        take_all(none_left)
        names = [f"{tmp_path}/{number}" for number in range(50)]
        await asyncio.gather(*(disk.offload(lambda name=name: disk.write_file(name, b"x"), name) for name in names))
        while none_left:
            os.close(none_left.pop())
        await disk.offload(lambda: None, "")
        assert len(disk._table._reserve) == files.RESERVE, "filled again once there are some"
        disk.close()

    run(story())


def test_work_that_waits_for_a_handle_holds_nobody_up(
    tmp_path: Path, none_left: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop opens, closes and gives back handles meanwhile, and that is what the work waits for."""
    waits, may_go_on = threading.Event(), threading.Event()

    def pause(_: float) -> None:
        waits.set()
        assert may_go_on.wait(60)

    monkeypatch.setattr("strandline.runtime.files.time.sleep", pause)

    async def story() -> None:
        disk = FileDisk(max_open_files=100)
        table = disk._table
        kept = disk.open(f"{tmp_path}/kept", create=True)
        (tmp_path / "tree").mkdir()
        inside = disk.open(f"{tmp_path}/tree/inside", create=True)
        await disk.offload(lambda: None, "")  # its thread is there
        take_all(none_left)
        while table._reserve:
            none_left.append(table._reserve.pop())
        works: dict[str, Callable[[], None]] = {
            "open": lambda: disk.open(f"{tmp_path}/new", create=True).append(b"x"),
            "write": lambda: disk.write_file(f"{tmp_path}/checkpoint", b"x"),
            "rename": lambda: disk.rename(f"{tmp_path}/tree", f"{tmp_path}/moved"),
            "remove": lambda: disk.remove_tree(f"{tmp_path}/moved"),
        }
        for name, work in works.items():
            waits.clear()
            may_go_on.clear()
            running = asyncio.ensure_future(disk.offload(work, ""))
            await asyncio.get_running_loop().run_in_executor(waiter, waits.wait, 60)
            try:
                assert table._lock.acquire(blocking=False), f"{name} waits with the lock"
                table._lock.release()
                given = [none_left.pop() for _ in range(8)]
                for fd in given:
                    os.close(fd)
            finally:
                may_go_on.set()
            await running
            with contextlib.suppress(OSError):
                while True:
                    none_left.append(os.open(os.devnull, os.O_RDONLY))
            while table._reserve:
                none_left.append(table._reserve.pop())
        kept.append(b"still the same file")
        inside.append(b"its name is gone")
        assert disk.read_file(f"{tmp_path}/kept") == b"still the same file"
        disk.close()

    with ThreadPoolExecutor(1) as waiter:
        waiter.submit(lambda: None).result()
        run(story())


def test_work_that_opened_its_share_does_not_wait_in_vain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.runtime.files.time.sleep", lambda _: pytest.fail("it waits"))
    disk = FileDisk(max_open_files=4)

    def work() -> None:
        for number in range(6):
            disk.open(f"{tmp_path}/{number}", create=True)

    with ThreadPoolExecutor(1) as worker, pytest.raises(OSError, match="Too many open files"):
        worker.submit(work).result()
    assert len(disk._table._reserve) == files.RESERVE
    assert disk._table.open_handles == 5
    disk.close()


def test_other_errors_are_raised_at_once(tmp_path: Path) -> None:
    disk = FileDisk(max_open_files=4)
    tries = []

    def fail() -> None:
        tries.append(1)
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        disk._table.with_handles(fail)
    assert len(tries) == 1
    disk.close()


def test_when_no_room_can_be_made_it_is_told(tmp_path: Path) -> None:
    disk = FileDisk(max_open_files=4)

    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with pytest.raises(OSError) as raised:
        disk._table.with_handles(fail)
    assert is_out_of_handles(raised.value)
    disk.close()
