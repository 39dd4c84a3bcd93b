"""Who waits for an offset of one partition: for the high watermark, for the device, for the followers' log starts.

Always true: a waiter is called once. One that does not wait any more (its time is up, its connection is gone) is forgotten
before there are many of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from strandline.errors import ErrorCode

Done = Callable[[ErrorCode], None]
IsOver = Callable[[], bool]

SWEPT_FROM = 256


class Waiters:
    """In the order in which they came; one that waits for less than one before it waits for that one too."""

    __slots__ = ("_sweep_at", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Done, IsOver | None]] = deque()
        self._sweep_at = SWEPT_FROM

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, done: Done, is_over: IsOver | None = None) -> None:
        """`done` is called once that offset is reached; `is_over` says whether anybody still waits for that."""
        self._waiting.append((offset, done, is_over))
        if len(self._waiting) >= self._sweep_at:
            self._waiting = deque(waiter for waiter in self._waiting if waiter[2] is None or not waiter[2]())
            self._sweep_at = max(SWEPT_FROM, 2 * len(self._waiting))

    def reached(self, offset: int, code: ErrorCode = ErrorCode.NONE) -> None:
        """Those who wait for no more than `offset` have it."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= offset:
            waiting.popleft()[1](code)

    def all_wait_for_more(self, offset: int) -> bool:
        """No request waits first in line for what was reached already."""
        return not self._waiting or self._waiting[0][0] > offset

    def take_all(self) -> list[Done]:
        """Nothing waits here any more; the caller says with what each is called."""
        taken = [done for _, done, _ in self._waiting]
        self._waiting.clear()
        return taken
