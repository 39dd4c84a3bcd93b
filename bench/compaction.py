"""How fast a log is compacted: updates of few keys, cleaned by Strandline and by Apache Kafka's own cleaner, in turn.

    python -m bench.compaction [--numba PYTHON] [--json FILE]

The same log, written once, lies before each: about a million records of a hundred bytes over a thousand keys. Both run what their
brokers run, `log.compaction.job.run` and Kafka's `Cleaner.clean`, without a broker around it, and several times: a JVM, and numba,
need a few rounds until they are as fast as in a process that lives long. What counts is the CPU time of the whole process while it
cleans, garbage collector and compiler included, in the best of the rounds.

Always true: what is left is counted and must be the last value of each key in both.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table
from tests.judges.java import JudgeMissing, find_kafka

from strandline.config.topic_config import TopicConfig
from strandline.log.compaction.job import run
from strandline.log.compaction.planning import plan
from strandline.log.recovery import load
from strandline.records.batch import BatchBuilder
from strandline.runtime.disk import FileDisk

RECORDS, KEYS, BATCH_RECORDS = 1_000_000, 1000, 100
VALUE_BYTES = 80
SEGMENT_BYTES = 64 << 20
ROUNDS = 5
TARGET, NUMBA_TARGET = 0.2, 0.5
DIRECTORY = "compacted-0"
CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(SEGMENT_BYTES), "min.cleanable.dirty.ratio": "0"}
RUN_TIMEOUT_S = 600

CLEAN_JAVA = """
import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class Clean {
    public static void main(String[] directories) throws Exception {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        var scheduler = new KafkaScheduler(1);
        scheduler.startup();
        var properties = new Properties();
        properties.put("cleanup.policy", "compact");
        properties.put("segment.bytes", "%d");
        for (String directory : directories) {
            var log = UnifiedLog.create(new File(directory), new LogConfig(properties), 0L, 0L, scheduler,
                new BrokerTopicStats(), Time.SYSTEM, 300000, new ProducerStateManagerConfig(86400000, false), 600000,
                new LogDirFailureChannel(1), true, Optional.empty());
            log.updateHighWatermark(log.logEndOffset());
            var throttler = new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM);
            var cleaner = new Cleaner(0, new SkimpyOffsetMap(128 << 20), 524288, 1048588, 0.9, throttler, Time.SYSTEM, p -> { });
            long end = log.activeSegment().baseOffset();
            long cpu = system.getProcessCpuTime(), began = System.nanoTime();
            var stats = cleaner.clean(new LogToClean(log, 0L, end, false)).getValue();
            long cpuUsed = system.getProcessCpuTime() - cpu, took = System.nanoTime() - began;
            System.out.println("{\\"cpu_s\\": " + cpuUsed / 1e9 + ", \\"wall_s\\": " + took / 1e9
                + ", \\"records_read\\": " + stats.messagesRead() + ", \\"records_written\\": " + stats.messagesWritten() + "}");
            log.close();
        }
        System.exit(0);
    }
}
"""


class Round(NamedTuple):
    cpu_s: float
    wall_s: float
    records_read: int
    records_written: int


class CannotMeasure(Exception):
    pass


def write_log(root: Path, records: int) -> Path:
    """A log whose closed segments hold that many updates, and an empty segment that is written to."""
    disk = FileDisk()
    directory = root / DIRECTORY
    log = load(disk, str(directory), TopicConfig.build(overrides=CONFIG), clean=True, now_ms=_now_ms()).log
    value = bytearray(VALUE_BYTES)
    for first in range(0, records, BATCH_RECORDS):
        builder = BatchBuilder()
        for number in range(first, min(first + BATCH_RECORDS, records)):
            value[:8] = b"%08d" % number
            builder.append(b"key-%04d" % (number * 7919 % KEYS), bytes(value), timestamp=_now_ms())
        log.append_own(bytearray(builder.build()), 0, _now_ms())
    log.roll(_now_ms())
    log.close_clean()
    disk.close()
    return directory


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def clean_ours(directory: Path, rounds: int) -> list[Round]:
    """What the cleaner's child process does, several times; nothing is put in place, so each time it is the same."""
    disk = FileDisk()
    log = load(disk, str(directory), TopicConfig.build(overrides=CONFIG), clean=True, now_ms=_now_ms()).log
    measured = []
    for _ in range(rounds):
        job = plan(log, None, log.log_end_offset, _now_ms()).job
        assert job is not None, "it is all dirty"
        cpu_s, began = time.process_time(), time.perf_counter()
        cleaned = run(disk, lambda size_bytes: None, job)
        cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - began
        measured.append(Round(cpu_s, wall_s, cleaned.records_read, cleaned.records_written))
    return measured


def measure_ours(python: str, directory: Path, rounds: int, *, with_numba: bool) -> list[Round]:
    """In a process of that Python, with our own packages."""
    setting = "" if with_numba else "import sys; sys.modules['numba'] = None; "
    program = f"{setting}from bench import compaction; compaction.work({str(directory)!r}, {rounds})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return _told([python, "-c", program], environment)


def work(directory: str, rounds: int) -> None:
    for one in clean_ours(Path(directory), rounds):
        print(json.dumps(one._asdict()))


def measure_kafka(directory: Path, rounds: int) -> list[Round]:
    kafka = find_kafka()
    source = directory.parent / "Clean.java"
    source.write_text(CLEAN_JAVA % SEGMENT_BYTES)
    copies = []
    for number in range(rounds):
        # What was cleaned is put in place there, so each round has a log of its own.
        copies.append(directory.parent / f"round-{number}" / DIRECTORY)
        shutil.copytree(directory, copies[-1])
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    command = [kafka.java, "-Xmx1g", "-XX:+UseG1GC", level, "-cp", kafka.classpath, str(source), *map(str, copies)]
    try:
        return _told(command, dict(os.environ))
    finally:
        for copy in copies:
            shutil.rmtree(copy.parent)


def _told(command: list[str], environment: dict[str, str]) -> list[Round]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    if done.returncode:
        raise CannotMeasure(f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr[-2000:]}")
    return [Round(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]


def has_numba(python: str) -> bool:
    return subprocess.run([python, "-c", "import numba"], capture_output=True, check=False).returncode == 0


@click.command()
@click.option("--records", type=click.IntRange(min=KEYS), default=RECORDS, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=ROUNDS, show_default=True)
@click.option(
    "--numba", "numba_python", default=sys.executable, help="A Python that has numba. [default: this one, if so]"
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers here.")
def main(records: int, rounds: int, numba_python: str, json_file: Path | None) -> None:
    """Clean the same log with Strandline, without and with numba, and with Apache Kafka."""
    console = Console()
    measured: dict[str, list[Round]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="bench-compaction-") as temporary:
            directory = write_log(Path(temporary), records)
            size = sum(path.stat().st_size for path in directory.glob("*.log"))
            console.print(f"{records:,} records over {KEYS:,} keys, {size / 1e6:.0f} MB, {rounds} rounds each")
            measured["Strandline"] = measure_ours(sys.executable, directory, rounds, with_numba=False)
            if has_numba(numba_python):
                measured["Strandline with numba"] = measure_ours(numba_python, directory, rounds, with_numba=True)
            else:
                console.print("numba is not installed there: measured without it only")
            measured["Apache Kafka"] = measure_kafka(directory, rounds)
    except (CannotMeasure, JudgeMissing, OSError, subprocess.TimeoutExpired) as error:
        console.print(f"could not measure: {error}", markup=False, style="red")
        sys.exit(1)
    for name, found in measured.items():
        assert {one.records_written for one in found} == {KEYS}, f"{name} kept {found}"
    console.print(_table(measured, size))
    if json_file is not None:
        results = {name: [one._asdict() for one in found] for name, found in measured.items()}
        json_file.write_text(json.dumps({"records": records, "bytes": size, "measured": results}, indent=2) + "\n")


def _table(measured: dict[str, list[Round]], size: int) -> Table:
    table = Table("", "CPU-s, best", "MB per CPU-s", "of Kafka's", "target", "first round, CPU-s", "wall s, best")
    best = {name: min(one.cpu_s for one in found) for name, found in measured.items()}
    targets: dict[str, Any] = {"Strandline": TARGET, "Strandline with numba": NUMBA_TARGET}
    for name, found in measured.items():
        share = best["Apache Kafka"] / best[name]
        target = targets.get(name)
        table.add_row(
            name,
            f"{best[name]:.2f}",
            f"{size / 1e6 / best[name]:.0f}",
            "" if target is None else f"{share:.2f}",
            "" if target is None else f"{target} {'holds' if share >= target else 'is missed'}",
            f"{found[0].cpu_s:.2f}",
            f"{min(one.wall_s for one in found):.2f}",
        )
    return table


if __name__ == "__main__":
    main()
