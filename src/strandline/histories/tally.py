"""What a search has found so far.

Always true: it is as large after a million seeds as after a thousand: of those that hold only sums and least values are
kept, of those that fail the first ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.histories.coverage import Coverage
from strandline.histories.outcome import HistoryOutcome

FAILED_KEPT = 100


@dataclass(slots=True)
class HistoryMinima:
    """The least of each over all seeds that held: one that fails ends early."""

    virtual_s: float
    faults: int
    operations: int


@dataclass(slots=True)
class Tally:
    seeds: int = 0
    failed: int = 0
    failures: list[HistoryOutcome] = field(default_factory=list)
    """The first of them, without what happened."""
    virtual_s: float = 0.0
    faults: int = 0
    operations: int = 0
    acknowledged: int = 0
    coverage: Coverage = field(default_factory=Coverage)
    least: HistoryMinima | None = None

    def add(self, outcome: HistoryOutcome) -> None:
        self.seeds += 1
        self.virtual_s += outcome.virtual_s
        self.faults += len(outcome.faults)
        self.operations += outcome.operations
        self.acknowledged += outcome.acknowledged
        self.coverage.update(outcome.coverage)
        if outcome.problems:
            self.failed += 1
            if len(self.failures) < FAILED_KEPT:
                self.failures.append(outcome)
        else:
            self._note_least(outcome)

    def _note_least(self, outcome: HistoryOutcome) -> None:
        least = self.least or HistoryMinima(outcome.virtual_s, len(outcome.faults), outcome.operations)
        least.virtual_s = min(least.virtual_s, outcome.virtual_s)
        least.faults = min(least.faults, len(outcome.faults))
        least.operations = min(least.operations, outcome.operations)
        self.least = least

    def __str__(self) -> str:
        return f"{self.seeds} seeds, {self.failed} failed"
