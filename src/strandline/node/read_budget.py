"""How much memory all connections together may hold for requests that are still arriving (`queued.max.request.bytes`).

Always true: what counts is memory that is really taken, not what a peer claims to send. One connection at a time may go beyond
the limit, so that somebody always gets to the end of a request and gives room back; the others stop reading and ask again. Nobody
keeps room for a request that does not arrive (`ArrivalProgress`, SEC-L4).
"""

from __future__ import annotations

from collections.abc import Callable

UNLIMITED = -1
BYTES_PER_S_MIN = 64 * 1024
"""A request that holds room has to arrive at least as fast as this."""


class ReadBudget:
    def __init__(self, limit_bytes: int = UNLIMITED) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0
        self.is_exhausted = False
        self._beyond: object | None = None
        """Who may go beyond the limit now."""
        self._waiting: dict[object, Callable[[], None]] = {}

    @property
    def waiting(self) -> int:
        """Connections that ask for room."""
        return len(self._waiting)

    def try_take(self, who: object, size: int) -> bool:
        over = self.limit_bytes != UNLIMITED and self.taken_bytes + size > self.limit_bytes
        if over:
            self._beyond = self._beyond or who
            if self._beyond is not who:
                return False
        self.take(size)
        return True

    def take(self, size: int) -> None:
        """For bytes that were read already and have to stay somewhere. Whoever reads asks first whether it is exhausted."""
        self._set(self.taken_bytes + size)

    def _set(self, taken_bytes: int) -> None:
        self.taken_bytes = taken_bytes
        self.is_exhausted = taken_bytes >= self.limit_bytes != UNLIMITED

    def when_freed(self, who: object, ask_again: Callable[[], None]) -> None:
        """Call once something was given back; whoever is called takes, or waits again."""
        self._waiting[who] = ask_again

    def give_back(self, who: object, size: int) -> None:
        """All that this one had. Whoever waited longest is called first."""
        self._set(self.taken_bytes - size)
        assert self.taken_bytes >= 0, "more was given back than taken"
        self._waiting.pop(who, None)
        if self._beyond is who:
            self._beyond = None
        elif not size:
            return
        waiting, self._waiting = self._waiting, {}
        for ask_again in waiting.values():
            ask_again()


class ArrivalProgress:
    """Whether the request that holds room on one connection goes on arriving."""

    __slots__ = ("_since", "_since_bytes")

    def __init__(self) -> None:
        self._since: float | None = None
        self._since_bytes = 0

    def is_stalled(self, received_bytes: int, now: float, timeout_s: float) -> bool:
        """Asked every now and then while room is held, with all bytes that the connection ever received: less than the least
        came over so long."""
        if self._since is None:
            self._since, self._since_bytes = now, received_bytes
        passed_s = now - self._since
        if passed_s < timeout_s:
            return False
        if received_bytes - self._since_bytes < BYTES_PER_S_MIN * timeout_s:
            return True
        self._since, self._since_bytes = now, received_bytes
        return False

    def reset(self) -> None:
        """No room is held, or it is not the peer that keeps us waiting."""
        self._since = None
