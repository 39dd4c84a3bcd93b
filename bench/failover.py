"""A leader that is killed, asked to stop or stands still under load: how long no client is served, and what became of the records.

    python -m bench.failover                                  # all three, on Strandline and on Apache Kafka
    python -m bench.failover --signal KILL --rounds 3 --only ours

Three nodes, replication factor 3, `min.insync.replicas` 2. Every signal is sent in two cases: the leader of the partition is the
active controller too, or it is not. Always true: a round begins with every replica in sync, and the node that was hit is back,
under the same load, before the round ends; a round in which the leader or the controller was not where it should be is not counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal as signals
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tests.judges.java import JudgeMissing

from bench.clusters import START, TITLES, CannotStart, Cluster, Name, wanted
from bench.failover_report import CASES, NO_SIGNAL, SIGNALS, Round, Signal, summarize, table
from bench.probe import active_controller
from bench.processes import is_running
from bench.steady_load import SteadyLoad, longest_gap_ms

NODES = 3
ROUNDS = 5
IN_SYNC_MIN = 2
BEFORE_S, AFTER_S = 3.0, 4.0
STOPPED_S = 10.0
RETURNED_S = 2.0
FLOWS_WITHIN_S = 0.1
ASK_S_MAX = 5.0
STEP_S_MAX = 90.0
POLL_S = 0.05
ATTEMPTS_MAX = 3


class NotServed(Exception):
    """A cluster did not come back to where a round can begin or end; says what was waited for."""


@click.command()
@click.option("--signal", "wanted_signals", type=click.Choice(SIGNALS), multiple=True, help="[default: all of them]")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=ROUNDS, show_default=True, help="Of each signal and case."
)
@click.option("--only", type=click.Choice(["ours", "kafka"]), help="Measure only one of the two.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all rounds here.")
def main(wanted_signals: tuple[Signal, ...], rounds: int, only: Name | None, json_file: Path | None) -> None:
    """Measure the pause that clients see when the leader of their partition is gone."""
    console = Console()
    chosen = wanted_signals or SIGNALS
    measured: list[Round] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        names = wanted(only, console)
        with Progress(*columns, console=console, transient=True) as progress:
            bar = progress.add_task("start", total=len(names) * (1 + len(chosen) * len(CASES) * rounds))
            for name in names:
                progress.update(bar, description=f"start {TITLES[name]}")
                with START[name](NODES) as cluster:
                    for run, title in _rounds(cluster, chosen, rounds):
                        progress.update(bar, description=f"{TITLES[name]}: {title}")
                        measured.append(run())
                        progress.advance(bar)
    except (CannotStart, JudgeMissing, KafkaException, NotServed, OSError, RuntimeError) as error:
        console.print(f"could not measure: {error}", markup=False, style="red")
        sys.exit(1)
    summaries = summarize(measured)
    console.print(table(summaries))
    if json_file is not None:
        conditions = {"nodes": NODES, "replication_factor": NODES, "min_insync_replicas": IN_SYNC_MIN, "rounds": rounds}
        numbers = {
            "conditions": conditions,
            "summaries": [asdict(summary) | {"holds": summary.holds} for summary in summaries],
            "rounds": [asdict(each) for each in measured],
        }
        json_file.write_text(json.dumps(numbers, indent=2) + "\n")


def _rounds(cluster: Cluster, chosen: tuple[Signal, ...], rounds: int) -> Iterator[tuple[Callable[[], Round], str]]:
    """Every round to run, with its title. The first sends no signal: what it shows is the machine, and it warms up a JVM."""
    bench = Failover(cluster)
    yield partial(bench.round, NO_SIGNAL, False), "no signal"
    for number in range(rounds):
        for signal in chosen:
            for also_controller in CASES:
                case = ", the active controller too" if also_controller else ""
                yield partial(bench.round, signal, also_controller), f"round {number + 1}, {signal}{case}"


class Failover:
    """One cluster through all of its rounds. It knows which process is which node, which changes as nodes come back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._pids = cluster.pids
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self._turn = 0

    def round(self, signal: Signal | None, also_controller: bool) -> Round:
        for _ in range(ATTEMPTS_MAX):
            done = self._attempt(signal, also_controller)
            if done is not None:
                return done
        raise NotServed(f"{self._cluster.name}: leader or controller moved by themselves in {ATTEMPTS_MAX} rounds")

    def _attempt(self, signal: Signal | None, also_controller: bool) -> Round | None:
        controller = self._controller()
        leader = controller if also_controller else self._other_than(controller)
        topic = self._create(leader)
        load = SteadyLoad(self._cluster.bootstrap, topic)
        load.start()
        try:
            time.sleep(BEFORE_S)
            self._until(lambda: load.flows(FLOWS_WITHIN_S), "records flow")
            if self._leader(topic) != leader or self._controller() != controller:
                return None
            hit_at = time.perf_counter()
            self._hit(leader, signal, load)
            back_at = time.perf_counter()
            if signal in ("KILL", "TERM"):
                self._pids = self._cluster.revive()
            self._until(lambda: self._in_sync(topic), "every replica is in sync")
            time.sleep(RETURNED_S)
        finally:
            fate = load.end()
            self._admin.delete_topics([topic], operation_timeout=ASK_S_MAX)[topic].result(STEP_S_MAX)
        end = time.perf_counter()
        return Round(
            cluster=self._cluster.name,
            signal=signal,
            also_controller=also_controller,
            node=leader,
            produce_gap_ms=longest_gap_ms(load.acknowledged_at, hit_at, back_at),
            consume_gap_ms=longest_gap_ms(load.read_at, hit_at, back_at),
            produce_return_gap_ms=longest_gap_ms(load.acknowledged_at, back_at, end),
            consume_return_gap_ms=longest_gap_ms(load.read_at, back_at, end),
            fate=fate,
        )

    def _hit(self, node: int, signal: Signal | None, load: SteadyLoad) -> None:
        """Send the signal and wait until clients are served again; the node is still gone, or just awake again."""
        pid = self._pids[node - 1]
        if signal is None:
            time.sleep(AFTER_S)
            return
        os.kill(pid, getattr(signals, f"SIG{signal}"))
        try:
            time.sleep(STOPPED_S if signal == "STOP" else AFTER_S)
        finally:
            if signal == "STOP":
                os.kill(pid, signals.SIGCONT)
        if signal != "STOP":
            self._until(lambda: not is_running(pid), f"node {node} has ended")
        self._until(lambda: load.flows(FLOWS_WITHIN_S), "records flow again")

    def _controller(self) -> int:
        """The active controller, once all brokers name the same one."""
        named: set[int | None] = set()

        def agreed() -> bool:
            named.clear()
            named.update(active_controller(address) for address in self._cluster.addresses)
            return len(named) == 1 and None not in named

        self._until(agreed, "all brokers name one active controller")
        (controller,) = named
        assert controller is not None
        return controller

    def _other_than(self, controller: int) -> int:
        """Another node, each of them in turn."""
        self._turn += 1
        others = [node for node in range(1, NODES + 1) if node != controller]
        return others[self._turn % len(others)]

    def _create(self, leader: int) -> str:
        topic = f"failover-{uuid.uuid4().hex[:8]}"
        others = [node for node in range(1, NODES + 1) if node != leader]
        new = NewTopic(
            topic, 1, replica_assignment=[[leader, *others]], config={"min.insync.replicas": str(IN_SYNC_MIN)}
        )
        self._admin.create_topics([new])[topic].result(STEP_S_MAX)
        self._until(lambda: self._leader(topic) == leader and self._in_sync(topic), f"node {leader} leads {topic}")
        return topic

    def _leader(self, topic: str) -> int:
        return self._admin.list_topics(topic, ASK_S_MAX).topics[topic].partitions[0].leader

    def _in_sync(self, topic: str) -> bool:
        return len(self._admin.list_topics(topic, ASK_S_MAX).topics[topic].partitions[0].isrs) == NODES

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + STEP_S_MAX
        while True:
            # A broker that is asked may be the one that is away, and a topic may not be known everywhere yet.
            with contextlib.suppress(KafkaException, KeyError):
                if holds():
                    return
            if time.monotonic() > deadline:
                raise NotServed(f"{self._cluster.name}: not within {STEP_S_MAX:.0f} s: {what}")
            time.sleep(POLL_S)


if __name__ == "__main__":
    main()
