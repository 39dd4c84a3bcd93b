"""The timers of a shard, by key.

Always true: a key has one timer; scheduling it again replaces it; a cancelled one never fires.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from itertools import count

from strandline.coordinator.result import Callback

TimerKey = tuple[Hashable, ...]
GARBAGE_MIN = 64
"""So many cancelled or replaced timers may stay in the heap."""


class CoordinatorTimers:
    def __init__(self) -> None:
        self._heap: list[tuple[float, int, TimerKey]] = []
        self._due: dict[TimerKey, tuple[float, int, Callback]] = {}
        self._order = count()

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._due

    def __len__(self) -> int:
        return len(self._due)

    def schedule(self, key: TimerKey, at_s: float, callback: Callback) -> None:
        """Have `callback` called at this monotonic time, instead of what the key stood for."""
        order = next(self._order)
        self._due[key] = (at_s, order, callback)
        heapq.heappush(self._heap, (at_s, order, key))
        if len(self._heap) > 2 * len(self._due) + GARBAGE_MIN:
            self._heap = [(when, number, name) for name, (when, number, _) in self._due.items()]
            heapq.heapify(self._heap)

    def cancel(self, key: TimerKey) -> None:
        self._due.pop(key, None)

    def clear(self) -> None:
        self._heap.clear()
        self._due.clear()

    @property
    def next_s(self) -> float | None:
        """When the next one is due."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def take(self, now: float) -> Callback | None:
        """The next callback that is due by now, which is no longer scheduled."""
        self._drop_stale()
        if not self._heap or self._heap[0][0] > now:
            return None
        key = heapq.heappop(self._heap)[2]
        return self._due.pop(key)[2]

    def _drop_stale(self) -> None:
        heap, due = self._heap, self._due
        while heap:
            scheduled = due.get(heap[0][2])
            if scheduled is not None and scheduled[1] == heap[0][1]:
                return
            heapq.heappop(heap)
