"""What happened in a history, one line each: virtual time, who, what.

Always true: a line is a fact that was observed, in the order in which it was; writing one changes nothing in the world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from strandline.histories.outcome import TranscriptLine

__all__ = ["WORLD", "TranscriptLine", "Transcript"]

WORLD = "world"
"""Who does what no node does: cuts, kills, heals."""


class Transcript:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.lines: list[TranscriptLine] = []

    def note(self, who: str, what: str) -> None:
        self.lines.append(TranscriptLine(self._now(), who, what))

    def __iter__(self) -> Iterator[TranscriptLine]:
        return iter(self.lines)

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines))
