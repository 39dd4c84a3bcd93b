"""How a history ended, and what is needed to report it.

Always true: no problems means that it came to its end and everything that must hold held.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from strandline.histories.coverage import Coverage

UNDER_FAULTS = "liveness under faults"
"""The property of what must come about while faults go on. It is judged only where none of them is left out: a
nemesis may wait for what only a fault brings about."""


class InjectedFault(NamedTuple):
    """A fault as it was injected. Its number is the same in every run of the seed, also where others are left out."""

    number: int
    at: float
    kind: str
    what: str

    def __str__(self) -> str:
        return f"#{self.number} at {self.at:.3f} s: {self.kind} {self.what}"


class Problem(NamedTuple):
    """A property that did not hold."""

    property: str
    at: float
    what: str

    def __str__(self) -> str:
        return f"{self.property} at {self.at:.3f} s: {self.what}"


class TranscriptLine(NamedTuple):
    """Something that happened, as a person reads it."""

    at: float
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.at:10.4f}  {self.who:<9}{self.what}"


@dataclass(slots=True)
class HistoryOutcome:
    seed: int
    setting: str
    """The cluster, its configuration and what may be promised of it, in a line."""
    nemeses: list[str]
    problems: list[Problem]
    trace_hash: str
    virtual_s: float
    operations: int
    """What clients asked for: sends, polls, administration."""
    acknowledged: int
    faults: list[InjectedFault] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    transcript: list[TranscriptLine] = field(default_factory=list)
