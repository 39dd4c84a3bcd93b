"""Open files of a real disk: more Files than the system allows handles, the least used of them closed and reopened.

Handles are evicted by second chance: a file that was used since the hand last passed stays. `append` and `read` touch no
lock and no list.

Always true: only the thread that made the table evicts, so a handle never vanishes under that thread's own call; other threads pin
the file for each call, and what is pinned stays open until the call has ended. A file whose name is gone keeps its handle, for
it could not be opened again. A few handles are kept in reserve: if the system has none left, they and the least used files make
room, and what was to be opened is tried again (SEC-L5). No thread waits for a handle while it holds the table's lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from threading import get_ident
from typing import TypeVar

from strandline.ports import Buffer, is_out_of_handles
from strandline.runtime import modes

T = TypeVar("T")

RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
COPIED_BYTES_MAX = 64 * 1024
"""Up to this size it is cheaper to read into a buffer and copy it than to probe the cache first."""
PROBE_STRIDE_BYTES = 256 * 1024
RESERVE, RESERVE_OF_LOOP = 16, 8
"""Handles that are kept for when there are none: a checkpoint has to be written even then. Some are for the event loop alone, which
can't wait."""
BURST_SHARE = 4
"""Beside the event loop so many may be opened beyond the limit, as a share of it, until the work ends."""
EVICTED_AT_ONCE = 16
"""Files that are closed to make room when the system has no handle left."""
TRIES_MAX = 4
WORKER_TRIES_MAX, WORKER_PAUSE_S = 100, 0.02
"""What runs beside the event loop may wait a moment until others give handles back."""
_PROBE = (bytearray(1),)
_NOT_SUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


class RealFile:
    """One file, however often it is open: all who open a path share it, and the last to close gives the handle back."""

    __slots__ = ("_fd", "_nowait", "_opens", "_orphan", "_owner", "_pins", "_table", "_used", "path", "size")

    def __init__(self, table: FileTable, path: str, fd: int) -> None:
        self._table = table
        self._fd = fd
        self._used = True
        self._nowait = RWF_NOWAIT != 0
        self._opens = 1
        self._orphan = False
        self._owner = table.owner
        self._pins = 0
        self.path = path
        self.size = os.fstat(fd).st_size

    def append(self, data: Buffer) -> None:
        fd = self._fd
        if pin := fd < 0 or get_ident() != self._owner:
            fd = self._table.pin(self)
        self._used = True
        size = len(data)
        try:
            written = os.write(fd, data)
            if written != size:
                self._append_rest(fd, memoryview(data)[written:])
        except OSError:
            self._cut_back(fd)
            raise
        finally:
            if pin:
                self._table.unpin(self)
        self.size += size

    def read(self, position: int, size: int) -> bytes | None:
        fd = self._fd
        if pin := fd < 0 or get_ident() != self._owner:
            fd = self._table.pin(self)
        self._used = True
        try:
            left = self.size - position
            if size > left:
                if left <= 0:
                    return b""
                size = left
            if not self._nowait:
                return self._read_all(fd, position, size)
            if size <= COPIED_BYTES_MAX:
                return self._read_nowait(fd, position, size)
            return self._read_all(fd, position, size) if self._is_cached(fd, position, position + size) else None
        finally:
            if pin:
                self._table.unpin(self)

    def _read_nowait(self, fd: int, position: int, size: int) -> bytes | None:
        buffer = bytearray(size)
        try:
            count = os.preadv(fd, (buffer,), position, RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            self._nowait = False  # tmpfs and some overlays: what they hold is in memory anyway
            return self._read_all(fd, position, size)
        return bytes(buffer) if count == size else None

    def _is_cached(self, fd: int, start: int, end: int) -> bool:
        """Whether a byte every here and there can be had without waiting. The cache holds long runs, so the rest can too."""
        try:
            for at in (*range(start, end - 1, PROBE_STRIDE_BYTES), end - 1):
                if os.preadv(fd, _PROBE, at, RWF_NOWAIT) != 1:
                    return False
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
            self._nowait = False
        return True

    def read_blocking(self, position: int, size: int) -> bytes:
        fd = self._fd
        if pin := fd < 0 or get_ident() != self._owner:
            fd = self._table.pin(self)
        self._used = True
        try:
            return self._read_all(fd, position, max(0, min(size, self.size - position)))
        finally:
            if pin:
                self._table.unpin(self)

    def rewrite(self, position: int, data: Buffer) -> None:
        assert 0 <= position <= self.size - len(data), "only what is there is written again"
        # Through our own handle, which appends, the system would write at the end and ignore the position.
        fd = self._table.open_handle(self.path, os.O_WRONLY)
        try:
            rest = memoryview(data)
            while len(rest):
                written = os.pwrite(fd, rest, position)
                rest, position = rest[written:], position + written
        finally:
            os.close(fd)

    def truncate(self, size: int) -> None:
        assert 0 <= size <= self.size, "a truncate does not grow a file"
        fd = self._table.pin(self)
        try:
            os.ftruncate(fd, size)
        finally:
            self._table.unpin(self)
        self.size = size

    async def sync(self) -> None:
        fd = self._table.pin(self)  # from now on: it may be closed before a worker is free

        def work() -> None:
            try:
                os.fdatasync(fd)
            finally:
                self._table.unpin(self)

        await self._table.offload(work, self.path)

    def sync_blocking(self) -> None:
        fd = self._table.pin(self)
        try:
            os.fdatasync(fd)
        finally:
            self._table.unpin(self)

    def close(self) -> None:
        self._table.release(self)

    def _append_rest(self, fd: int, rest: memoryview) -> None:
        while len(rest):
            rest = rest[os.write(fd, rest) :]

    def _cut_back(self, fd: int) -> None:
        """All or nothing. If even this fails, the error that brought us here is the one that is raised."""
        with contextlib.suppress(OSError):
            os.ftruncate(fd, self.size)

    def _read_all(self, fd: int, position: int, size: int) -> bytes:
        data = os.pread(fd, size, position)
        while len(data) < size:
            more = os.pread(fd, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data


def _open_handle(path: str, flags: int, mode: int = modes.FILE) -> int:
    return os.open(path, flags | os.O_CLOEXEC, mode)


def _has_directories(path: str) -> bool:
    with os.scandir(path) as entries:
        return any(entry.is_dir(follow_symlinks=False) for entry in entries)


class WorkersShareTaken(OSError):
    """Work beside the event loop has opened so many files that the rest is left to the loop. They are taken back only when that
    work ends: to wait would be in vain."""


class FileTable:
    """All open Files by directory and name, and which of them hold a handle."""

    def __init__(self, max_open_files: int, offload: Callable[[Callable[[], None], str], Awaitable[None]]) -> None:
        assert max_open_files > 0
        self.max_open_files = max_open_files
        self._for_workers_max = max_open_files + max_open_files // BURST_SHARE
        self.offload = offload
        self.owner = get_ident()
        self._lock = threading.RLock()
        self._directories: dict[str, dict[str, RealFile]] = {}
        self._hand: OrderedDict[RealFile, None] = OrderedDict()
        self._closing_count = 0
        """Closed while they were pinned."""
        self._reserve: list[int] = []
        self._refill()

    @property
    def open_handles(self) -> int:
        return len(self._hand) + self._closing_count

    # Opening and closing

    def open(self, path: str, create: bool) -> RealFile:
        return self.with_handles(lambda: self._open(path, create))

    def _open(self, path: str, create: bool) -> RealFile:
        with self._lock:
            directory, name = os.path.split(path)
            file = self._directories.get(directory, {}).get(name)
            if file is not None:
                file._opens += 1
                return file
            if get_ident() != self.owner and self.open_handles >= self._for_workers_max:
                raise WorkersShareTaken(errno.EMFILE, os.strerror(errno.EMFILE), path)
            fd = _open_handle(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0))
            file = RealFile(self, path, fd)
            self._directories.setdefault(directory, {})[name] = file
            self._hold(file)
            return file

    def pin(self, file: RealFile) -> int:
        """A handle that stays open until `unpin`."""
        return self.with_handles(lambda: self._pin(file))

    def _pin(self, file: RealFile) -> int:
        with self._lock:
            fd = self._reopen(file)
            file._used = True
            file._pins += 1
            return fd

    def unpin(self, file: RealFile) -> None:
        with self._lock:
            file._pins -= 1
            if not file._pins and not file._opens:
                self._closing_count -= 1
                self._close_handle(file)

    def _reopen(self, file: RealFile) -> int:
        if file._fd < 0:
            assert file._opens > 0, f"{file.path} is closed"
            file._fd = _open_handle(file.path, os.O_RDWR | os.O_APPEND)
            self._hold(file)
        return file._fd

    def release(self, file: RealFile) -> None:
        with self._lock:
            file._opens -= 1
            if file._opens:
                return
            if not file._orphan:
                self._unlist(file)
            if file._fd >= 0:
                del self._hand[file]
                if file._pins:
                    self._closing_count += 1
                else:
                    self._close_handle(file)

    def _hold(self, file: RealFile) -> None:
        self._hand[file] = None
        if len(self._hand) > self.max_open_files and get_ident() == self.owner:
            self._evict(self.max_open_files)

    def _evict(self, left: int) -> None:
        """Close the least used handles. Twice around is enough: the first round takes the second chances away."""
        newest = next(reversed(self._hand))
        for _ in range(2 * len(self._hand)):
            if len(self._hand) <= left:
                return
            file = next(iter(self._hand))
            if file._used or file._orphan or file._pins or file is newest:
                file._used = False
                self._hand.move_to_end(file)
            else:
                del self._hand[file]
                self._close_handle(file)

    def _close_handle(self, file: RealFile) -> None:
        fd, file._fd = file._fd, -1
        os.close(fd)

    # When there are none left

    def open_handle(self, path: str, flags: int, mode: int = modes.FILE) -> int:
        return self.with_handles(lambda: _open_handle(path, flags, mode))

    def with_handles(self, call: Callable[[], T]) -> T:
        """Do something that opens a handle; if there is none, make room and try again. OSError if no room can be made.

        `call` must not have changed anything when it finds no handle, and its caller must not have the lock: what runs beside the
        event loop waits here for what others, the loop among them, give back.
        """
        is_owner = get_ident() == self.owner
        for _ in range(TRIES_MAX if is_owner else WORKER_TRIES_MAX):
            try:
                return call()
            except OSError as error:
                if not is_out_of_handles(error) or isinstance(error, WorkersShareTaken):
                    raise
                if not self._make_room():
                    if is_owner:
                        raise
                    time.sleep(WORKER_PAUSE_S)
        return call()

    def _make_room(self) -> bool:
        with self._lock:
            before = self.open_handles + len(self._reserve)
            is_owner = get_ident() == self.owner
            if self._hand and is_owner:
                self._evict(max(len(self._hand) - EVICTED_AT_ONCE, 1))
            if len(self._reserve) > (0 if is_owner else RESERVE_OF_LOOP):
                os.close(self._reserve.pop())
            return self.open_handles + len(self._reserve) < before

    def _refill(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._reserve) < RESERVE:
                self._reserve.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    # Work in other threads

    def end_work(self) -> None:
        """Called by the owner's thread: what the work opened beyond the limit is taken back."""
        with self._lock:
            if len(self._hand) > self.max_open_files:
                self._evict(self.max_open_files)
            if len(self._reserve) < RESERVE:
                self._refill()

    # Names

    def rename(self, old: str, new: str) -> None:
        """Rename, and let open Files at and below `old` follow, before anybody can reopen one by its old path."""
        self.with_handles(lambda: self._rename(old, new))

    def _rename(self, old: str, new: str) -> None:
        with self._lock:
            below = self._directories_at(old)
            if os.path.isfile(old) and os.path.isfile(new):
                self._orphan(new)
            os.rename(old, new)
            directory, name = os.path.split(old)
            file = self._directories.get(directory, {}).get(name)
            if file is not None:
                self._unlist(file)
                self._list(file, new)
            for open_in in below:
                for file in self._directories.pop(open_in).values():
                    self._list(file, new + file.path[len(old) :])

    def orphan(self, path: str) -> None:
        """A name, or a tree, is about to go: give its open Files a handle for the rest of their lives."""
        self.with_handles(lambda: self._orphan(path))

    def _orphan(self, path: str) -> None:
        with self._lock:
            directory, name = os.path.split(path)
            file = self._directories.get(directory, {}).get(name)
            files = [] if file is None else [file]
            for open_in in self._directories_at(path):
                files += self._directories[open_in].values()
            for file in files:
                self._reopen(file)
                file._orphan = True
                self._unlist(file)

    def _directories_at(self, path: str) -> list[str]:
        """The directories with open Files at and below a path. Only one that has others inside is worth a look at all of them."""
        if not os.path.isdir(path):
            return []
        if _has_directories(path):
            return [d for d in self._directories if d == path or d.startswith(path + "/")]
        return [path] if path in self._directories else []

    def _list(self, file: RealFile, path: str) -> None:
        file.path = path
        directory, name = os.path.split(path)
        self._directories.setdefault(directory, {})[name] = file

    def _unlist(self, file: RealFile) -> None:
        directory, name = os.path.split(file.path)
        names = self._directories[directory]
        del names[name]
        if not names:
            del self._directories[directory]

    def close(self) -> None:
        with self._lock:
            for file in self._hand:
                os.close(file._fd)
                file._fd = -1
            for fd in self._reserve:
                os.close(fd)
            self._reserve.clear()
            self._hand.clear()
            self._directories.clear()
