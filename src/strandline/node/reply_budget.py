"""How many bytes of replies all connections together may hold that their peers have not read
(`queued.max.response.bytes`).

Always true: while the budget is exhausted, a connection with unread replies has no further request handled before they
are read, and a Fetch gets little; one whose peer reads goes on. What is held is counted when a connection writes much,
when it drains and before the budget is called exhausted, so that no connection is held back for bytes that left long
ago (SEC-L3).
"""

from __future__ import annotations

from typing import Protocol

UNLIMITED = -1
RECOUNT_S = 0.05
"""All counts are taken anew at most this often."""


class ReplyHolder(Protocol):
    """A connection."""

    def unread_bytes(self) -> int:
        """What of its replies the system has not taken yet."""


class ReplyBudget:
    def __init__(self, limit_bytes: int = UNLIMITED) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.is_exhausted = False
        self.exhausted_count = 0
        self._held: dict[ReplyHolder, int] = {}
        self._recounted_at = float("-inf")

    def count(self, who: ReplyHolder, size: int, now: float) -> None:
        """This one holds so much now."""
        self._set(who, size)
        if self.limit_bytes != UNLIMITED and self.held_bytes > self.limit_bytes:
            if now - self._recounted_at >= RECOUNT_S:
                self._recounted_at = now
                for holder in tuple(self._held):
                    self._set(holder, holder.unread_bytes())
            is_exhausted = self.held_bytes > self.limit_bytes
            self.exhausted_count += is_exhausted and not self.is_exhausted
            self.is_exhausted = is_exhausted
        else:
            self.is_exhausted = False

    def _set(self, who: ReplyHolder, size: int) -> None:
        before = self._held.pop(who, 0)
        if size:
            self._held[who] = size
        self.held_bytes += size - before
