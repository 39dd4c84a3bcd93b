"""Handles beneath open Files: eviction, work in other threads, and writes that fail half way."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.runtime.disk import FileDisk, raise_open_files_limit
from strandline.runtime.loop import run


@pytest.fixture
def disk() -> Iterator[FileDisk]:
    disk = FileDisk(max_open_files=4)
    yield disk
    disk.close()


def test_no_more_handles_than_allowed(disk: FileDisk, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    files = [disk.open(f"{tmp_path}/{number}", create=True) for number in range(50)]
    for file in files * 2:
        file.append(b"x")
        assert len(os.listdir("/proc/self/fd")) - before <= 4
    assert disk._table.open_handles == 4
    for file in files:
        file.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_in_use_keeps_its_handle(disk: FileDisk, tmp_path: Path) -> None:
    busy = disk.open(f"{tmp_path}/busy", create=True)
    handle = busy._fd
    for number in range(50):
        busy.append(b"x")
        disk.open(f"{tmp_path}/{number}", create=True)
    assert busy._fd == handle


class Stopped:
    """A system call in which a worker stands until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self._call = getattr(os, name)
        self._main = threading.get_ident()
        self.begun, self.go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(os, name, self)

    def __call__(self, *arguments: object) -> object:
        if threading.get_ident() != self._main:
            self.begun.set()
            assert self.go_on.wait(60)
        return self._call(*arguments)


def same_file(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("name", ["pread", "fdatasync"])
def test_a_handle_that_work_uses_stays_open_and_no_other(
    disk: FileDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_closed: bool
) -> None:
    """However long a device takes, what is evicted meanwhile is closed at once."""
    stopped = Stopped(monkeypatch, name)

    async def story() -> None:
        file = disk.open(f"{tmp_path}/a", create=True)
        file.append(b"abc")
        handle = file._fd
        await disk.offload(lambda: None, "")  # its thread is there
        before = len(os.listdir("/proc/self/fd"))
        working = asyncio.create_task(
            file.sync() if name == "fdatasync" else disk.offload(lambda: file.read_blocking(0, 3), "")
        )
        await asyncio.sleep(0)
        assert stopped.begun.wait(60)
        try:
            if is_closed:
                file.close()
            for number in range(20):
                disk.open(f"{tmp_path}/{number}", create=True).append(b"x")
                assert len(os.listdir("/proc/self/fd")) - before <= 5
                assert disk._table.open_handles <= 5
            assert same_file(handle, f"{tmp_path}/a")
        finally:
            stopped.go_on.set()
        assert await working in (None, b"abc")
        for number in range(20, 30):
            disk.open(f"{tmp_path}/{number}", create=True)
        assert len(os.listdir("/proc/self/fd")) - before <= 3, "the file's own handle was among those before"
        assert disk._table.open_handles == 4
        assert not same_file(handle, f"{tmp_path}/a")
        if not is_closed:
            assert file.read_blocking(0, 3) == b"abc"

    run(story())


def test_a_sync_that_waits_for_a_worker_keeps_its_handle(tmp_path: Path) -> None:
    """The file may be closed before its turn comes."""
    disk = FileDisk(max_open_files=4, workers_max=1)
    hung = threading.Event()

    async def story() -> None:
        file = disk.open(f"{tmp_path}/a", create=True)
        working = asyncio.create_task(disk.offload(lambda: hung.wait(60), ""))
        syncing = asyncio.create_task(file.sync())
        await asyncio.sleep(0)
        file.close()
        for number in range(20):
            disk.open(f"{tmp_path}/{number}", create=True)
        hung.set()
        await working
        await syncing
        assert disk._table.open_handles == 4

    run(story())
    disk.close()


def test_work_and_the_loop_share_files_while_handles_are_few(disk: FileDisk, tmp_path: Path) -> None:
    async def story() -> None:
        files = [disk.open(f"{tmp_path}/{number}", create=True) for number in range(12)]
        for number, file in enumerate(files):
            file.append(b"%02d" % number * 100)

        def read_all() -> None:
            for _ in range(20):
                for number, file in enumerate(files):
                    assert file.read_blocking(0, 200) == b"%02d" % number * 100

        working = [asyncio.create_task(disk.offload(read_all, "")) for _ in range(4)]
        while not all(one.done() for one in working):
            for number, file in enumerate(files):
                assert file.read(0, 200) in (b"%02d" % number * 100, None)
            await asyncio.sleep(0)
        await asyncio.gather(*working)
        disk.open(f"{tmp_path}/last", create=True)
        assert disk._table.open_handles == 4

    run(story())


def test_a_cancelled_sync_ends_on_its_own(disk: FileDisk, tmp_path: Path) -> None:
    async def story() -> None:
        file = disk.open(f"{tmp_path}/a", create=True)
        file.append(b"abc")
        syncing = asyncio.create_task(file.sync())
        await asyncio.sleep(0)
        syncing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await syncing
        await file.sync()
        file.close()

    run(story())


def test_a_write_that_fails_leaves_the_file_as_it_was(
    disk: FileDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"abc")
    system_write = os.write
    calls: list[int] = []

    def half(fd: int, data: bytes) -> int:
        calls.append(fd)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return system_write(fd, memoryview(data)[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError):
        file.append(b"defghi")
    monkeypatch.undo()
    assert file.size == 3
    file.append(b"!")
    assert disk.read_file(f"{tmp_path}/a") == b"abc!"


def test_a_short_write_is_carried_on(disk: FileDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    system_write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: system_write(fd, memoryview(data)[:2]))
    file.append(b"abcdefg")
    monkeypatch.undo()
    assert file.read_blocking(0, 99) == b"abcdefg"
    assert file.size == 7


def test_bytes_that_are_not_cached_are_left_to_a_worker(
    disk: FileDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"abcdef")
    system_read = os.preadv
    cached = 0

    def page_cache(fd: int, into: list[bytearray], position: int, flags: int) -> int:
        """Only the first `cached` bytes can be had without waiting."""
        if position >= cached:
            raise BlockingIOError
        return system_read(fd, [memoryview(into[0])[: cached - position]], position, flags)

    monkeypatch.setattr(os, "preadv", page_cache)
    assert file.read(0, 6) is None
    cached = 2
    assert file.read(0, 6) is None, "a part is cached"
    assert file.read(0, 2) == b"ab"

    def not_supported(*_: object) -> int:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "preadv", not_supported)
    assert file.read(0, 6) == b"abcdef"


def test_a_failed_write_file_leaves_the_old_one(
    disk: FileDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.write_file(f"{tmp_path}/a", b"old")

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError):
        disk.write_file(f"{tmp_path}/a", b"new")
    assert disk.listdir(str(tmp_path)) == ["a"]
    assert disk.read_file(f"{tmp_path}/a") == b"old"


def test_links_are_seen(disk: FileDisk, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert disk.is_link(f"{tmp_path}/link")


def test_the_limit_of_open_files_is_raised() -> None:
    assert raise_open_files_limit() >= 256


def test_a_rewrite_writes(disk: FileDisk, tmp_path: Path) -> None:
    """The bytes are the same wherever it is used; that they reach the file can be seen only of others."""
    file = disk.open(f"{tmp_path}/a", create=True)
    file.append(b"0123456789")
    file.rewrite(3, b"abc")
    file.append(b"!")
    assert (tmp_path / "a").read_bytes() == b"012abc6789!"
    assert file.read_blocking(0, 20) == b"012abc6789!"
