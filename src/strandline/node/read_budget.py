"""How much memory all connections together may hold for requests that are still arriving, or were copied to be checked
beside the event loop (`queued.max.request.bytes`).

Always true: what counts is memory that is really taken, not what a peer claims to send. One connection at a time may go
beyond the limit, so that there is always one that gets to the end of a request and gives room back; the others stop
reading and wait in line. Who would fit if there were no copies waits for them instead: they give room back by
themselves. No connection takes room before those that were in the line earlier, however little it asks for (SEC-L4).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial

UNLIMITED = -1


class ReadBudget:
    def __init__(self, limit_bytes: int = UNLIMITED) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0
        self.held_bytes = 0
        """Of them, copies of requests that have arrived."""
        self.is_exhausted = False
        self._over_limit_holder: object | None = None
        """The one that may go beyond the limit now."""
        self._line: OrderedDict[object, Callable[[], None]] = OrderedDict()
        self._asked: object | None = None
        """The one from the head of the line that may take now."""

    @property
    def waiting(self) -> int:
        """Connections in the line."""
        return len(self._line)

    def is_wanted_back(self, who: object) -> bool:
        """Whether others need what this one has and does not use for a request."""
        return bool(self._line) or self.is_exhausted or self._over_limit_holder is who

    def try_take(self, who: object, size: int) -> bool:
        if self._over_limit_holder is not who:
            if self._line and self._asked is not who:
                return False
            if self.limit_bytes != UNLIMITED and self.taken_bytes + size > self.limit_bytes:
                fits_without_copies = self.taken_bytes - self.held_bytes + size <= self.limit_bytes
                if fits_without_copies or self._over_limit_holder is not None:
                    return False
                self._over_limit_holder = who
        self.take(size)
        return True

    def take(self, size: int) -> None:
        """For bytes that were read already and have to stay somewhere. The reader asks first whether it is
        exhausted."""
        self._set(self.taken_bytes + size)

    def hold(self, size: int) -> Callable[[], None]:
        """A request was copied: the bytes count until what this returns is called, whatever becomes of its
        connection."""
        self.held_bytes += size
        self.take(size)
        return partial(self._release, size)

    def _release(self, size: int) -> None:
        self.held_bytes -= size
        assert self.held_bytes >= 0, "more was released than held"
        self.give_back(self, size)

    def _set(self, taken_bytes: int) -> None:
        self.taken_bytes = taken_bytes
        self.is_exhausted = taken_bytes >= self.limit_bytes != UNLIMITED

    def when_freed(self, who: object, ask_again: Callable[[], None]) -> None:
        """Wait in line: `ask_again` is called when it may take, or has to wait again."""
        self._line[who] = ask_again
        if self._asked is who:
            self._line.move_to_end(who, last=False)

    def give_back(self, who: object, size: int) -> None:
        """So much of what it had, because its request was served or it is gone; it waits for nothing any more."""
        self._set(self.taken_bytes - size)
        assert self.taken_bytes >= 0, "more was given back than taken"
        has_left = self._line.pop(who, None) is not None
        if self._over_limit_holder is who:
            self._over_limit_holder = None
        elif not size and not has_left:
            return
        if self._asked is None:  # otherwise the loop below is under way, and goes on
            self._ask_in_order()

    def _ask_in_order(self) -> None:
        """Let those in the line take, until one has to wait again."""
        while self._line:
            who, ask_again = self._line.popitem(last=False)
            self._asked = who
            try:
                ask_again()
            finally:
                self._asked = None
            if who in self._line:
                return
