"""A node's own idea of time: virtual time, with drift, and a wall clock that may be wrong and may jump.

Always true: `monotonic` never moves back, also when the clock jumps; jumps touch the wall clock only.
"""

from __future__ import annotations

from strandline.sim.loop import SimLoop

WALL_START_MS = 1_767_225_600_000
"""Every world begins on 1 January 2026."""


class SimClock:
    def __init__(
        self, loop: SimLoop, *, monotonic_start: float = 0.0, wall_offset_ms: int = 0, drift: float = 0.0
    ) -> None:
        """`drift` is in seconds per second: 1e-4 gains 100 microseconds every second."""
        self._loop = loop
        self._monotonic = monotonic_start
        self._wall_ms = float(WALL_START_MS + wall_offset_ms)
        self._since = loop.time()
        self._wall_ms += self._since * 1000
        self._drift = drift

    def monotonic(self) -> float:
        return self._monotonic + self._elapsed()

    def wall_ms(self) -> int:
        return int(self._wall_ms + self._elapsed() * 1000)

    def jump(self, wall_ms: int) -> None:
        """Move the wall clock, forward or back."""
        self._wall_ms += wall_ms
        self._loop.trace.record(b"jump", self._loop.time(), wall_ms)

    def set_drift(self, drift: float) -> None:
        """From now on it gains so many seconds every second; less than one may be lost, for time never moves back."""
        assert drift > -1.0, "a clock that stands still or runs backwards"
        elapsed = self._elapsed()
        self._monotonic += elapsed
        self._wall_ms += elapsed * 1000
        self._since = self._loop.time()
        self._drift = drift
        self._loop.trace.record(b"drif", self._loop.time(), round(drift * 1e9))

    def _elapsed(self) -> float:
        return (self._loop.time() - self._since) * (1.0 + self._drift)
