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


def test_work_under_way_keeps_the_handle_it_took(disk: FileDisk, tmp_path: Path) -> None:
    async def story() -> None:
        file = disk.open(f"{tmp_path}/a", create=True)
        file.append(b"abc")
        handle = file._fd
        started, go_on = threading.Event(), threading.Event()

        def work() -> bytes:
            started.set()
            assert go_on.wait(10)
            return os.pread(handle, 3, 0)

        working = asyncio.create_task(disk.offload(work, ""))
        await asyncio.sleep(0)
        assert started.wait(10)
        for number in range(20):
            disk.open(f"{tmp_path}/{number}", create=True)
        assert file._fd == -1, "evicted, for everybody else"
        go_on.set()
        assert await working == b"abc"
        assert disk._table.open_handles <= 4
        assert file.read_blocking(0, 3) == b"abc"

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
