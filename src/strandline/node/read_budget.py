"""How much memory all connections together may hold for large requests that are still arriving (`queued.max.request.bytes`).

Always true: a request's whole size is taken before the rest of it is read, so whoever began can finish; whoever finds no room
stops reading and is called in the order of asking. A single request always fits, because the limit is at least
`socket.request.max.bytes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

UNLIMITED = -1


class ReadBudget:
    def __init__(self, limit_bytes: int = UNLIMITED) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def try_take(self, size: int) -> bool:
        if self.limit_bytes != UNLIMITED and self.taken_bytes and self.taken_bytes + size > self.limit_bytes:
            return False
        self.taken_bytes += size
        return True

    def when_freed(self, ask_again: Callable[[], None]) -> None:
        """Call once something was given back; whoever is called takes, or waits again."""
        self._waiting.append(ask_again)

    def give_back(self, size: int) -> None:
        self.taken_bytes -= size
        assert self.taken_bytes >= 0, "more was given back than taken"
        for _ in range(len(self._waiting)):
            self._waiting.popleft()()
