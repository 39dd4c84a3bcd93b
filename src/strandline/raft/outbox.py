"""Requests on their way: which may go out, which is waited for, when to try again.

Always true: in each slot (say, the Vote for node 2) at most one request is under way; its end, `Replied` or `RequestUnanswered`,
finds it by identity, so an answer to what is no longer wanted finds nothing. After failures in a row a slot waits longer.
"""

from __future__ import annotations

import random
from math import inf
from typing import Final

from strandline.raft.effects import Effect, SendRequest
from strandline.raft.events import Destination
from strandline.raft.messages import Request

Slot = tuple[str, int]
"""What for, and for which node (-1 where there is only one at a time)."""

BACKOFF_FACTOR_MAX: Final = 10
DOUBLINGS_MAX: Final = 4
"""One more than it takes to get there."""


class Outbox:
    __slots__ = ("_backoff_s", "_failures", "_on_the_way", "_randomness", "_retry_at")

    def __init__(self, backoff_s: float, randomness: random.Random) -> None:
        self._backoff_s = backoff_s
        self._randomness = randomness
        self._on_the_way: dict[Slot, Request] = {}
        self._failures: dict[Slot, int] = {}
        self._retry_at: dict[Slot, float] = {}

    def ready_at(self, slot: Slot) -> float:
        """From when on the slot is free; inf while a request is under way, whose end is an event of its own."""
        return inf if slot in self._on_the_way else self._retry_at.get(slot, -inf)

    def send(self, effects: list[Effect], slot: Slot, to: Destination, request: Request) -> None:
        assert slot not in self._on_the_way, "one request at a time"
        self._on_the_way[slot] = request
        effects.append(SendRequest(to, request))

    def settle(self, request: Request) -> Slot | None:
        """The slot of this request, which has come to its end; None if its answer is not needed any more."""
        for slot, waited_for in self._on_the_way.items():
            if waited_for is request:
                del self._on_the_way[slot]
                return slot
        return None

    def failed(self, slot: Slot, now: float) -> None:
        failures = self._failures.get(slot, 0)
        self._failures[slot] = failures + 1
        # The exponent has a bound of its own: a voter may be gone for days.
        backoff_s = self._backoff_s * min(2.0 ** min(failures, DOUBLINGS_MAX), BACKOFF_FACTOR_MAX)
        self._retry_at[slot] = now + backoff_s * self._randomness.uniform(0.5, 1.0)

    def succeeded(self, slot: Slot) -> None:
        self._failures.pop(slot, None)
        self._retry_at.pop(slot, None)

    def wait(self, slot: Slot, until: float) -> None:
        """Not a failure, but no reason to ask again before then."""
        self._retry_at[slot] = until

    def free(self, slot: Slot) -> None:
        """What is under way here is not wanted any more."""
        self._on_the_way.pop(slot, None)
        self.succeeded(slot)

    def clear(self) -> None:
        """Nothing that was asked in the last state is of use in the next."""
        self._on_the_way.clear()
        self._failures.clear()
        self._retry_at.clear()
