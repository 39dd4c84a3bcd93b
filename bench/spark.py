"""Topics as Spark sources and sinks: ours beside Spark's own Kafka connector and the ceiling, in one run and one Spark session.

    python -m bench.spark                               # on one node of ours; 25 minutes on two idle cores
    python -m bench.spark --quick                       # a first impression
    python -m bench.spark --cluster ours --cluster kafka --json numbers.json

The contenders take turns, and every other round begins with the other end, so that other work on the machine affects
all of them alike. Always true: what each of them reads is checked once, what they write is counted each time; no step
takes more than five minutes.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from confluent_kafka import KafkaException
from rich.console import Console
from tests.judges.java import JudgeMissing
from tests.judges.spark import find_connector

from bench import spark_report as report
from bench.clusters import START, TITLES, CannotStart, Cluster, Name
from bench.load import LoadFailed
from bench.processes import settle
from bench.spark_process import SparkFailed, SparkProcess, spark_process
from bench.spark_queries import Contender, Kind, Query
from bench.spark_topics import fill, written_once

ROWS: Mapping[int, int] = {100: 4_000_000, 1000: 4_000_000}
WRITTEN_SHARE = 4
"""Of the rows that are read, one in so many is written: it takes the JVM connector as long."""
QUICK_SHARE = 8
FIRST_TOPIC, FIRST_ROWS, FIRST_SIZE = "first", 10_000, 100
WARM_UPS, ROUNDS, FIRST_ROUNDS = 2, 5, 5
QUICK_WARM_UPS, QUICK_ROUNDS, QUICK_FIRST_ROUNDS = 1, 2, 1
SETTINGS = {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
CACHES = ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
"""Where compiled kernels are kept. Empty directories in their place make a machine that has never run them."""


@click.command()
@click.option("--quick", is_flag=True, help="Fewer and smaller loads: a first impression.")
@click.option("--cluster", "names", type=click.Choice(["ours", "kafka"]), multiple=True, default=["ours"])
@click.option(
    "--contender", "contenders", type=click.Choice(list(report.CONTENDERS)), multiple=True, help="[default: all]"
)
@click.option("--kind", "kinds", type=click.Choice(list(report.KINDS)), multiple=True, help="[default: all]")
@click.option("--size", "sizes", type=click.Choice([str(size) for size in ROWS]), multiple=True, help="[default: all]")
@click.option("--rounds", type=click.IntRange(min=0), help=f"Measured queries of each kind. [default: {ROUNDS}]")
@click.option("--first-rounds", type=click.IntRange(min=0), help=f"Fresh processes of each. [default: {FIRST_ROUNDS}]")
@click.option(
    "--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting of Spark, for all contenders alike."
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(
    quick: bool,
    names: Sequence[Name],
    contenders: Sequence[Contender],
    kinds: Sequence[Kind],
    sizes: Sequence[str],
    rounds: int | None,
    first_rounds: int | None,
    pairs: Sequence[str],
    json_file: Path | None,
) -> None:
    """Measure rows per second and the time to the first batch. Ends with 0 whether or not the targets hold."""
    contenders, kinds = contenders or tuple(report.CONTENDERS), kinds or tuple(report.KINDS)
    share = QUICK_SHARE if quick else 1
    rows = {size: count // share for size, count in ROWS.items() if not sizes or str(size) in sizes}
    rounds = (QUICK_ROUNDS if quick else ROUNDS) if rounds is None else rounds
    first_rounds = (QUICK_FIRST_ROUNDS if quick else FIRST_ROUNDS) if first_rounds is None else first_rounds
    warm_ups = (QUICK_WARM_UPS if quick else WARM_UPS) if rounds else 0
    console = Console()
    measured = report.Measured()
    # Ended from outside, it must not leave a cluster and a JVM behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        settings = SETTINGS | {"spark.jars": find_connector().spark_jars} | dict(pair.split("=", 1) for pair in pairs)
        with contextlib.ExitStack() as stack:
            temporary = tempfile.TemporaryDirectory(prefix="strandline-bench-spark-", ignore_cleanup_errors=True)
            directory = Path(stack.enter_context(temporary))
            clusters = [stack.enter_context(_cluster(name, rows if rounds else {}, console)) for name in names]
            if rounds:
                loads = [_load(name, size, kind, rows[size]) for size in rows for kind in kinds for name in names]
                with spark_process(settings, directory) as spark:
                    _measure(spark, clusters, loads, contenders, warm_ups, rounds, measured, console)
            if first_rounds:
                _measure_first(clusters, contenders, first_rounds, settings, directory, measured, console)
    except (CannotStart, JudgeMissing, LoadFailed, SparkFailed, KafkaException, OSError) as error:
        console.print(f"could not measure: {error}", markup=False, style="red")
        sys.exit(1)
    if measured.loads:
        console.print(report.throughput(measured))
    if measured.first:
        console.print(report.first_batch(measured))
    if json_file is not None:
        conditions: dict[str, Any] = {
            "settings": {name: value for name, value in settings.items() if name != "spark.jars"},
            "warm_ups": warm_ups,
            "rounds": rounds,
            "first_rounds": first_rounds,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        json_file.write_text(json.dumps(report.as_json(measured, conditions), indent=2) + "\n")


@contextlib.contextmanager
def _cluster(name: Name, rows: Mapping[int, int], console: Console) -> Iterator[Cluster]:
    """One node, with the topics filled."""
    with START[name](1) as cluster:
        for topic, count, size in (
            (FIRST_TOPIC, FIRST_ROWS, FIRST_SIZE),
            *((_topic(size), count, size) for size, count in rows.items()),
        ):
            with console.status("") as status:

                def report_filled(done: int, what: str = f"{TITLES[name]}: filling {topic}, {{}} of {count:,}") -> None:
                    status.update(what.format(f"{done:,}"))

                fill(cluster.bootstrap, topic, count, size, report_filled)
            console.print(
                f"{TITLES[name]}: {topic} has {count:,} records of {size:,} bytes", highlight=False, soft_wrap=True
            )
        yield cluster


def _measure(
    spark: SparkProcess,
    clusters: Sequence[Cluster],
    loads: Sequence[report.Load],
    contenders: Sequence[Contender],
    warm_ups: int,
    rounds: int,
    measured: report.Measured,
    console: Console,
) -> None:
    by_name = {cluster.name: cluster for cluster in clusters}
    pids = [pid for cluster in clusters for pid in cluster.pids]
    for load in loads:
        for contender in contenders:
            if load.kind == "batch":
                spark.check(_query(load, contender, by_name, 0))
    for turn in range(warm_ups + rounds):
        stage = f"warm-up {turn + 1}" if turn < warm_ups else f"round {turn + 1 - warm_ups}"
        for load in loads:
            lines = []
            settle(pids)
            for contender in contenders if turn % 2 == 0 else reversed(contenders):
                query = _query(load, contender, by_name, turn)
                if load.kind == "write" and contender != "ceiling":
                    with written_once(query.bootstrap, query.topic, query.rows):
                        settle(pids, query.rows * query.size)
                        timed = spark.run(query)
                else:
                    timed = spark.run(query)
                lines.append(f"{report.CONTENDERS[contender]} {query.rows / timed.seconds / 1e6:.3f} M")
                if turn >= warm_ups:
                    measured.loads.setdefault(load, {}).setdefault(contender, []).append(timed)
            title = f"{stage}, {TITLES[load.cluster]}, {load.size:,} B, {report.KINDS[load.kind]}"
            console.print(f"{title}: {', '.join(lines)} rows/s", highlight=False, soft_wrap=True)


def _measure_first(
    clusters: Sequence[Cluster],
    contenders: Sequence[Contender],
    rounds: int,
    settings: Mapping[str, str],
    directory: Path,
    measured: report.Measured,
    console: Console,
) -> None:
    which_ones = [
        *(each for each in ("jvm", "ours") if each in contenders),
        *(["cold"] if "ours" in contenders else []),
    ]
    pids = [pid for cluster in clusters for pid in cluster.pids]
    kinds: tuple[Kind, ...] = ("stream", "batch")
    for turn in range(1 + rounds):
        for cluster in clusters:
            for kind in kinds:
                lines = []
                for which in which_ones if turn % 2 == 0 else reversed(which_ones):
                    contender: Contender = "jvm" if which == "jvm" else "ours"
                    query = Query(kind, contender, cluster.bootstrap, FIRST_TOPIC, FIRST_ROWS, FIRST_SIZE)
                    settle(pids)
                    with (
                        _caches(directory, is_empty=which == "cold") as environ,
                        spark_process(settings, directory, environ) as spark,
                    ):
                        found = report.First(spark.session_s, spark.run(query).seconds)
                    if turn:
                        measured.first.setdefault((cluster.name, kind), {}).setdefault(which, []).append(found)
                    lines.append(f"{which} {found.query_s:.2f} s (session {found.session_s:.2f} s)")
                stage = f"first query, round {turn}" if turn else "first query, warm-up"
                title = f"{stage}, {TITLES[cluster.name]}, {report.KINDS[kind]}"
                console.print(f"{title}: {', '.join(lines)}", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _caches(directory: Path, is_empty: bool) -> Iterator[dict[str, str]]:
    if not is_empty:
        yield {}
        return
    with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as empty:
        yield dict.fromkeys(CACHES, empty)


def _load(cluster: Name, size: int, kind: Kind, rows: int) -> report.Load:
    return report.Load(cluster, size, kind, rows // WRITTEN_SHARE if kind == "write" else rows)


def _query(load: report.Load, contender: Contender, clusters: Mapping[Name, Cluster], turn: int) -> Query:
    topic = _topic(load.size)
    if load.kind == "write":
        # Never the same one twice: a producer that the JVM connector keeps asks for its topic again, and so brings it back.
        topic = f"{topic}-{contender}-{turn}"
    return Query(load.kind, contender, clusters[load.cluster].bootstrap, topic, load.rows, load.size)


def _topic(size: int) -> str:
    return f"rows-{size}"


if __name__ == "__main__":
    main()
