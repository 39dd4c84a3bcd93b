"""What happened in a history, one line each: virtual time, who, what.

Always true: a line is a fact that was observed, in the order in which it was; writing one changes nothing in the world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline.histories.outcome import Line

__all__ = ["WORLD", "Line", "Transcript"]

WORLD = "world"
"""Who does what no node does: cuts, kills, heals."""


class Transcript:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.lines: list[Line] = []

    def note(self, who: str, what: str) -> None:
        self.lines.append(Line(self._now(), who, what))

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))
