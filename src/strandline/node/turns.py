"""How long one connection may have requests handled before it is the others' turn (SEC-L1).

Connections with requests left wait in line. Each turn of the event loop takes some of them, for a bounded time in all:
between two such rounds it reads, so that a connection with a single request waits for one round and not for all that
are in the line.

Always true: a turn ends after the request that passes its time; every connection in the line gets its next turn after
all that were there before it. Where time stands still while a callback runs, as in the simulator, no turn ever ends
early.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

TURN_S_MAX = 0.005
TURN_S_MIN = 0.0005
ROUND_S = 0.002
"""What one round takes, while several wait. Short, because libuv accepts one connection in each turn of the loop: with
long rounds the backlog fills, and a client that is not in it tries again a second later."""


class ConnectionTurns:
    def __init__(self) -> None:
        self.turn_s = TURN_S_MAX
        """The more wait in line, the shorter is each turn."""
        self.ended_early = 0
        """Turns that ended with requests left."""
        self._line: deque[Callable[[], None]] = deque()
        self._is_planned = False

    @property
    def waiting(self) -> int:
        """Connections in the line."""
        return len(self._line)

    def stop(self, go_on: Callable[[], None], loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
        """A connection's time is up, and it has more: it is called when it may go on."""
        self.ended_early += 1
        self._line.append(go_on)
        self._divide()
        if not self._is_planned:
            self._is_planned = True
            loop.call_soon(self._round, loop, clock)

    def _round(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
        line, ends_at = self._line, clock() + ROUND_S
        try:
            for _ in range(len(line)):
                go_on = line.popleft()
                self._divide()
                go_on()
                if clock() >= ends_at:
                    break
        finally:  # one that fails does not stop the others
            self._is_planned = bool(line)
            if line:
                loop.call_soon(self._round, loop, clock)

    def _divide(self) -> None:
        self.turn_s = max(TURN_S_MIN, ROUND_S / len(self._line)) if self._line else TURN_S_MAX
