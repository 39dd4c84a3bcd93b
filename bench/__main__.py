"""`make bench`: the same load against Strandline and Apache Kafka, in turn, so that what the machine does hits both.

Ends with 0 whether or not the targets hold, and with 1 only if it could not measure.
"""

from __future__ import annotations

import contextlib
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from confluent_kafka import KafkaException
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tests.judges.java import JudgeMissing

from bench import report
from bench.clusters import START, TITLES, CannotStart, Cluster, Name, wanted
from bench.load import PARTS, LoadFailed, Sample, Size, run_load
from bench.processes import resident_mb, settle

WARM_UPS, ROUNDS = 3, 5
QUICK_WARM_UPS, QUICK_ROUNDS = 1, 2
RECORDS, QUICK_RECORDS = 500_000, 100_000
LATENCY_RECORDS, QUICK_LATENCY_RECORDS = 2000, 500
SPREAD_NOTED = 1.3


@click.command()
@click.option("--quick", is_flag=True, help="Fewer and smaller loads: a first impression in less than a minute.")
@click.option("--only", type=click.Choice(["ours", "kafka"]), help="Measure only one of the two.")
@click.option("--records", type=click.IntRange(min=1000), help=f"Records of 1 KB in one load. [default: {RECORDS}]")
@click.option("--rounds", type=click.IntRange(min=1), help=f"Measured loads on each cluster. [default: {ROUNDS}]")
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True, help="Nodes of each cluster.")
@click.option("--rf", type=click.IntRange(min=1), default=1, show_default=True, help="Replication factor.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(
    quick: bool,
    only: Name | None,
    records: int | None,
    rounds: int | None,
    nodes: int,
    rf: int,
    json_file: Path | None,
) -> None:
    """Measure Strandline and Apache Kafka side by side. The measure that counts is MB per server CPU-second."""
    if rf > nodes:
        raise click.UsageError(f"--rf {rf} needs as many nodes, and there are {nodes}")
    records = records or (QUICK_RECORDS if quick else RECORDS)
    # Small batches cost a server several times as much, replicated ones twice that; fewer of them take as long.
    small_batch_records = records * 2 // 5 if rf == 1 else records // 5
    latency_records = QUICK_LATENCY_RECORDS if quick else LATENCY_RECORDS
    size = Size(records, small_batch_records, latency_records, replication_factor=rf)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    warm_ups = QUICK_WARM_UPS if quick else WARM_UPS
    console = Console()
    try:
        measured = _measure(wanted(only, console), nodes, size, warm_ups, rounds, console)
    except (CannotStart, JudgeMissing, LoadFailed, KafkaException, OSError, RuntimeError) as error:
        console.print(f"could not measure: {error}", markup=False, style="red")
        sys.exit(1)
    targets = report.targets(nodes, rf)
    console.print(report.table(measured, targets))
    if quick and "kafka" in measured:
        console.print("--quick does not give a JVM the three loads it needs before it is fair to compare with it")
    _note_spread(measured, console)
    if json_file is not None:
        conditions: dict[str, Any] = {
            "nodes": nodes,
            "replication_factor": rf,
            "records": size.records,
            "small_batch_records": size.small_batch_records,
            "warm_ups": warm_ups,
            "rounds": rounds,
            "python": platform.python_version(),
        }
        json_file.write_text(json.dumps(report.as_json(measured, targets, conditions), indent=2) + "\n")


def _measure(
    names: list[Name], nodes: int, size: Size, warm_ups: int, rounds: int, console: Console
) -> dict[Name, report.Measured]:
    samples: dict[Name, list[Sample]] = {name: [] for name in names}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with contextlib.ExitStack() as stack, Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("start", total=(warm_ups + rounds) * len(names) * PARTS)
        clusters: dict[Name, Cluster] = {}
        for name in names:
            progress.update(bar, description=f"start {TITLES[name]}")
            clusters[name] = stack.enter_context(START[name](nodes))
        for turn in range(warm_ups + rounds):
            stage = f"warm-up {turn + 1}" if turn < warm_ups else f"round {turn + 1 - warm_ups}"
            # Every other round begins with the other one, so that neither always comes second.
            for name in names if turn % 2 == 0 else reversed(names):

                def step(part: str, title: str = f"{stage}, {TITLES[name]}") -> None:
                    progress.update(bar, advance=1, description=f"{title}: {part}")
                    pids = [pid for cluster in clusters.values() for pid in cluster.pids]
                    settle(pids, size.records * 1000 * size.replication_factor)

                sample = run_load(clusters[name], size, step)
                if turn >= warm_ups:
                    samples[name].append(sample)
        return {
            name: report.Measured(tuple(samples[name]), resident_mb(cluster.pids), cluster.start_s)
            for name, cluster in clusters.items()
        }


def _note_spread(measured: Mapping[Name, report.Measured], console: Console) -> None:
    for name, each in measured.items():
        for measure in report.MEASURES:
            if measure.key.endswith("_per_cpu_s"):
                spread = report.spread(each.samples, measure.key)
                if spread > SPREAD_NOTED:
                    console.print(f"{TITLES[name]}, {measure.label}: samples differ by a factor of {spread:.2f}")


if __name__ == "__main__":
    main()
