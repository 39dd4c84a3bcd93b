"""An executor, a partition's leader and the driver are killed while a topic is copied to a topic and to Parquet.

The executor goes as the first rows arrive, the driver when each stream was last seen amid a batch. After each harm both finish
several more, so that many begin where another ended. In the end no row is missing on either side, and Parquet has none twice.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from strandline.client.blocking import Admin, Client, Consumer, ConsumerConfig
from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import KafkaError
from strandline.ids import TopicPartition
from tests.judges.java import find_java, or_skip
from tests.soak import times
from tests.system.load import EAGER, leaders, make_topic
from tests.system.local import Cluster, up
from tests.system.server import eventually

SOURCE, SINK = "source", "sink"
REPLICAS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
STREAMS = ("to-topic", "to-parquet")
"""The pipeline's name for a stream, for its group and for its checkpoint's directory."""
ROWS_AT_ONCE, ROWS_A_SECOND, ROWS_MAX = 6_000, 10, 60_000
"""A dozen micro-batches that are full, then a trickle that even a slow machine keeps up with."""
PATIENCE_S = 150
"""Two cores hold three nodes, a driver and two executors."""
MORE_BATCHES = times(2, 8)
"""How many each stream has to finish after each of the three harms before it counts as going on."""


class Feeder:
    """Numbers, one a row, many at once and then at a steady rate, until told to stop."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, **EAGER})
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._feed)
        self.count = 0

    def _feed(self) -> None:
        self._send(ROWS_AT_ONCE)
        while self.count < ROWS_MAX and not self._enough.wait(5 / ROWS_A_SECOND):
            self._send(5)

    def _send(self, rows: int) -> None:
        for _ in range(rows):
            self._producer.produce(SOURCE, b"%d" % self.count, key=b"%d" % (self.count % 100))
            self.count += 1
        self._producer.poll(0)

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._enough.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


class Driver:
    """The pipeline's process and all that it starts."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._log = directory / "driver.log"
        command = [
            sys.executable,
            "-m",
            "tests.system.spark.copy_program",
            "copy",
            bootstrap,
            SOURCE,
            SINK,
            str(directory),
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def executors(self) -> list[psutil.Process]:
        found = psutil.Process(self._process.pid).children(recursive=True)
        return [each for each in found if any("CoarseGrainedExecutorBackend" in word for word in _words(each))]

    def check(self) -> None:
        assert self._process.poll() is None, f"the driver ended:\n{self._log.read_text(errors='replace')[-4000:]}"

    def kill(self) -> None:
        everybody = psutil.Process(self._process.pid).children(recursive=True)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        for each in everybody:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(everybody, 30)


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up(tmp_path_factory.mktemp("kills"), 3) as cluster:
        cluster.await_brokers()
        yield cluster


@pytest.mark.timeout(900)
def test_no_row_is_missing_and_parquet_has_none_twice(cluster: Cluster, tmp_path: Path) -> None:
    or_skip(find_java)
    for topic in (SOURCE, SINK):
        make_topic(cluster, topic, REPLICAS)
    driver = Driver(cluster.bootstrap, tmp_path)
    with Client(cluster.bootstrap) as client, Feeder(cluster.bootstrap) as feeder:

        def has_rows() -> bool:
            driver.check()
            return sum(ends(client, SINK).values()) > 0

        def are_amid() -> bool:
            driver.check()
            return all(is_amid(tmp_path / each) for each in STREAMS)

        def goes_on(after: str) -> None:
            marks = {each: finished(tmp_path / each) + MORE_BATCHES for each in STREAMS}

            def is_further() -> bool:
                driver.check()
                return all(finished(tmp_path / each) >= marks[each] for each in STREAMS)

            eventually(is_further, f"more batches after {after}", PATIENCE_S)

        try:
            eventually(has_rows, "the first rows of the first batch", PATIENCE_S)

            driver.executors()[0].kill()
            goes_on("an executor was killed")

            leader = leaders(cluster.bootstrap, SOURCE)[0]
            cluster.kill(leader)
            goes_on("a partition's leader was killed")
            cluster.restart(leader)

            eventually(are_amid, "both are amid a batch", PATIENCE_S)
            driver.kill()
            driver = Driver(cluster.bootstrap, tmp_path)
            goes_on("the driver was killed")

            feeder.stop()
            for stream in STREAMS:
                eventually(functools.partial(has_no_lag, client, stream), f"{stream} is through", PATIENCE_S)
        finally:
            driver.kill()

        expected = set(range(feeder.count))
        assert values(client, SINK) >= expected
    in_parquet = subprocess.run(
        [sys.executable, "-m", "tests.system.spark.copy_program", "read", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    ).stdout
    assert json.loads(in_parquet) == sorted(expected)


def finished(checkpoint: Path) -> int:
    """How many micro-batches of a stream are done."""
    return _last(checkpoint / "commits") + 1


def is_amid(checkpoint: Path) -> bool:
    """A micro-batch of a stream has begun and is not finished."""
    return _last(checkpoint / "offsets") > _last(checkpoint / "commits")


def _last(log: Path) -> int:
    """The number of its last micro-batch; Spark deletes old ones after a while."""
    return max((int(each.name) for each in log.glob("[0-9]*")), default=-1)


def ends(client: Client, topic: str) -> dict[TopicPartition, int]:
    return Consumer(client).end_offsets([(topic, each) for each in range(len(REPLICAS))])


def has_no_lag(client: Client, group: str) -> bool:
    """As `strandline groups describe` would tell it."""
    committed = Admin(client).list_group_offsets({group: None})[group]
    if isinstance(committed, KafkaError):
        return False
    offsets = {each: found.offset for each, found in committed.items() if isinstance(found, OffsetAndMetadata)}
    return offsets == ends(client, SOURCE)


def values(client: Client, topic: str) -> set[int]:
    """Every value in the topic, as a number."""
    until = ends(client, topic)
    consumer = Consumer(client, ConsumerConfig(auto_offset_reset="earliest", max_poll_records=10_000))
    consumer.assign(until)
    found: set[int] = set()
    while any(consumer.position(*partition) < end for partition, end in until.items()):
        found.update(int(record.value or b"-1") for record in consumer.poll(1))
    consumer.close()
    return found
