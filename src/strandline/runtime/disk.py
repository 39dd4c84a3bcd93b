"""The real disk: files and directories of the operating system, behind the port.

Made and used by the thread that runs the event loop; work given to `offload` may use it from its own thread. Each log dir, and the
metadata log, has threads of its own: a device that does not answer delays only the work that waits for it.
A File that is open when its name is removed or replaced keeps working until it is closed, as the system has it.

Always true: `write_file` and `sync_dir` return only when the device has it; a failed sync is raised, and never tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import resource
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from strandline.ports import COMPUTING_MAX, WORKERS_MAX, A, Disk, Pace
from strandline.runtime import modes
from strandline.runtime.files import FileTable, RealFile
from strandline.runtime.niced import NicedProcesses

T = TypeVar("T")
HANDLES_FOR_OTHERS = 1024
"""Handles that are left to connections, libraries and work under way."""


def raise_open_files_limit() -> int:
    """Raise this process's soft limit of open files to its hard one, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if limit == resource.RLIM_INFINITY else limit


class FileDisk:
    def __init__(self, *, max_open_files: int | None = None, workers_max: int = WORKERS_MAX) -> None:
        """Without `max_open_files`, all the system allows this process but a reserve, or half of it if that is more."""
        if max_open_files is None:
            limit = raise_open_files_limit()
            max_open_files = max(limit // 2, limit - HANDLES_FOR_OTHERS)
        self._workers_max = workers_max
        self._workers = {"/": self._new_workers()}
        """By the directory that they are for."""
        self._table = FileTable(max_open_files, self.offload)
        self._computing: ThreadPoolExecutor | None = None
        self._computing_slots = asyncio.Semaphore(COMPUTING_MAX)
        self._niced: NicedProcesses | None = None
        self._locks: list[int] = []

    def open(self, path: str, *, create: bool = False) -> RealFile:
        return self._table.open(os.path.abspath(path), create)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        return os.path.isdir(path)

    def is_link(self, path: str) -> bool:
        return os.path.islink(path)

    def listdir(self, path: str) -> Sequence[str]:
        return sorted(self._table.with_handles(lambda: os.listdir(path)))

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def mkdir(self, path: str) -> None:
        os.makedirs(path, modes.DIRECTORY, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        old, new = os.path.abspath(old), os.path.abspath(new)
        if old != new:
            self._table.rename(old, new)

    def remove(self, path: str) -> None:
        path = os.path.abspath(path)
        with contextlib.suppress(FileNotFoundError):
            if os.path.isfile(path):
                self._table.orphan(path)
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        path = os.path.abspath(path)
        self._table.orphan(path)
        if os.path.isfile(path) or os.path.islink(path):
            os.unlink(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                self._table.with_handles(lambda: shutil.rmtree(path))

    def read_file(self, path: str) -> bytes:
        with open(path, "rb", opener=self._table.open_handle) as file:
            return file.read()

    def write_file(self, path: str, data: bytes) -> None:
        path = os.path.abspath(path)
        temporary = f"{path}.tmp"
        try:
            with open(temporary, "wb", opener=self._table.open_handle) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self.rename(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self.sync_dir(os.path.dirname(path))

    def sync_dir(self, path: str) -> None:
        fd = self._table.open_handle(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def usage(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize

    def lock(self, path: str) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, modes.FILE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise
        self._locks.append(fd)

    def mtime_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def dedicate_workers(self, path: str) -> None:
        path = os.path.abspath(path)
        if path not in self._workers:
            self._workers[path] = self._new_workers()

    def _new_workers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._workers_max, thread_name_prefix="strandline-disk")

    def _workers_for(self, path: str) -> ThreadPoolExecutor:
        directory = os.path.abspath(path) if path else "/"
        while directory not in self._workers:
            directory = os.path.dirname(directory)
        return self._workers[directory]

    async def offload(self, work: Callable[[], T], path: str) -> T:
        running = asyncio.get_running_loop().run_in_executor(self._workers_for(path), work)
        running.add_done_callback(lambda _: self._table.end_work())
        return await asyncio.shield(running)

    async def offload_compute(self, work: Callable[[], T]) -> T:
        if self._computing is None:
            self._computing = ThreadPoolExecutor(COMPUTING_MAX, thread_name_prefix="strandline-compute")
        # No more is handed over than there are threads: the executor would keep what is cancelled, and all that it was given.
        async with self._computing_slots:
            running = asyncio.get_running_loop().run_in_executor(self._computing, work)
            try:
                return await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.wait([running])
                raise
            finally:
                if running.done() and not running.cancelled():
                    running.exception()  # so that asyncio does not log that it was never retrieved

    async def offload_niced(self, work: Callable[[Disk, Pace, A], T], argument: A, bytes_per_second: float) -> T:
        if self._niced is None:
            self._niced = NicedProcesses()
        return await self._niced.run(work, argument, bytes_per_second)

    def close(self) -> None:
        """Wait for work under way, end what is in processes of its own, and give back every handle and lock."""
        if self._niced is not None:
            self._niced.close()
        if self._computing is not None:
            self._computing.shutdown(wait=True, cancel_futures=True)
        for workers in self._workers.values():
            workers.shutdown(wait=True)
        self._table.close()
        for fd in self._locks:
            os.close(fd)
        self._locks.clear()
