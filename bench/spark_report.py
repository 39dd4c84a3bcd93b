"""What the Spark runs say: medians, ratios to Spark's own connector, targets, and the table and file that show them.

Always true: a number without its counterpart is shown, but no ratio and no verdict is made up for it.
"""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.table import Table

from bench.clusters import TITLES, Name
from bench.spark_queries import Contender, Kind, Timed

CONTENDERS: Mapping[Contender, str] = {"jvm": "JVM connector", "ours": "ours", "ceiling": "ceiling"}
KINDS: Mapping[Kind, str] = {"batch": "batch read", "stream": "stream read", "write": "write"}
RATIO_MIN: Mapping[Kind, float] = {"batch": 3.0, "stream": 3.0, "write": 1.5}
"""Of our rows per second to those of the JVM connector."""
FIRST_RATIO_MAX = 1.5
COLD_S_MAX = 5.0


class Load(NamedTuple):
    cluster: Name
    size: int
    kind: Kind
    rows: int


class First(NamedTuple):
    """A first query in a fresh process."""

    session_s: float
    query_s: float


@dataclass(slots=True)
class Measured:
    loads: dict[Load, dict[Contender, list[Timed]]] = field(default_factory=dict)
    first: dict[tuple[Name, Kind], dict[str, list[First]]] = field(default_factory=dict)
    """By `jvm`, `ours` (its machine code is cached) and `cold` (it is not)."""

    def rate(self, load: Load, contender: Contender, *, of: Callable[[Timed], float] | None = None) -> float | None:
        """Rows per second, median."""
        samples = self.loads[load].get(contender)
        seconds = of or operator.attrgetter("seconds")
        return load.rows / statistics.median(map(seconds, samples)) if samples else None

    def ratio(self, load: Load, *, of: Callable[[Timed], float] | None = None) -> float | None:
        ours, theirs = self.rate(load, "ours", of=of), self.rate(load, "jvm", of=of)
        return ours / theirs if ours and theirs else None

    def first_s(self, at: tuple[Name, Kind], which: str) -> First | None:
        """Medians."""
        samples = self.first[at].get(which)
        return First(*(statistics.median(column) for column in zip(*samples, strict=True))) if samples else None


def throughput(measured: Measured) -> Table:
    result = Table(title="million rows/s, medians")
    result.add_column("", no_wrap=True)
    for heading in (*CONTENDERS.values(), "ours / JVM", "target", "ours / ceiling", "spread"):
        result.add_column(heading, justify="right")
    for load in sorted(measured.loads, key=lambda each: (each.cluster, each.size, list(KINDS).index(each.kind))):
        spread = max(map(_spread, measured.loads[load].values()))
        target = _verdict(f">= {RATIO_MIN[load.kind]:g}", measured.ratio(load), operator.ge, RATIO_MIN[load.kind])
        title = f"{TITLES[load.cluster]}, {load.size:,} B, {KINDS[load.kind]}"
        result.add_row(title, *_rates(measured, load, None, target), f"{spread:.2f}")
        if load.kind == "stream":
            result.add_row("  its batches alone", *_rates(measured, load, operator.attrgetter("batch_seconds"), ""), "")
    return result


def _rates(measured: Measured, load: Load, of: Callable[[Timed], float] | None, target: str) -> list[str]:
    rates = {contender: measured.rate(load, contender, of=of) for contender in CONTENDERS}
    of_ceiling = rates["ours"] / rates["ceiling"] if rates["ours"] and rates["ceiling"] else None
    shown = ["-" if rate is None else f"{rate / 1e6:.3f}" for rate in rates.values()]
    return [*shown, _number(measured.ratio(load, of=of)), target, _number(of_ceiling)]


def first_batch(measured: Measured) -> Table:
    result = Table(title="first query of a fresh process, seconds, medians")
    result.add_column("", no_wrap=True)
    for heading in ("JVM connector", "ours", "ours / JVM", "target", "ours, cold", "more", "target"):
        result.add_column(heading, justify="right")
    for at in sorted(measured.first):
        cluster, kind = at
        jvm, ours, cold = (measured.first_s(at, which) for which in ("jvm", "ours", "cold"))
        ratio = ours.query_s / jvm.query_s if ours and jvm else None
        more = sum(cold) - sum(ours) if cold and ours else None
        result.add_row(
            f"{TITLES[cluster]}, {KINDS[kind]}",
            *("-" if each is None else f"{each.query_s:.2f}" for each in (jvm, ours)),
            _number(ratio),
            _verdict(f"<= {FIRST_RATIO_MAX:g}", ratio, operator.le, FIRST_RATIO_MAX),
            "-" if cold is None else f"{cold.query_s:.2f}",
            _number(more),
            _verdict(f"<= {COLD_S_MAX:g}", more, operator.le, COLD_S_MAX),
        )
    return result


def as_json(measured: Measured, conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Everything, single samples included, so that a run can be judged again later."""
    loads = [
        {
            **load._asdict(),
            "rows_per_s": {each: measured.rate(load, each) for each in samples},
            "ratio": measured.ratio(load),
            "ratio_of_batches": measured.ratio(load, of=operator.attrgetter("batch_seconds")),
            "samples": {each: [timed._asdict() for timed in timings] for each, timings in samples.items()},
        }
        for load, samples in measured.loads.items()
    ]
    first = [
        {
            "cluster": cluster,
            "kind": kind,
            "samples": {which: [each._asdict() for each in found] for which, found in samples.items()},
        }
        for (cluster, kind), samples in measured.first.items()
    ]
    return {"conditions": dict(conditions), "loads": loads, "first": first}


def _spread(samples: Sequence[Timed]) -> float:
    """Largest over smallest: how much to trust the median."""
    seconds = [sample.seconds for sample in samples]
    return max(seconds) / min(seconds)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _verdict(target: str, value: float | None, holds: Callable[[float, float], bool], bound: float) -> str:
    if value is None:
        return target
    return f"{target} [green]holds[/]" if holds(value, bound) else f"{target} [red]missed[/]"
