"""How much memory all connections together may hold for large requests that are still arriving (`queued.max.request.bytes`).

Always true: whoever has room keeps it until the request is handled; whoever finds none stops reading and is called in the
order of asking. A single request always fits, because the limit is at least `socket.request.max.bytes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

UNLIMITED = -1


class ReadBudget:
    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def take(self, size: int) -> None:
        """More room for a buffer that is in use already; negative gives it back."""
        self.taken_bytes += size
        if size < 0:
            self._call_next()

    @property
    def is_spent(self) -> bool:
        return self.limit_bytes != UNLIMITED and self.taken_bytes > self.limit_bytes

    def when_free(self, resume: Callable[[], None]) -> None:
        """Call once there is room again."""
        self._waiting.append(resume)

    def _call_next(self) -> None:
        while self._waiting and not self.is_spent:
            self._waiting.popleft()()
