"""Kafka's replication throttles: a rate of bytes, measured over a few windows, and the replicas that it binds.

Always true: a throttle never stops what was recorded, it only says that the rate is above its limit; the rate is what the
windows hold over the time they span, which is taken as at least one window, so that the first bytes do not look like a flood.
"""

from __future__ import annotations

from collections import deque

ALL = "*"
PAUSE_S_MIN = 0.01


class Throttle:
    """`limit` in bytes a second, None for none. It may be changed at any time; what was recorded stays."""

    __slots__ = ("_bytes", "_window_s", "_windows", "_windows_max", "limit")

    def __init__(self, limit: int | None = None, windows_max: int = 11, window_s: float = 1.0) -> None:
        self.limit = limit
        self._windows_max = windows_max
        self._window_s = window_s
        self._windows: deque[list[float]] = deque()
        """When it began, when something was last recorded in it, and how many bytes."""
        self._bytes = 0.0

    def record(self, size_bytes: int, now: float) -> None:
        windows = self._windows
        if not windows or now - windows[-1][0] >= self._window_s:
            windows.append([now, now, 0.0])
            self._drop(now)
        window = windows[-1]
        window[1] = now
        window[2] += size_bytes
        self._bytes += size_bytes

    def rate(self, now: float) -> float:
        """Bytes a second."""
        self._drop(now)
        return self._bytes / self._span_s(now) if self._windows else 0.0

    def is_over(self, now: float) -> bool:
        return self.limit is not None and self.rate(now) > self.limit

    def pause_s(self, now: float) -> float:
        """How long until it is worth asking again; at most a window, since old windows leave at their own time."""
        if not self.is_over(now):
            return 0.0
        if not self.limit:
            return self._window_s
        return min(max(self._bytes / self.limit - self._span_s(now), PAUSE_S_MIN), self._window_s)

    def _span_s(self, now: float) -> float:
        return max(now - self._windows[0][0], self._window_s)

    def _drop(self, now: float) -> None:
        """Forget windows in which nothing happened for so long that all of them together are past it."""
        windows = self._windows
        while windows and now - windows[0][1] >= self._windows_max * self._window_s:
            self._bytes -= windows.popleft()[2]


def is_throttled(replicas: tuple[str, ...], index: int, broker_id: int) -> bool:
    """Whether a topic's list (`partition:broker`, or `*` for all) names this replica."""
    return bool(replicas) and (ALL in replicas or f"{index}:{broker_id}" in replicas)
