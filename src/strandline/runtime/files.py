"""Open files of a real disk: more Files than the system allows handles, the least used of them closed and reopened.

Handles are evicted by second chance: a file that was used since the hand last passed stays. `append` and `read` touch no
lock and no list.

Always true: only the thread that made the table evicts, so a handle never vanishes under that thread's own call; a handle that
work in another thread may be using is closed only after all such work has ended; a file whose name is gone keeps its
handle, for nobody could open it again. A few handles are kept in reserve: if the system has none left, they and the least used
files make room, and what was to be opened is tried again (SEC-L5).
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

from strandline.ports import Buffer, is_out_of_handles
from strandline.runtime import modes

T = TypeVar("T")

RWF_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)
COPIED_BYTES_MAX = 64 * 1024
"""Up to this size it is cheaper to read into a buffer and copy it than to probe the cache first."""
PROBE_STRIDE_BYTES = 256 * 1024
RESERVE = 16
"""Handles that are kept for when there are none: a checkpoint has to be written even then."""
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

    __slots__ = ("_fd", "_nowait", "_opens", "_orphan", "_table", "_used", "path", "size")

    def __init__(self, table: FileTable, path: str, fd: int) -> None:
        self._table = table
        self._fd = fd
        self._used = True
        self._nowait = RWF_NOWAIT != 0
        self._opens = 1
        self._orphan = False
        self.path = path
        self.size = os.fstat(fd).st_size

    def append(self, data: Buffer) -> None:
        fd = self._fd
        if fd < 0:
            fd = self._table.reopen(self)
        self._used = True
        size = len(data)
        try:
            written = os.write(fd, data)
            if written != size:
                self._append_rest(fd, memoryview(data)[written:])
        except OSError:
            self._cut_back(fd)
            raise
        self.size += size

    def read(self, position: int, size: int) -> bytes | None:
        fd = self._fd
        if fd < 0:
            fd = self._table.reopen(self)
        self._used = True
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
        if fd < 0:
            fd = self._table.reopen(self)
        self._used = True
        return self._read_all(fd, position, max(0, min(size, self.size - position)))

    def rewrite(self, position: int, data: Buffer) -> None:
        assert 0 <= position <= self.size - len(data), "only what is there is written again"
        # Through our own handle, which appends, the system would write at the end whatever the position is.
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
        fd = self._fd
        if fd < 0:
            fd = self._table.reopen(self)
        os.ftruncate(fd, size)
        self.size = size

    async def sync(self) -> None:
        fd = self._fd
        if fd < 0:
            fd = self._table.reopen(self)
        await self._table.offload(lambda: os.fdatasync(fd), self.path)

    def sync_blocking(self) -> None:
        fd = self._fd
        if fd < 0:
            fd = self._table.reopen(self)
        os.fdatasync(fd)

    def close(self) -> None:
        self._table.release(self)

    def _append_rest(self, fd: int, rest: memoryview) -> None:
        while len(rest):
            rest = rest[os.write(fd, rest) :]

    def _cut_back(self, fd: int) -> None:
        """All or nothing. If even this fails, the error that brought us here is the one to tell."""
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


def _has_directories(path: str) -> bool:
    with os.scandir(path) as entries:
        return any(entry.is_dir(follow_symlinks=False) for entry in entries)


class FileTable:
    """All open Files by directory and name, and which of them hold a handle."""

    def __init__(self, max_open_files: int, offload: Callable[[Callable[[], None], str], Awaitable[None]]) -> None:
        assert max_open_files > 0
        self.max_open_files = max_open_files
        self._for_workers_max = max_open_files + max_open_files // BURST_SHARE
        self.offload = offload
        self._owner = threading.get_ident()
        self._lock = threading.RLock()
        self._directories: dict[str, dict[str, RealFile]] = {}
        self._hand: OrderedDict[RealFile, None] = OrderedDict()
        self._works: dict[int, None] = {}
        self._works_started = 0
        self._retired: deque[tuple[int, int]] = deque()
        self._reserve: list[int] = []
        self._refill()

    @property
    def open_handles(self) -> int:
        return len(self._hand) + len(self._retired)

    # Opening and closing

    def open(self, path: str, create: bool) -> RealFile:
        with self._lock:
            directory, name = os.path.split(path)
            file = self._directories.get(directory, {}).get(name)
            if file is not None:
                file._opens += 1
                return file
            if threading.get_ident() != self._owner and self.open_handles >= self._for_workers_max:
                # What it opens is taken back only when its work has ended. The rest is for the event loop, which can't wait.
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
            fd = self.open_handle(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0))
            file = RealFile(self, path, fd)
            self._directories.setdefault(directory, {})[name] = file
            self._hold(file)
            return file

    def reopen(self, file: RealFile) -> int:
        with self._lock:
            if file._fd < 0:
                assert file._opens > 0, f"{file.path} is closed"
                file._fd = self.open_handle(file.path, os.O_RDWR | os.O_APPEND)
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
                self._retire(file)

    def _hold(self, file: RealFile) -> None:
        self._hand[file] = None
        if len(self._hand) > self.max_open_files and threading.get_ident() == self._owner:
            self._evict(self.max_open_files)

    def _evict(self, left: int) -> None:
        """Close the least used handles. Twice around is enough: the first round takes the second chances away."""
        newest = next(reversed(self._hand))
        for _ in range(2 * len(self._hand)):
            if len(self._hand) <= left:
                return
            file = next(iter(self._hand))
            if file._used or file._orphan or file is newest:
                file._used = False
                self._hand.move_to_end(file)
            else:
                del self._hand[file]
                self._retire(file)

    def _retire(self, file: RealFile) -> None:
        fd, file._fd = file._fd, -1
        if self._works:
            self._retired.append((self._works_started, fd))
        else:
            os.close(fd)

    # When there are none left

    def open_handle(self, path: str, flags: int, mode: int = modes.FILE) -> int:
        return self.with_handles(lambda: os.open(path, flags | os.O_CLOEXEC, mode))

    def with_handles(self, call: Callable[[], T]) -> T:
        """Do something that opens a handle; if there is none, make room and try again. OSError if no room can be made."""
        is_owner = threading.get_ident() == self._owner
        for _ in range(TRIES_MAX if is_owner else WORKER_TRIES_MAX):
            try:
                return call()
            except OSError as error:
                if not is_out_of_handles(error):
                    raise
                if not self._make_room():
                    if is_owner:
                        raise
                    time.sleep(WORKER_PAUSE_S)
        return call()

    def _make_room(self) -> bool:
        with self._lock:
            before = self.open_handles + len(self._reserve)
            if self._hand and threading.get_ident() == self._owner:
                self._evict(max(len(self._hand) - EVICTED_AT_ONCE, 1))
            if self._reserve:
                os.close(self._reserve.pop())
            return self.open_handles + len(self._reserve) < before

    def _refill(self) -> None:
        with contextlib.suppress(OSError):
            while len(self._reserve) < RESERVE:
                self._reserve.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    # Work in other threads

    def begin_work(self) -> int:
        with self._lock:
            self._works_started += 1
            self._works[self._works_started] = None
            return self._works_started

    def end_work(self, work: int) -> None:
        """Called by the owner's thread. Handles retired before the oldest work still running began can go."""
        with self._lock:
            del self._works[work]
            oldest = next(iter(self._works), self._works_started + 1)
            while self._retired and self._retired[0][0] < oldest:
                os.close(self._retired.popleft()[1])
            if len(self._hand) > self.max_open_files:
                self._evict(self.max_open_files)
            if len(self._reserve) < RESERVE:
                self._refill()

    # Names

    def rename(self, old: str, new: str) -> None:
        """Rename, and let open Files at and below `old` follow, before anybody can reopen one by its old path."""
        with self._lock:
            if os.path.isfile(old) and os.path.isfile(new):
                self.orphan(new)
            below = self._directories_at(old)
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
        with self._lock:
            directory, name = os.path.split(path)
            file = self._directories.get(directory, {}).get(name)
            files = [] if file is None else [file]
            for open_in in self._directories_at(path):
                files += self._directories[open_in].values()
            for file in files:
                self.reopen(file)
                file._orphan = True
                self._unlist(file)

    def _directories_at(self, path: str) -> list[str]:
        """The directories with open Files at and below a path. Only one that has others inside is worth a look at all of them."""
        if not os.path.isdir(path):
            return []
        if self.with_handles(lambda: _has_directories(path)):
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
            for _, fd in self._retired:
                os.close(fd)
            for fd in self._reserve:
                os.close(fd)
            self._reserve.clear()
            self._hand.clear()
            self._retired.clear()
            self._directories.clear()
