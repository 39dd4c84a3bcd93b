"""Many topics: created, described, and there again after a restart, on Strandline and on Apache Kafka in turn.

    python -m bench.metadata                     # three nodes each, 1,000 topics of 10 partitions
    python -m bench.metadata --only ours --json numbers.json

Always true: a step has ended only when every broker shows its result, so a controller that answers before all brokers
know the result gains nothing.
"""

from __future__ import annotations

import json
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.table import Table
from tests.judges.java import JudgeMissing

from bench.clusters import START, CannotStart, Cluster, Name, wanted
from bench.processes import cpu_s, resident_mb, settle

TOPICS, PARTITIONS, NODES = 1000, 10, 3
TOPICS_PER_REQUEST = 100
"""Kafka decides at most 10,000 records at a time."""
DESCRIBE_ROUNDS = 7
STEP_S_MAX = 300.0
POLL_S = 0.02
METADATA, VERSION = 3, 1
_EVERYTHING = struct.pack(">ihhihi", 14, METADATA, VERSION, 1, -1, -1)


@dataclass(frozen=True, slots=True)
class Measured:
    """Times are wall time; memory is of one node, on average."""

    start_s: float
    idle_mib: float
    create_s: float
    create_cpu_s: float
    describe_ms: float
    describe_cpu_ms: float
    loaded_mib: float
    reload_s: float
    reloaded_mib: float


LABELS: Mapping[str, tuple[str, int]] = {
    "start_s": ("start, s", 2),
    "idle_mib": ("memory of an idle node, MiB", 0),
    "create_s": ("create all, s", 2),
    "create_cpu_s": ("create all, server cpu s", 2),
    "describe_ms": ("describe all, ms", 1),
    "describe_cpu_ms": ("describe all, server cpu ms", 1),
    "loaded_mib": ("memory of a node with them, MiB", 0),
    "reload_s": ("restart until all are served, s", 2),
    "reloaded_mib": ("memory of a node after that, MiB", 0),
}


class NotServed(Exception):
    """A cluster did not show what it had promised; says what."""


@click.command()
@click.option("--only", type=click.Choice(["ours", "kafka"]), help="Measure only one of the two.")
@click.option("--topics", type=click.IntRange(1), default=TOPICS, show_default=True)
@click.option("--partitions", type=click.IntRange(1), default=PARTITIONS, show_default=True, help="Of each topic.")
@click.option("--nodes", type=click.IntRange(1), default=NODES, show_default=True, help="Nodes of each cluster.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(only: Name | None, topics: int, partitions: int, nodes: int, json_file: Path | None) -> None:
    """Measure what many topics cost Strandline and Apache Kafka."""
    console = Console()
    measured: dict[Name, Measured] = {}
    try:
        for name in wanted(only, console):
            measured[name] = _measure(name, nodes, topics, partitions)
    except (CannotStart, JudgeMissing, KafkaException, NotServed, OSError, RuntimeError, TimeoutError) as error:
        console.print(f"could not measure: {error}", markup=False, style="red")
        sys.exit(1)
    console.print(_table(measured, f"{topics:,} topics of {partitions} partitions, {nodes} nodes"))
    if json_file is not None:
        conditions = {"topics": topics, "partitions": partitions, "nodes": nodes}
        numbers = {name: asdict(each) for name, each in measured.items()}
        json_file.write_text(json.dumps({"conditions": conditions, "clusters": numbers}, indent=2) + "\n")


def _measure(name: Name, nodes: int, topics: int, partitions: int) -> Measured:
    with tempfile.TemporaryDirectory(prefix="metadata-bench-", ignore_cleanup_errors=True) as directory:
        with START[name](nodes, Path(directory) / "cluster") as cluster:
            settle(cluster.pids)
            idle = resident_mb(cluster.pids) / nodes
            cpu_before, began = cpu_s(cluster.pids), time.monotonic()
            _create(cluster, topics, partitions)
            _await_topics(cluster, topics)
            create_s, create_cpu = time.monotonic() - began, cpu_s(cluster.pids) - cpu_before
            settle(cluster.pids)
            describe_ms, describe_cpu_ms = _describe(cluster)
            loaded = resident_mb(cluster.pids) / nodes
        # The time from the command until every broker has them all: what it takes beyond the start is added to it.
        with START[name](nodes, Path(directory) / "cluster") as again:
            began = time.monotonic()
            _await_topics(again, topics)
            reload_s = again.start_s + time.monotonic() - began
            settle(again.pids)
            reloaded = resident_mb(again.pids) / nodes
    return Measured(
        cluster.start_s, idle, create_s, create_cpu, describe_ms, describe_cpu_ms, loaded, reload_s, reloaded
    )


def _create(cluster: Cluster, topics: int, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for first in range(0, topics, TOPICS_PER_REQUEST):
        numbers = range(first, min(first + TOPICS_PER_REQUEST, topics))
        new = [NewTopic(f"topic-{number:05}", partitions, 1) for number in numbers]
        for future in admin.create_topics(new, request_timeout=STEP_S_MAX).values():
            future.result(STEP_S_MAX)


def _await_topics(cluster: Cluster, topics: int) -> None:
    """Until every broker shows all of them."""
    for address in cluster.bootstrap.split(","):
        _until(partial(_knows, address, topics), f"{address} knows {topics} topics")


def _knows(address: str, topics: int) -> bool:
    return _topics_known(_ask(address)) >= topics


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + STEP_S_MAX
    while not holds():
        if time.monotonic() > deadline:
            raise NotServed(f"{what}: not within {STEP_S_MAX:.0f} s")
        time.sleep(POLL_S)


def _describe(cluster: Cluster) -> tuple[float, float]:
    """Milliseconds of one Metadata answer with everything in it: on the clock, and of the servers' CPU."""
    address = cluster.bootstrap.split(",")[0]
    times = []
    cpu_before = cpu_s(cluster.pids)
    for _ in range(DESCRIBE_ROUNDS):
        began = time.monotonic()
        _ask(address)
        times.append((time.monotonic() - began) * 1000)
    return statistics.median(times), (cpu_s(cluster.pids) - cpu_before) * 1000 / DESCRIBE_ROUNDS


def _ask(address: str) -> bytes:
    """A Metadata answer about everything, not read any further, so that only the server's work is measured."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=STEP_S_MAX) as connection:
        connection.sendall(_EVERYTHING)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _receive(connection, size)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(min(1 << 20, size - len(received)))
        if not chunk:
            raise ConnectionError("closed before the answer was complete")
        received += chunk
    return bytes(received)


def _topics_known(reply: bytes) -> int:
    """The count that stands behind the correlation id, the brokers and the controller's id."""
    (brokers,) = struct.unpack_from(">i", reply, 4)
    position = 8
    for _ in range(brokers):
        position = _after_string(reply, position + 4)
        position = _after_string(reply, position + 4)
    (topics,) = struct.unpack_from(">i", reply, position + 4)
    return int(topics)


def _after_string(reply: bytes, position: int) -> int:
    (size,) = struct.unpack_from(">h", reply, position)
    return position + 2 + max(0, int(size))


def _table(measured: Mapping[Name, Measured], title: str) -> Table:
    table = Table(title=title)
    table.add_column("")
    for heading in ("Strandline", "Kafka", "ratio"):
        table.add_column(heading, justify="right")
    for key, (label, digits) in LABELS.items():
        values = {name: getattr(each, key) for name, each in measured.items()}
        shown = [f"{values[name]:,.{digits}f}" if name in values else "-" for name in ("ours", "kafka")]
        known = len(values) == len(START) and values["kafka"] > 0
        table.add_row(label, *shown, f"{values['ours'] / values['kafka']:.3g}" if known else "-")
    return table


if __name__ == "__main__":
    main()
