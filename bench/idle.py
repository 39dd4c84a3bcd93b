"""Idle partitions: what they cost three nodes that replicate them, on Strandline and on Apache Kafka in turn.

    python -m bench.idle                      # 1,000 partitions, replication factor 3, measured for 30 s
    python -m bench.idle --only ours --json numbers.json

Always true: no client is connected while the clock runs, every replica is in sync, and what creating the partitions cost is over
before it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.table import Table
from tests.judges.java import JudgeMissing

from bench.clusters import START, TITLES, CannotStart, Cluster, Name, wanted
from bench.processes import cpu_s, resident_mb, settle

NODES = 3
PARTITIONS, PARTITIONS_PER_TOPIC = 1000, 100
SECONDS = 30.0
CALM_S = 10.0
"""After creating them: ISR changes and the checkpoints of offsets are written for a while."""
STEP_S_MAX = 180.0
POLL_S = 0.2
TARGET_PERCENT = 3.0


@dataclass(frozen=True, slots=True)
class Measured:
    """In the order of node ids; percent of one core."""

    percent: tuple[float, ...]
    percent_empty: tuple[float, ...]
    """Before there was any partition."""
    resident_mib: tuple[float, ...]
    resident_mib_empty: tuple[float, ...]


class NotServed(Exception):
    """The partitions were not there in time."""


@click.command()
@click.option("--only", type=click.Choice(["ours", "kafka"]), help="Measure only one of the two.")
@click.option("--partitions", type=click.IntRange(1), default=PARTITIONS, show_default=True)
@click.option("--seconds", type=click.FloatRange(1), default=SECONDS, show_default=True, help="How long to watch.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(only: Name | None, partitions: int, seconds: float, json_file: Path | None) -> None:
    """Measure what idle partitions cost each node of Strandline and of Apache Kafka."""
    console = Console()
    measured: dict[Name, Measured] = {}
    try:
        for name in wanted(only, console):
            with console.status(f"{TITLES[name]}: {partitions:,} idle partitions"), START[name](NODES) as cluster:
                measured[name] = _measure(cluster, partitions, seconds)
    except (CannotStart, JudgeMissing, KafkaException, NotServed, OSError, RuntimeError) as error:
        console.print(f"could not measure: {error}", markup=False, style="red")
        sys.exit(1)
    console.print(_table(measured, f"{partitions:,} idle partitions, replication factor {NODES}, {seconds:g} s"))
    if json_file is not None:
        conditions = {"nodes": NODES, "replication_factor": NODES, "partitions": partitions, "seconds": seconds}
        numbers = {name: asdict(each) for name, each in measured.items()}
        json_file.write_text(json.dumps({"conditions": conditions, "clusters": numbers}, indent=2) + "\n")


def _measure(cluster: Cluster, partitions: int, seconds: float) -> Measured:
    settle(cluster.pids)
    percent_empty, resident_empty = _watch(cluster, seconds)
    _create(cluster, partitions)
    time.sleep(CALM_S)
    settle(cluster.pids)
    percent, resident = _watch(cluster, seconds)
    return Measured(percent, percent_empty, resident, resident_empty)


def _watch(cluster: Cluster, seconds: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Percent of a core and MiB, of each node."""
    before, began = [cpu_s([pid]) for pid in cluster.pids], time.monotonic()
    time.sleep(seconds)
    used = [cpu_s([pid]) - earlier for pid, earlier in zip(cluster.pids, before, strict=True)]
    watched_s = time.monotonic() - began
    return tuple(100 * each / watched_s for each in used), tuple(resident_mb([pid]) for pid in cluster.pids)


def _create(cluster: Cluster, partitions: int) -> None:
    """Returns when every replica of every partition is in sync. The client goes with this function."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    counts = {
        f"idle-{first // PARTITIONS_PER_TOPIC:03}": min(PARTITIONS_PER_TOPIC, partitions - first)
        for first in range(0, partitions, PARTITIONS_PER_TOPIC)
    }
    new = [NewTopic(topic, count, NODES) for topic, count in counts.items()]
    for future in admin.create_topics(new, request_timeout=STEP_S_MAX).values():
        future.result(STEP_S_MAX)
    deadline = time.monotonic() + STEP_S_MAX
    while (ready := _in_sync(admin, counts)) < partitions:
        if time.monotonic() > deadline:
            raise NotServed(f"{cluster.name}: {ready} of {partitions} partitions in sync after {STEP_S_MAX:.0f} s")
        time.sleep(POLL_S)


def _in_sync(admin: AdminClient, topics: Mapping[str, int]) -> int:
    known = admin.list_topics(timeout=STEP_S_MAX).topics
    partitions = [part for topic in topics if topic in known for part in known[topic].partitions.values()]
    return sum(part.leader > 0 and len(part.isrs) == NODES for part in partitions)


def _table(measured: Mapping[Name, Measured], title: str) -> Table:
    result = Table(title=title)
    result.add_column("")
    nodes = [f"node {node}" for node in range(1, NODES + 1)]
    for heading in (*nodes, "target"):
        result.add_column(heading, justify="right")
    for name, each in measured.items():
        for label, values, digits, target in (
            ("% of a core without any", each.percent_empty, 2, ""),
            ("% of a core", each.percent, 2, _verdict(each) if name == "ours" else ""),
            ("memory without any, MiB", each.resident_mib_empty, 0, ""),
            ("memory, MiB", each.resident_mib, 0, ""),
        ):
            result.add_row(f"{TITLES[name]}, {label}", *(f"{value:,.{digits}f}" for value in values), target)
    return result


def _verdict(measured: Measured) -> str:
    holds = max(measured.percent) <= TARGET_PERCENT
    return f"<= {TARGET_PERCENT:g} " + ("[green]holds[/]" if holds else "[red]missed[/]")


if __name__ == "__main__":
    main()
