"""From the faults of a failing history to the smallest set that still fails.

Halves are left out, then quarters, and so on, as delta debugging does (Zeller's ddmin); what is left out stays out once
one of the same properties fails without it. Faults that would come after the failure are left out from the beginning.

Always true: what is found was played and did fail in a property that had failed; with `complete`, leaving out any one
more of its faults does not. Never more than `runs_max` histories are played.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from strandline.histories.fault_numbers import all_but
from strandline.histories.outcome import HistoryOutcome, InjectedFault, Problem
from strandline.histories.worker_pool import HistoryTask, WorkerPool

RUNS_MAX = 150
Kept = tuple[int, ...]


@dataclass(slots=True)
class SmallestFaultSet:
    seed: int
    problem: Problem | None
    """As it is met with these faults only; none: the seed did not fail again."""
    failed_property: str
    faults: list[InjectedFault]
    runs: int
    complete: bool

    @property
    def without(self) -> frozenset[int]:
        return all_but(fault.number for fault in self.faults)


def shrink(
    failed: HistoryOutcome,
    pool: WorkerPool,
    *,
    runs_max: int = RUNS_MAX,
    go_on: Callable[[int, int], bool] = lambda runs, left: True,
) -> SmallestFaultSet:
    """`go_on` hears after every few runs how many there were and how many faults are left, and says whether to go
    on."""
    search = _Search(failed, pool, runs_max, go_on)
    found = search.run()
    if found is None:
        return SmallestFaultSet(failed.seed, None, failed.problems[0].property, [], search.runs, False)
    problem = next(problem for problem in found.problems if problem.property in search.properties)
    return SmallestFaultSet(failed.seed, problem, problem.property, found.faults, search.runs, search.is_complete)


class _Search:
    def __init__(
        self, failed: HistoryOutcome, pool: WorkerPool, runs_max: int, go_on: Callable[[int, int], bool]
    ) -> None:
        self._seed = failed.seed
        self.properties = {problem.property for problem in failed.problems}
        self._numbers = tuple(fault.number for fault in failed.faults)
        self._pool = pool
        self._runs_max = runs_max
        self._go_on = go_on
        self._tried: dict[Kept, None] = {}
        self.best: HistoryOutcome | None = None
        self.runs = 0
        self.is_complete = False

    def run(self) -> HistoryOutcome | None:
        if self._first_failing([self._numbers]) and not self._first_failing([()]):
            self._narrow()
        elif self.best is not None:
            self.is_complete = True
        return self.best

    def _narrow(self) -> None:
        parts = 2
        while len(kept := self._kept()) > 1:
            parts = min(parts, len(kept))
            if self._first_failing(_parts(kept, parts)):
                parts = 2
            elif self._first_failing(_all_but_one_part(kept, parts)):
                parts = max(parts - 1, 2)
            elif parts < len(kept) and self.runs < self._runs_max:
                parts *= 2
            else:
                break
        self.is_complete = self.runs < self._runs_max

    def _kept(self) -> Kept:
        assert self.best is not None
        return tuple(fault.number for fault in self.best.faults)

    def _first_failing(self, candidates: Sequence[Kept]) -> bool:
        """Whether one of these fails: then it is the best so far. The first in their order, whichever is played
        sooner."""
        new = [kept for kept in dict.fromkeys(candidates) if kept not in self._tried]
        for some in _few(new, self._pool.jobs):
            some = some[: self._runs_max - self.runs]
            if not some:
                break
            self._tried.update(dict.fromkeys(some))
            self.runs += len(some)
            tasks = [HistoryTask(self._seed, all_but(kept)) for kept in some]
            outcomes = dict(self._pool.play(tasks))
            failing = [outcomes[task] for task in tasks if self._fails(outcomes[task])]
            if failing:
                self.best = failing[0]
            left = len(self._numbers if self.best is None else self.best.faults)
            if not self._go_on(self.runs, left):
                self._runs_max = self.runs
            if failing:
                return True
        return False

    def _fails(self, outcome: HistoryOutcome) -> bool:
        return any(problem.property in self.properties for problem in outcome.problems)


def _parts(kept: Kept, count: int) -> list[Kept]:
    edges = [len(kept) * number // count for number in range(count + 1)]
    return [kept[start:end] for start, end in itertools.pairwise(edges)]


def _all_but_one_part(kept: Kept, count: int) -> list[Kept]:
    return [tuple(number for number in kept if number not in part) for part in _parts(kept, count)]


def _few(candidates: Sequence[Kept], count: int) -> Iterator[Sequence[Kept]]:
    for start in range(0, len(candidates), count):
        yield candidates[start : start + count]
