"""The worker pools of simulated processes: as much offloaded work at once as a directory has workers.

Always true: at most `WORKERS_MAX` of a process run for one directory that has workers of its own, and as many for all else; what it
computes has `COMPUTING_MAX` workers that wait for no device. The others begin in the order in which they came, one as each ends. A
process that died leaves nothing to its successor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from strandline.ports import COMPUTING_MAX, WORKERS_MAX
from strandline.sim.context import SimProcess

COMPUTING = "computing"
"""Stands for no directory."""


class Workers:
    def __init__(self) -> None:
        self._directories: dict[str, None] = {"/": None}
        self._busy: dict[tuple[SimProcess, str], int] = {}
        self._waiting: dict[tuple[SimProcess, str], deque[Callable[[], None]]] = {}

    def dedicate(self, path: str) -> None:
        self._directories[path] = None

    def begin(self, process: SimProcess, path: str, start: Callable[[], None]) -> Callable[[], None]:
        """Call `start` as soon as a worker is free; what is returned is to be called when the work has ended."""
        return self._begin((process, self._directory(path)), WORKERS_MAX, start)

    def begin_computing(self, process: SimProcess, start: Callable[[], None]) -> Callable[[], None]:
        """The same for work that takes no disk."""
        return self._begin((process, COMPUTING), COMPUTING_MAX, start)

    def _begin(self, place: tuple[SimProcess, str], workers_max: int, start: Callable[[], None]) -> Callable[[], None]:
        if self._busy.get(place, 0) < workers_max:
            self._busy[place] = self._busy.get(place, 0) + 1
            start()
        else:
            self._waiting.setdefault(place, deque()).append(start)
        return lambda: self._end(place)

    def _end(self, place: tuple[SimProcess, str]) -> None:
        waiting = self._waiting.get(place)
        if waiting:
            following = waiting.popleft()
            if not waiting:
                del self._waiting[place]
            following()
            return
        self._busy[place] -= 1
        if not self._busy[place]:
            del self._busy[place]

    def _directory(self, path: str) -> str:
        directory = path or "/"
        while directory not in self._directories:
            directory = directory.rpartition("/")[0] or "/"
        return directory
