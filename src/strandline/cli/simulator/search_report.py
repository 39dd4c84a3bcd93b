"""The report of a search of histories: failures, coverage, speed, and the last line `1000 seeds, 0 failed`.

Always true: the text always ends with that line; coverage below the requirement is listed before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import print_json, print_table

if TYPE_CHECKING:
    from strandline.histories.coverage import Coverage
    from strandline.histories.outcome import HistoryOutcome, InjectedFault, Problem
    from strandline.histories.shrink import SmallestFaultSet
    from strandline.histories.tally import Tally

FAILURES_SHOWN_MAX = 10


@dataclass(slots=True)
class SearchReport:
    """The result of a search."""

    tally: Tally
    elapsed_s: float
    """The time of the search, without that of shrinking."""
    smallest: Mapping[int, SmallestFaultSet] = field(default_factory=dict)
    """For failed seeds that were shrunk, the smallest set of faults."""
    lacking: Sequence[str] = ()
    """Requirements that were not met, as text."""

    @property
    def failed(self) -> bool:
        return bool(self.tally.failed or self.lacking)

    @property
    def seeds_per_second(self) -> float:
        return self.tally.seeds / max(self.elapsed_s, 1e-9)

    @property
    def simulated_hours_per_minute(self) -> float:
        return self.tally.virtual_s / 60 / max(self.elapsed_s, 1e-9)


def print_report(report: SearchReport, whole_coverage: bool) -> None:
    from strandline.histories import reporting

    tally = report.tally
    failures = sorted(tally.failures, key=lambda outcome: outcome.seed)
    for outcome in failures[:FAILURES_SHOWN_MAX]:
        _echo(reporting.failure(outcome))
        found = report.smallest.get(outcome.seed)
        _echo(
            reporting.smallest(found, len(outcome.faults)) if found else [f"  again: {reporting.command(outcome.seed)}"]
        )
    if len(failures) > FAILURES_SHOWN_MAX:
        seeds = ", ".join(str(outcome.seed) for outcome in failures[FAILURES_SHOWN_MAX:])
        echo(f"failed too, among others: {seeds}")
    _print_coverage(tally.coverage, whole_coverage)
    echo(
        f"{report.seeds_per_second:.1f} seeds per second, "
        f"{report.simulated_hours_per_minute:.1f} simulated hours per minute"
    )
    echo(f"{tally.faults} faults, {tally.operations} operations, {tally.acknowledged} acknowledged")
    if least := tally.least:
        echo(
            f"each at least {least.virtual_s:.1f} virtual seconds, {least.faults} faults, {least.operations} operations"
        )
    _echo(f"required: {lack}" for lack in report.lacking)
    echo(tally)


def _echo(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        echo(line)


def _print_coverage(coverage: Coverage, whole: bool) -> None:
    if whole:
        print_table(("exercised", "what", "times"), [(*key, times) for key, times in _sorted(coverage)])
        return
    rows = []
    for category, names in _by_category(coverage).items():
        rarest, times = list(names.items())[-1]
        rows.append((category, sum(names.values()), len(names), f"{rarest} {times}"))
    print_table(("exercised", "times", "kinds", "the rarest"), rows)


def _sorted(coverage: Coverage) -> list[tuple[tuple[str, str], int]]:
    return [
        ((category, name), times) for category, names in _by_category(coverage).items() for name, times in names.items()
    ]


def _by_category(coverage: Coverage) -> dict[str, dict[str, int]]:
    from strandline.histories.coverage import CLIENT, ERROR, FAULT, NEMESIS, QUORUM, REPLICA, SNAPSHOT

    known = (FAULT, NEMESIS, QUORUM, REPLICA, SNAPSHOT, CLIENT, ERROR)
    others = sorted({category for category, _ in coverage} - set(known))
    found = {category: dict(coverage.of(category)) for category in (*known, *others)}
    return {category: names for category, names in found.items() if names}


# For machines


def print_report_json(report: SearchReport) -> None:
    tally, least = report.tally, report.tally.least
    print_json(
        {
            "seeds": tally.seeds,
            "failed": tally.failed,
            "lacking": list(report.lacking),
            "elapsed_s": round(report.elapsed_s, 3),
            "seeds_per_second": round(report.seeds_per_second, 3),
            "simulated_hours_per_minute": round(report.simulated_hours_per_minute, 3),
            "virtual_s": round(tally.virtual_s, 3),
            "faults": tally.faults,
            "operations": tally.operations,
            "acknowledged": tally.acknowledged,
            "least": least and {"virtual_s": least.virtual_s, "faults": least.faults, "operations": least.operations},
            "coverage": _by_category(tally.coverage),
            "failures": [
                _failure_json(outcome, report.smallest.get(outcome.seed))
                for outcome in sorted(tally.failures, key=lambda outcome: outcome.seed)
            ],
        }
    )


def _failure_json(outcome: HistoryOutcome, smallest: SmallestFaultSet | None) -> dict[str, object]:
    from strandline.histories.reporting import command

    found: dict[str, object] = {
        "seed": outcome.seed,
        "setting": outcome.setting,
        "problems": [_problem_json(problem) for problem in outcome.problems],
        "faults": [_fault_json(fault) for fault in outcome.faults],
        "trace_hash": outcome.trace_hash,
        "command": command(outcome.seed),
    }
    if smallest is not None:
        found["smallest"] = {
            "problem": smallest.problem and _problem_json(smallest.problem),
            "faults": [_fault_json(fault) for fault in smallest.faults],
            "runs": smallest.runs,
            "complete": smallest.complete,
            "command": command(outcome.seed, smallest.without if smallest.problem else frozenset()),
        }
    return found


def _problem_json(problem: Problem) -> dict[str, object]:
    return {"property": problem.property, "at": problem.at, "what": problem.what}


def _fault_json(fault: InjectedFault) -> dict[str, object]:
    return {"number": fault.number, "at": fault.at, "kind": fault.kind, "what": fault.what}
