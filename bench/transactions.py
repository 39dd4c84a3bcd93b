"""Transactions of 100 records, on Strandline and on Apache Kafka in turns of one run.

    python -m bench.transactions                    # 5 rounds of 8 s each, four producers, three nodes, replication factor 3
    python -m bench.transactions --only ours --json numbers.json

Each producer is librdkafka with a transactional id and a thread of its own. A transaction writes 100 records of 100 bytes to two of
six partitions and commits; its latency is that of the commit, from the call to its return. Always true: every transaction that is
counted was committed, and what it cost is the CPU time of all nodes together while they were counted.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from tests.judges.java import JudgeMissing

from bench.clusters import START, TITLES, CannotStart, Cluster, Name, wanted
from bench.processes import cpu_s, settle

NODES, PRODUCERS, RECORDS, RECORD_BYTES = 3, 4, 100, 100
TOPIC, PARTITIONS, PARTITIONS_PER_TRANSACTION = "transacted", 6, 2
ROUNDS, SECONDS, WARM_UP_S = 5, 8.0, 3.0
TIMEOUT_S = 60.0
TARGET_CPU, TARGET_P99 = 4.0, 0.5


@dataclass(slots=True)
class TransactionSamples:
    """One value for each round."""

    per_cpu_s: list[float] = field(default_factory=list)
    per_s: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)


class TransactionLoad:
    """Producers that commit one transaction after the other, until they are stopped."""

    def __init__(self, cluster: Cluster) -> None:
        self.commit_s: list[float] = []
        self.failures: list[Exception] = []
        self._cluster = cluster
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(PRODUCERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _run(self, number: int) -> None:
        try:
            self._transact(number)
        except Exception as error:
            self.failures.append(error)

    def _transact(self, number: int) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "transactional.id": f"bench-{number}",
                "linger.ms": 0,
                "log_level": 0,
            }
        )
        producer.init_transactions(TIMEOUT_S)
        value, count = b"x" * RECORD_BYTES, 0
        while not self._is_over.is_set():
            producer.begin_transaction()
            for record in range(RECORDS):
                partition = (number + count + record % PARTITIONS_PER_TRANSACTION) % PARTITIONS
                producer.produce(TOPIC, value, partition=partition)
            producer.flush(TIMEOUT_S)
            began = time.monotonic()
            producer.commit_transaction(TIMEOUT_S)
            self.commit_s.append(time.monotonic() - began)
            count += 1


def run_round(cluster: Cluster, seconds: float, samples: TransactionSamples) -> None:
    load = TransactionLoad(cluster)
    try:
        time.sleep(WARM_UP_S)
        before, first, began = cpu_s(cluster.pids), len(load.commit_s), time.monotonic()
        time.sleep(seconds)
        used, watched_s = cpu_s(cluster.pids) - before, time.monotonic() - began
        latencies = sorted(load.commit_s[first:])
    finally:
        load.stop()
    assert len(latencies) > 1, "no transaction was committed"
    samples.per_cpu_s.append(len(latencies) / used)
    samples.per_s.append(len(latencies) / watched_s)
    samples.p50_ms.append(1000 * statistics.median(latencies))
    samples.p99_ms.append(1000 * latencies[int(0.99 * (len(latencies) - 1))])


@click.command()
@click.option("--only", type=click.Choice(["ours", "kafka"]), help="Measure only one of the two.")
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True)
@click.option("--seconds", type=click.FloatRange(1), default=SECONDS, show_default=True, help="Of each round.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(only: Name | None, rounds: int, seconds: float, json_file: Path | None) -> None:
    """Measure transactions on Strandline and on Apache Kafka."""
    console = Console()
    samples: dict[Name, TransactionSamples] = {}
    try:
        with contextlib.ExitStack() as stack, Progress(console=console, transient=True) as progress:
            clusters = {name: stack.enter_context(START[name](NODES)) for name in wanted(only, console)}
            bar = progress.add_task("transactions", total=rounds * len(clusters))
            for cluster in clusters.values():
                admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
                admin.create_topics([NewTopic(TOPIC, PARTITIONS, NODES)])[TOPIC].result(TIMEOUT_S)
            pids = [pid for cluster in clusters.values() for pid in cluster.pids]
            for turn in range(rounds):
                for name, cluster in list(clusters.items())[:: 1 if turn % 2 else -1]:
                    settle(pids)
                    run_round(cluster, seconds, samples.setdefault(name, TransactionSamples()))
                    progress.advance(bar)
    except (CannotStart, JudgeMissing, KafkaException, OSError, TimeoutError) as error:
        console.print(f"could not measure: {error!r}", markup=False, style="red")
        sys.exit(1)
    console.print(_table(samples))
    if json_file is not None:
        numbers = {
            name: {key: getattr(each, key) for key in TransactionSamples.__slots__} for name, each in samples.items()
        }
        json_file.write_text(json.dumps(numbers, indent=2) + "\n")


def _table(samples: Mapping[Name, TransactionSamples]) -> Table:
    title = f"{PRODUCERS} producers, {RECORDS} records of {RECORD_BYTES} bytes in a transaction, {NODES} nodes; medians"
    table = Table(title=title)
    for heading in ("", *(TITLES[name] for name in samples), "ratio", "target"):
        table.add_column(heading, justify="right" if heading else "left")
    rows = (
        ("transactions / server cpu s", "per_cpu_s", f">= {TARGET_CPU:g}"),
        ("transactions / s", "per_s", ""),
        ("commit p50, ms", "p50_ms", ""),
        ("commit p99, ms", "p99_ms", f"<= {TARGET_P99:g}"),
    )
    for label, key, target in rows:
        values = {name: statistics.median(getattr(each, key)) for name, each in samples.items()}
        ratio = f"{values['ours'] / values['kafka']:.2f}" if len(values) == 2 else ""
        table.add_row(label, *(f"{value:,.2f}" for value in values.values()), ratio, target)
    return table


if __name__ == "__main__":
    main()
