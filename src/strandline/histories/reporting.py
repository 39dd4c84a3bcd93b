"""Reports of a history and its failure: one line per event, and for a failure the property, the moment and the fewest
faults.

Always true: events come in the order of their virtual times; a fault has its number, by which it can be left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from strandline.histories.fault_numbers import written
from strandline.histories.outcome import UNDER_FAULTS, HistoryOutcome
from strandline.histories.shrink import SmallestFaultSet

EVENT, FAULT, PROBLEM = "event", "fault", "problem"


class HistoryEvent(NamedTuple):
    at: float
    who: str
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.at:10.4f}  {self.who:<10}{self.what}"


def events(outcome: HistoryOutcome) -> Iterator[HistoryEvent]:
    """What happened, the faults and the problems, as one sequence; of the same moment in this order."""
    happened = [HistoryEvent(line.at, line.who, EVENT, line.what) for line in outcome.transcript]
    faults = [
        HistoryEvent(fault.at, f"fault {fault.number}", FAULT, f"{fault.kind} {fault.what}") for fault in outcome.faults
    ]
    problems = [
        HistoryEvent(problem.at, "judge", PROBLEM, f"VIOLATES {problem.property}: {problem.what}")
        for problem in outcome.problems
    ]
    return heapq.merge(happened, faults, problems, key=lambda event: event.at)


def beginning(outcome: HistoryOutcome) -> Iterator[str]:
    yield f"seed {outcome.seed}: {outcome.setting}"
    if outcome.nemeses:
        yield f"nemeses: {', '.join(outcome.nemeses)}"


def ending(outcome: HistoryOutcome) -> Iterator[str]:
    yield (
        f"{outcome.virtual_s:.1f} virtual seconds, {len(outcome.faults)} faults, "
        f"{outcome.operations} operations, {outcome.acknowledged} acknowledged"
    )
    yield f"trace {outcome.trace_hash}"


def failure(outcome: HistoryOutcome) -> Iterator[str]:
    for problem in outcome.problems:
        yield f"seed {outcome.seed} failed: {problem}"
    if outcome.problems and outcome.trace_hash and not outcome.faults:
        yield "  before any fault"


def smallest(found: SmallestFaultSet, faults_before: int) -> Iterator[str]:
    """What shrinking came to, and the command that plays just that."""
    if found.problem is None:
        if found.failed_property == UNDER_FAULTS:
            yield f"  {UNDER_FAULTS} is judged only with all faults: none can be left out"
        else:
            yield "  it did not fail when it was played again: what it does does not come from the seed alone"
        yield f"  again: {command(found.seed)}"
        return
    least = (
        "the smallest set of faults that still fails" if found.complete else "the fewest faults found that still fail"
    )
    yield f"  {least}: {len(found.faults)} of {faults_before}, after {found.runs} runs"
    for fault in found.faults:
        yield f"    {fault}"
    yield f"  then {found.problem}"
    yield f"  again: {command(found.seed, found.without)}"


def command(seed: int, without: frozenset[int] = frozenset()) -> str:
    return f"strandline sim --seed {seed}" + (f" --without {written(without)}" if without else "")
