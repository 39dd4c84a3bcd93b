"""The doors to the world: disk and clock. The event loop is asyncio's own; randomness is `random.Random`.

Production puts files and the system's clocks behind these, the simulator a memory disk that loses what was not synced
and clocks that drift. No module above this file imports `os`, `time` or `random` to act on the world.

Always true: `append` and `truncate` happen before they return and are visible to `read` at once, but they survive a power
loss only once `sync` returned; a name that was created, renamed or removed survives only once `sync_dir` returned.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
A = TypeVar("A")
Buffer = bytes | bytearray | memoryview
Pace = Callable[[int], None]
"""Called by work that is to go slowly, with the bytes that it has just read or written: returns when it may go on."""

WORKERS_MAX = 8
"""How much is offloaded at a time: for each directory that has workers of its own, and for all else together."""
COMPUTING_MAX = 2
"""How much is computed at a time: each may hold a request's worth of decompressed records."""
OUT_OF_HANDLES = frozenset({errno.EMFILE, errno.ENFILE})


def is_out_of_handles(error: BaseException) -> bool:
    """The process, or the system, has no descriptor left: of the disk that says nothing, and it passes (SEC-L5)."""
    return isinstance(error, OSError) and error.errno in OUT_OF_HANDLES


class WorkLost(OSError):
    """The process that did the work ended before the work did. What it wrote until then is there, as after a crash."""


class File(Protocol):
    """One open file, changed only at its end. Positions and sizes are in bytes."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    def append(self, data: Buffer) -> None:
        """Write all of `data` at the end, or raise OSError and leave the file as it was. `data` may be reused afterwards."""

    def read(self, position: int, size: int) -> bytes | None:
        """Up to `size` bytes (fewer only at the end), or None if they are not in memory and reading them would block."""

    def read_blocking(self, position: int, size: int) -> bytes:
        """The same, waiting for the device: at start-up, in offloaded work, or where a few bytes are surely cached."""

    def rewrite(self, position: int, data: Buffer) -> None:
        """Write the same bytes over themselves, so that the next sync brings them to the device though an earlier one failed."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes, which is at most its size."""

    async def sync(self) -> None:
        """On return, every byte appended before the call is on the device. A failure is final: never try again."""

    def sync_blocking(self) -> None: ...

    def close(self) -> None:
        """Give the handle back; the object must not be used again."""


class Disk(Protocol):
    """A tree of files. Paths are strings with '/'. Everything raises OSError as the system does."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending. Handles beneath may be closed and reopened as needed; the File stays usable."""

    def exists(self, path: str) -> bool: ...

    def is_dir(self, path: str) -> bool: ...

    def is_link(self, path: str) -> bool: ...

    def listdir(self, path: str) -> Sequence[str]:
        """The names in a directory, sorted."""

    def size(self, path: str) -> int: ...

    def mkdir(self, path: str) -> None:
        """Make a directory, and the ones above it."""

    def rename(self, old: str, new: str) -> None:
        """Move a file or directory, replacing a file that is there. Open Files move along."""

    def remove(self, path: str) -> None:
        """Remove a file; it is no error if it is gone."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and all below it; it is no error if it is gone."""

    def read_file(self, path: str) -> bytes: ...

    def write_file(self, path: str, data: bytes) -> None:
        """Replace a small file as a whole: after a crash it holds the old bytes or the new ones. Blocks until it is synced."""

    def sync_dir(self, path: str) -> None:
        """On return, the names in this directory are on the device. Blocks."""

    def usage(self, path: str) -> tuple[int, int]:
        """Total and usable bytes of the volume."""

    def lock(self, path: str) -> None:
        """Take the lock file for this process's life; BlockingIOError if another process holds it."""

    def mtime_ms(self, path: str) -> int: ...

    def dedicate_workers(self, path: str) -> None:
        """What is offloaded for this directory, and for all below it, waits only for its like: its device may be slow."""

    async def offload(self, work: Callable[[], T], path: str) -> T:
        """Run blocking work for what lies at `path` beside the event loop. Without a path it is for no device, or for many.

        A sync inside covers only what was written before the call.
        """

    async def offload_compute(self, work: Callable[[], T]) -> T:
        """Run work that takes the processor and no disk beside the event loop, a few at a time, without delaying other work.

        What has not begun when its waiter is cancelled never does, and nothing is kept of it. What has begun is waited for.
        """

    async def offload_niced(self, work: Callable[[Disk, Pace, A], T], argument: A, bytes_per_second: float) -> T:
        """Run long blocking work where it takes neither the processor nor the disk from anybody: in a process of its own.

        `work` is a function of a module, `argument` and what it returns or raises are plain values, for they cross over. It gets
        a disk of its own, so it opens its files by their paths, and calls its pace for every few bytes. WorkLost if its process
        ends before it does. When the awaiting task is cancelled, or this process dies, the work is over too, in the middle of
        whatever it did: nothing is written any more.
        """


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds that only move forward: timers, sessions, lag."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970: record timestamps and retention, never a decision about who leads."""
