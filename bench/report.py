"""What the samples say: medians, ratios ours/Kafka, targets, and the table and file that show them.

Always true: a number without its counterpart is shown, but no ratio and no verdict is made up for it.
"""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from rich.table import Table

from bench.clusters import Name
from bench.load import Sample


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was measured of one cluster."""

    samples: tuple[Sample, ...]
    resident_mb: float
    start_s: float

    def values(self) -> dict[str, float]:
        """One number for each measure: the medians of the samples, and what is measured once."""
        medians = {
            field.name: statistics.median(getattr(sample, field.name) for sample in self.samples)
            for field in fields(Sample)
        }
        return medians | {"resident_mb": self.resident_mb, "start_s": self.start_s}


@dataclass(frozen=True, slots=True)
class Measure:
    key: str
    label: str
    unit: str
    digits: int


MEASURES = (
    Measure("produce_mb_per_cpu_s", "produce 1 KB, default batches", "MB/cpu s", 0),
    Measure("produce_mb_per_s", "", "MB/s", 0),
    Measure("small_batches_mb_per_cpu_s", "produce 1 KB, 16 KB batches", "MB/cpu s", 0),
    Measure("small_batches_mb_per_s", "", "MB/s", 0),
    Measure("consume_mb_per_cpu_s", "consume", "MB/cpu s", 0),
    Measure("consume_mb_per_s", "", "MB/s", 0),
    Measure("ack_p50_ms", "acknowledgement, median", "ms", 2),
    Measure("ack_p99_ms", "acknowledgement, p99", "ms", 2),
    Measure("resident_mb", "memory after the run", "MiB", 0),
    Measure("start_s", "start", "s", 2),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on the ratio ours/Kafka, or on our own number."""

    key: str
    bound: float
    holds: Callable[[float, float], bool]
    is_ratio: bool = True

    def __str__(self) -> str:
        sign = ">=" if self.holds is operator.ge else "<="
        return f"{sign} {self.bound:g}" + ("" if self.is_ratio else " s")


ALONE = (
    Target("produce_mb_per_cpu_s", 1.5, operator.ge),
    Target("small_batches_mb_per_cpu_s", 2.5, operator.ge),
    Target("consume_mb_per_cpu_s", 1.0, operator.ge),
    Target("resident_mb", 1 / 8, operator.le),
    Target("start_s", 1.0, operator.le, is_ratio=False),
)
"""One node."""
REPLICATED = (
    Target("produce_mb_per_cpu_s", 2.5, operator.ge),
    Target("small_batches_mb_per_cpu_s", 4.0, operator.ge),
    Target("consume_mb_per_cpu_s", 1.0, operator.ge),
    Target("ack_p99_ms", 0.7, operator.le),
    Target("resident_mb", 1 / 8, operator.le),
)
"""Three nodes that all have every record."""


def targets(nodes: int, replication_factor: int) -> tuple[Target, ...]:
    """What is promised of such a cluster; of others, nothing is."""
    return {(1, 1): ALONE, (3, 3): REPLICATED}.get((nodes, replication_factor), ())


def ratios(measured: Mapping[Name, Measured]) -> dict[str, float]:
    """Ours over Kafka's, for every measure; nothing if only one of them was measured."""
    if measured.keys() != {"ours", "kafka"}:
        return {}
    ours, kafka = measured["ours"].values(), measured["kafka"].values()
    return {key: ours[key] / kafka[key] for key in ours if kafka[key]}


def verdicts(measured: Mapping[Name, Measured], promised: Sequence[Target]) -> dict[str, bool]:
    """Whether each target holds, for those that were measured."""
    compared = ratios(measured)
    own = measured["ours"].values() if "ours" in measured else {}
    decided = {}
    for target in promised:
        values = compared if target.is_ratio else own
        if target.key in values:
            decided[target.key] = target.holds(values[target.key], target.bound)
    return decided


def table(measured: Mapping[Name, Measured], promised: Sequence[Target]) -> Table:
    result = Table(title="medians")
    for heading in ("", "unit"):
        result.add_column(heading)
    for heading in ("Strandline", "Kafka", "ratio", "target"):
        result.add_column(heading, justify="right")
    values = {name: each.values() for name, each in measured.items()}
    compared, decided = ratios(measured), verdicts(measured, promised)
    by_key = {target.key: target for target in promised}
    for measure in MEASURES:
        numbers = [
            f"{values[name][measure.key]:,.{measure.digits}f}" if name in values else "-" for name in ("ours", "kafka")
        ]
        ratio = f"{compared[measure.key]:.3g}" if measure.key in compared else "-"
        result.add_row(
            measure.label, measure.unit, *numbers, ratio, _verdict(by_key.get(measure.key), decided.get(measure.key))
        )
    return result


def _verdict(target: Target | None, holds: bool | None) -> str:
    if target is None:
        return ""
    return str(target) if holds is None else f"{target} [green]holds[/]" if holds else f"{target} [red]missed[/]"


def as_json(
    measured: Mapping[Name, Measured], promised: Sequence[Target], conditions: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything, single samples included, so that a run can be judged again later."""
    clusters = {
        name: {"medians": each.values(), "samples": [asdict(sample) for sample in each.samples]}
        for name, each in measured.items()
    }
    return {
        "conditions": dict(conditions),
        "clusters": clusters,
        "ratios": ratios(measured),
        "targets": verdicts(measured, promised),
    }


def spread(samples: Sequence[Sample], key: str) -> float:
    """Largest over smallest sample: how much to trust the median."""
    values: list[float] = [getattr(sample, key) for sample in samples]
    return max(values) / min(values)
