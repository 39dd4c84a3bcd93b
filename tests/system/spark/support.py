"""One small Spark in a JVM of its own, and Kafka sources and sinks through either connector.

Always true: when `spark_session` is left its JVM is gone, so that the next one begins with settings of its own; its Python workers
are this Python, whether or not a virtual environment is activated.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bench.kafka_cluster import kafka_cluster
from bench.processes import is_running
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic
from pyspark import SparkContext
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter

from tests.judges import java
from tests.judges import spark as judges
from tests.system.clients import CONFLUENT, Broker, Rec, read_from
from tests.system.load import in_sync, leaders
from tests.system.local import up
from tests.system.server import eventually

Lost = Callable[[int], contextlib.AbstractContextManager[None]]
"""A node is killed, and comes back when this is left."""

BEGIN_MS = 1_700_000_000_000
QUERY_TIMEOUT_S = 60
CORES = 2
STDOUT = "spark.test.stdout"
"""The file that the JVM prints to."""

# Queries here are many and small: the first compiler and few threads serve them best.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "768m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": str(CORES),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@contextlib.contextmanager
def spark_session(directory: Path, **settings: str) -> Iterator[SparkSession]:
    """A Spark with the JVM connector; `settings` are Spark's, with _ for the dots of its names."""
    connector = judges.judge()
    _end_jvm()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", connector.java_home)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_DIRS", str(directory / "local"))
        patch.delenv("SPARK_HOME", raising=False)
        builder: SparkSession.Builder = SparkSession.builder.master(f"local[{CORES}]").appName("strandline")
        chosen = {"spark.jars": connector.spark_jars, "spark.sql.warehouse.dir": str(directory / "warehouse")}
        renamed = {name.replace("_", "."): value for name, value in settings.items()}
        for name, value in (SETTINGS | chosen | renamed).items():
            builder = builder.config(name, value)
        with _stdout_into(directory / "stdout"):
            session = builder.config(STDOUT, str(directory / "stdout")).getOrCreate()
        try:
            yield session
        finally:
            for query in session.streams.active:
                query.stop()
            session.stop()
            _end_jvm()


@contextlib.contextmanager
def _stdout_into(file: Path) -> Iterator[None]:
    """A process that is started meanwhile writes there for good: pytest sees only what goes through its own descriptors."""
    before = os.dup(1)
    with file.open("wb") as output:
        os.dup2(output.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)


def said(spark: SparkSession) -> str:
    """What this Spark's JVM printed."""
    name = spark.conf.get(STDOUT)
    assert name is not None
    return Path(name).read_text()


def _end_jvm() -> None:
    """PySpark keeps its JVM for the next session of this process, with the class path of the first."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    assert SparkContext._active_spark_context is None, "a Spark session was left open"
    process: Any = gateway.proc
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)
    SparkContext._gateway = SparkContext._jvm = None


class Kafka:
    """A cluster of whatever make, as its clients see it."""

    def __init__(self, bootstrap: str, replicas: int = 1, lost: Lost | None = None) -> None:
        self.bootstrap = bootstrap
        self.replicas = replicas
        """As many as there are brokers."""
        self.lost = lost
        self.broker = Broker(bootstrap, None)
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def make_topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        """On all brokers and ready to be used, with a name of its own if none is given."""
        name = name or f"topic-{uuid.uuid4().hex[:10]}"
        kept = {"retention.ms": "-1"}  # the records of these tests are years old
        renamed = kept | {key.replace("_", "."): value for key, value in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, self.replicas, config=renamed)])[name].result(30)
        self.await_partitions(name, partitions)
        return name

    def add_partitions(self, topic: str, partitions: int) -> None:
        """So that there are so many."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        self.await_partitions(topic, partitions)

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(30)
        eventually(lambda: topic not in self.admin.list_topics(timeout=10).topics, f"{topic} is gone", 30)

    @contextlib.contextmanager
    def without_leader(self, topic: str) -> Iterator[None]:
        """The leader of the topic's first partition is killed; at the end it is back, and all replicas are in sync."""
        assert self.lost is not None
        with self.lost(leaders(self.bootstrap, topic)[0]):
            yield
        everyone = list(range(1, self.replicas + 1))

        def all_in_sync() -> bool:
            return all(each == everyone for each in in_sync(self.bootstrap, topic))

        eventually(all_in_sync, f"all replicas of {topic} are in sync", 60)

    def await_partitions(self, topic: str, partitions: int) -> None:
        def has_leaders() -> bool:
            found = self.admin.list_topics(topic, timeout=10).topics[topic].partitions
            return len(found) == partitions and all(each.leader >= 0 for each in found.values())

        eventually(has_leaders, f"leaders of {topic}", 30)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        for deleted in self.admin.delete_records([TopicPartition(topic, partition, before)]).values():
            deleted.result(30)

    def write(self, topic: str, records: Sequence[Rec], codec: str = "none") -> list[int]:
        """By librdkafka; the offset of every record."""
        return asyncio.run(CONFLUENT.write(self.broker, topic, records, codec, idempotent=True))


@contextlib.contextmanager
def strandline_cluster(directory: Path) -> Iterator[Kafka]:
    """Three nodes of ours."""
    with up(directory, 3, 0, "--config", "group.initial.rebalance.delay.ms=0") as cluster:

        @contextlib.contextmanager
        def lost(node_id: int) -> Iterator[None]:
            cluster.kill(node_id)
            yield
            cluster.restart(node_id)

        yield Kafka(cluster.bootstrap, 3, lost)


@contextlib.contextmanager
def apache_cluster(directory: Path) -> Iterator[Kafka]:
    """One node of Apache Kafka: when it is lost, its clients wait until it is back."""
    java.judge()
    with kafka_cluster(1, directory=directory, heap="384M") as cluster:
        pids = list(cluster.pids)

        @contextlib.contextmanager
        def lost(_: int) -> Iterator[None]:
            os.kill(pids[0], signal.SIGKILL)
            eventually(lambda: not is_running(pids[0]), "the node is dead", 30)
            pids[:] = cluster.revive()
            yield

        yield Kafka(cluster.bootstrap, 1, lost)


CLUSTERS = {"strandline": strandline_cluster, "kafka": apache_cluster}


def numbered(first: int, count: int, partitions: int = 1) -> list[Rec]:
    """Records with values 0, 1, 2, …, one second apart, spread over the partitions in turn."""
    return [Rec(n % partitions, b"key %d" % n, b"%d" % n, BEGIN_MS + 1000 * n) for n in range(first, first + count)]


PARTITIONS = 3
COUNT = 300
RECORDS = numbered(0, COUNT, PARTITIONS)
HALF_MS = BEGIN_MS + 1000 * COUNT // 2
"""The time of the first record in their second half."""


def make_numbered_topic(kafka: Kafka) -> str:
    """With RECORDS in it: one each second, in three partitions in turn."""
    name = kafka.make_topic(PARTITIONS)
    kafka.write(name, RECORDS)
    return name


def write_every_kind(kafka: Kafka, topic: str) -> tuple[list[Rec], list[int]]:
    """Null, empty and full keys, values and headers, in a codec for each partition; the records and their offsets."""
    records, offsets = [], []
    for partition, codec in enumerate(CONFLUENT.codecs):
        kinds = [
            Rec(partition, key, value, BEGIN_MS + partition, headers)
            for key in (None, b"", b"key")
            for value in (None, b"", b"\x00\xff" * 500)
            for headers in ((), (("h", b"1"), ("h", None), ("ü", b"")))
        ]
        records += kinds
        offsets += kafka.write(topic, kinds, codec)
    return records, offsets


LOSSES: dict[str, Mapping[str, Any]] = {"fails": {}, "goes on": {"failOnDataLoss": "false"}}
"""What a stream does about records that are gone, and the options that say so."""


def source(
    spark: SparkSession, kafka: Kafka, connector: str, options: Mapping[str, Any], *, streaming: bool = False
) -> DataFrame:
    """What these options of a connector stand for, as a frame that has not been read yet."""
    reader: DataFrameReader | DataStreamReader = spark.readStream if streaming else spark.read
    reader = reader.format(connector).option("kafka.bootstrap.servers", kafka.bootstrap)
    for name, value in options.items():
        reader = reader.option(name, value)
    frame: DataFrame = reader.load()
    return frame


def to_parquet(frame: DataFrame, directory: Path) -> DataStreamWriter:
    """Rows into `rows`, with the checkpoint beside them."""
    writer = frame.writeStream.format("parquet").option("path", str(directory / "rows"))
    return writer.option("checkpointLocation", str(directory / "checkpoint"))


def to_topic(
    frame: DataFrame, kafka: Kafka, connector: str, topic: str, directory: Path, **options: Any
) -> DataStreamWriter:
    writer = frame.writeStream.format(connector).option("kafka.bootstrap.servers", kafka.bootstrap)
    return writer.options(topic=topic, checkpointLocation=str(directory / "checkpoint"), **options)


def stored(spark: SparkSession, directory: Path) -> list[int]:
    """The numbers that `to_parquet` has put there, in order."""
    return values(spark.read.parquet(str(directory / "rows")))


def written(kafka: Kafka, topic: str, partitions: int = 1) -> list[int]:
    """The numbers that librdkafka finds in a topic, in order."""
    found = read_from(kafka.broker, topic, partitions).values()
    return sorted(int(seen.record.value or b"") for each in found for seen in each)


class Row(NamedTuple):
    """A record as a Spark source shows it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] | None = None
    timestamp_type: int = 0
    topic: str = ""


def rows(frame: DataFrame) -> list[Row]:
    """All of them, ordered by place. No headers are None, as both connectors have it."""
    headers = ["headers"] if "headers" in frame.columns else []
    plain = ["partition", "offset", "key", "value", "timestampType", "topic"]
    found = frame.selectExpr(*plain, "unix_millis(timestamp) AS timestamp_ms", *headers).collect()
    return sorted(
        Row(
            row.partition,
            row.offset,
            _bytes(row.key),
            _bytes(row.value),
            row.timestamp_ms,
            _headers(row.headers) if headers else None,
            row.timestampType,
            row.topic,
        )
        for row in found
    )


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)


def _headers(headers: Sequence[Any] | None) -> tuple[tuple[str, bytes | None], ...] | None:
    return None if headers is None else tuple((header.key, _bytes(header.value)) for header in headers)


def rows_of(
    topic: str, records: Sequence[Rec], offsets: Sequence[int], *, headers: bool = False, timestamp_type: int = 0
) -> list[Row]:
    """The rows that a source must show for these records at these offsets."""
    return sorted(
        Row(
            record.partition,
            offset,
            record.key,
            record.value,
            record.timestamp_ms,
            (record.headers or None) if headers else None,
            timestamp_type,
            topic,
        )
        for record, offset in zip(records, offsets, strict=True)
    )


def values(frame: DataFrame) -> list[int]:
    """The numbers in the values, in order."""
    return sorted(int(row.value) for row in frame.select("value").collect())


def sizes(progress: Sequence[Any]) -> list[int]:
    """Rows of each batch that had any."""
    return [each.numInputRows for each in progress if each.numInputRows]


@contextlib.contextmanager
def stopping(query: StreamingQuery) -> Iterator[StreamingQuery]:
    try:
        yield query
    finally:
        query.stop()


def finish(query: StreamingQuery) -> list[Any]:
    """Wait for a query that ends by itself; its progress."""
    with stopping(query):
        assert query.awaitTermination(QUERY_TIMEOUT_S), f"not at its end in {QUERY_TIMEOUT_S} s: {query.status}"
        return list(query.recentProgress)


def murmur2_partition(key: bytes | None, partitions: int) -> int:
    """Where kafka-python, a stranger to both, puts this key."""
    from kafka.partitioner.default import murmur2

    assert key is not None
    number: int = (murmur2(key) & 0x7FFFFFFF) % partitions
    return number
