"""Time and disks that stand still until the test moves them.

Always true: a callback runs only in `run`, in the order in which it was due; a sync is done when it returns; a power loss keeps
what was synced and any part of the rest.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from strandline.sim.disk import SimDisk
from strandline.sim.inode import Inode

T = TypeVar("T")
NOW_MS = 1_700_000_000_000


class Handle:
    def __init__(self, callback: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.callback = callback
        self.arguments = arguments
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Trace:
    def record(self, *facts: Any) -> None: ...


class HandLoop:
    """As much of an event loop as callbacks need."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.trace = Trace()
        self.at_close: list[Callable[[], None]] = []
        self._timers: list[tuple[float, int, Handle]] = []
        self._count = 0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return NOW_MS + int(self.now * 1000)

    def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> Handle:
        return self.call_at(self.now, callback, *arguments)

    def call_later(self, delay_s: float, callback: Callable[..., Any], *arguments: Any) -> Handle:
        return self.call_at(self.now + delay_s, callback, *arguments)

    def call_at(self, when: float, callback: Callable[..., Any], *arguments: Any) -> Handle:
        handle = Handle(callback, arguments)
        self._count += 1
        heapq.heappush(self._timers, (when, self._count, handle))
        return handle

    def run(self, seconds: float = 0.0) -> None:
        """What is due until then."""
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, handle = heapq.heappop(self._timers)
            self.now = max(self.now, when)
            if not handle.is_cancelled:
                handle.callback(*handle.arguments)
        self.now = until


class MemoryDisk(SimDisk):
    """The simulator's disk, without its virtual time."""

    def __init__(self, loop: HandLoop, seed: str) -> None:
        super().__init__(loop, loop, random.Random(seed), cold_probability=0)  # type: ignore[arg-type]

    async def sync(self, path: str, inode: Inode) -> None:
        self.sync_blocking(path, inode)

    async def offload(self, work: Callable[[], T], path: str) -> T:
        return work()


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run what never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits")
