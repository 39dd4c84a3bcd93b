"""How much memory all connections together may hold for large requests that are still arriving (`queued.max.request.bytes`).

Always true: what counts is memory that is really taken, not what a peer claims to send. One connection at a time may go beyond
the limit, so that somebody always gets to the end of a request and gives room back; the others stop reading and ask again.
"""

from __future__ import annotations

from collections.abc import Callable

UNLIMITED = -1


class ReadBudget:
    def __init__(self, limit_bytes: int = UNLIMITED) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0
        self._beyond: object | None = None
        """Who may go beyond the limit now."""
        self._waiting: dict[object, Callable[[], None]] = {}

    def try_take(self, who: object, size: int) -> bool:
        over = self.limit_bytes != UNLIMITED and self.taken_bytes + size > self.limit_bytes
        if over:
            self._beyond = self._beyond or who
            if self._beyond is not who:
                return False
        self.taken_bytes += size
        return True

    def when_freed(self, who: object, ask_again: Callable[[], None]) -> None:
        """Call once something was given back; whoever is called takes, or waits again."""
        self._waiting[who] = ask_again

    def give_back(self, who: object, size: int) -> None:
        """All that this one had. Whoever waited longest is called first."""
        self.taken_bytes -= size
        assert self.taken_bytes >= 0, "more was given back than taken"
        self._waiting.pop(who, None)
        if self._beyond is who:
            self._beyond = None
        waiting, self._waiting = self._waiting, {}
        for ask_again in waiting.values():
            ask_again()
