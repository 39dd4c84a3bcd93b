"""Bad input to `format("strandline")`: one clear sentence that names the option, the column or the partition.

Always true of each of them: no Python traceback is part of it, and it comes soon.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.kafka_cluster import free_ports, kafka_cluster
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.judges import java
from tests.system.server import format_data, running
from tests.system.spark.support import BEGIN_MS, Kafka, numbered, rows, source, to_parquet, to_topic

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]

COUNT = 100


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with strandline_node(tmp_path_factory.mktemp("bad-input")) as node:
        yield node


@contextlib.contextmanager
def strandline_node(directory: Path) -> Iterator[Kafka]:
    if not (directory / "data").exists():
        format_data(directory / "data")
    with running(directory, directory / "data", {"auto.create.topics.enable": "false"}) as server:
        yield Kafka(server.bootstrap)
        server.stop()


@contextlib.contextmanager
def apache_node(directory: Path) -> Iterator[Kafka]:
    java.judge()
    with kafka_cluster(1, directory=directory, heap="384M") as node:
        yield Kafka(node.bootstrap)


NODES = {"strandline": strandline_node, "kafka": apache_node}
"""One node each, with everything in one directory, to be started there again."""


@pytest.fixture(scope="module")
def topic(cluster: Kafka) -> str:
    """Offsets 20-49 in two partitions; what came before them is deleted."""
    name = cluster.make_topic(2)
    cluster.write(name, numbered(0, COUNT, 2))
    for partition in 0, 1:
        cluster.delete_records(name, partition, 20)
    return name


def refusal(attempt: Callable[..., object], *arguments: Any, **options: str) -> str:
    with pytest.raises(PySparkException) as refused:
        attempt(*arguments, **options)
    text = str(refused.value)
    assert "Traceback" not in text, text
    return text


def collect(spark: SparkSession, cluster: Kafka, options: Mapping[str, Any]) -> None:
    source(spark, cluster, "strandline", options).collect()


# Options

ORDERS = {"subscribe": "orders"}
WRONG_OPTIONS: dict[str, tuple[Mapping[str, Any], str]] = {
    "unknown": (
        ORDERS | {"startingOffset": "earliest"},
        "option 'startingoffset' is unknown; did you mean 'startingOffsets'",
    ),
    "unknown of kafka": (
        ORDERS | {"kafka.fetch.max.byte": 1},
        "option 'kafka.fetch.max.byte' is unknown; did you mean",
    ),
    "two ways to choose": (ORDERS | {"assign": '{"orders": [0]}'}, "options 'subscribe' and 'assign'"),
    "no way to choose": ({}, "'subscribe'"),
    "no number": (ORDERS | {"minPartitions": "many"}, "option 'minPartitions'"),
    "no JSON": (ORDERS | {"startingOffsets": "{orders: 1}"}, "option 'startingOffsets'"),
    "forbidden": (ORDERS | {"kafka.auto.offset.reset": "latest"}, "option 'kafka.auto.offset.reset'"),
    "a start after the end": (ORDERS | {"startingTimestamp": 2, "endingTimestamp": 1}, "'startingTimestamp'"),
    "a batch that starts at the end": (ORDERS | {"startingOffsets": "latest"}, "option 'startingOffsets'"),
    "a group without a name": (ORDERS | {"startingOffsets": "group"}, "option 'groupId'"),
    "an unknown column": (ORDERS | {"columns": "key,values"}, "option 'columns'"),
    "a bad pattern": ({"subscribePattern": "("}, "option 'subscribePattern'"),
    "bad servers": (ORDERS | {"kafka.bootstrap.servers": "nowhere"}, "option 'kafka.bootstrap.servers'"),
}


def test_wrong_options_of_a_batch(spark: SparkSession, cluster: Kafka) -> None:
    for case, (options, sentence) in WRONG_OPTIONS.items():
        text = refusal(collect, spark, cluster, options)
        assert sentence in text, f"{case}: {text}"


@pytest.mark.parametrize("wrong", ["unknown", "two ways to choose", "an end"])
def test_wrong_options_of_a_stream(spark: SparkSession, cluster: Kafka, tmp_path: Path, wrong: str) -> None:
    cases = WRONG_OPTIONS | {"an end": (ORDERS | {"endingOffsets": "latest"}, "option 'endingOffsets'")}
    options, sentence = cases[wrong]

    def start() -> None:
        frame = source(spark, cluster, "strandline", options, streaming=True)
        to_parquet(frame, tmp_path).start().awaitTermination(60)

    assert sentence in refusal(start)


# Topics and offsets


def test_a_topic_that_does_not_exist(spark: SparkSession, cluster: Kafka, topic: str, tmp_path: Path) -> None:
    for options, name in (
        ({"subscribe": f"{topic},missing"}, "missing"),
        ({"assign": json.dumps({topic: [0, 7]})}, f"{topic}-7"),
        ({"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 30}})}, f"{topic}-1"),
    ):
        assert name in refusal(collect, spark, cluster, options)

    def start() -> None:
        frame = source(spark, cluster, "strandline", {"subscribe": "missing"}, streaming=True)
        to_parquet(frame, tmp_path).start().awaitTermination(60)

    assert "'missing'" in refusal(start)
    frame = spark.range(1).selectExpr("'x' AS value")
    assert "'missing'" in refusal(write, frame, cluster, topic="missing")


def test_offsets_out_of_range(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    for start, end in (10, 30), (30, 60), (70, 80):
        options = {
            "subscribe": topic,
            "startingOffsets": json.dumps({topic: {"0": start, "1": 20}}),
            "endingOffsets": json.dumps({topic: {"0": end, "1": 21}}),
        }
        text = refusal(collect, spark, cluster, options)
        assert f"{topic}-0" in text
        assert "failOnDataLoss" in text
        found = rows(source(spark, cluster, "strandline", options | {"failOnDataLoss": "false"}))
        there = range(max(start, 20), min(end, 50))
        assert [row.offset for row in found] == [*there, 20]


def test_no_record_of_that_time(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    options = {"subscribe": topic, "startingTimestamp": 2 * BEGIN_MS}
    assert f"{topic}-0" in refusal(collect, spark, cluster, options)


# Brokers


def test_an_unreachable_bootstrap_server(spark: SparkSession, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    nobody = Kafka(f"127.0.0.1:{port}")
    options = {"subscribe": "orders", "kafka.default.api.timeout.ms": 3000}
    text = refusal(collect, spark, nobody, options)
    assert "kafka.bootstrap.servers" in text
    assert f"127.0.0.1:{port}" in text

    def start() -> None:
        to_parquet(source(spark, nobody, "strandline", options, streaming=True), tmp_path).start().awaitTermination(60)

    assert f"127.0.0.1:{port}" in refusal(start)
    frame = spark.range(1).selectExpr("'x' AS value")
    given = {
        "kafka.default.api.timeout.ms": "3000",
        "kafka.delivery.timeout.ms": "3000",
        "kafka.request.timeout.ms": "2000",
    }
    assert f"127.0.0.1:{port}" in refusal(write, frame, nobody, topic="orders", **given)


@pytest.mark.parametrize("node", NODES)
def test_a_corrupt_batch(spark: SparkSession, tmp_path: Path, node: str) -> None:
    with NODES[node](tmp_path) as cluster:
        topic = cluster.make_topic(2)
        cluster.write(topic, numbered(0, 200, 2))
        cluster.write(topic, numbered(200, 200, 2))
    (segment,) = tmp_path.glob(f"*/{topic}-1/00000000000000000000.log")
    data = bytearray(segment.read_bytes())
    data[len(data) * 3 // 4] ^= 0x10
    segment.write_bytes(data)
    with NODES[node](tmp_path) as cluster:
        # Our broker finds the batch itself and says so; of Apache Kafka's the reader must find it.
        text = refusal(collect, spark, cluster, {"subscribe": topic})
        assert f"{topic}-1" in text
        assert "100" in text, "the offset at which the batch begins"
        sound = source(spark, cluster, "strandline", {"assign": json.dumps({topic: [0]})})
        assert len(rows(sound)) == 200
        before = {"assign": json.dumps({topic: [1]}), "endingOffsets": json.dumps({topic: {"1": 100}})}
        assert len(rows(source(spark, cluster, "strandline", before))) == 100


# Rows


def write(frame: DataFrame, cluster: Kafka, **options: str) -> None:
    writer = frame.write.format("strandline").option("kafka.bootstrap.servers", cluster.bootstrap)
    writer.options(**options).mode("append").save()


WRONG_ROWS: dict[str, tuple[tuple[str, ...], Mapping[str, str], str]] = {
    "no value": (("'x' AS val",), {}, "'value'"),
    "a value of another type": (("1.5D AS value",), {}, "'value'"),
    "a partition of another type": (("'x' AS value", "'a' AS partition"), {}, "'partition'"),
    "a partition that is not there": (("'x' AS value", "7 AS partition"), {}, "partition"),
    "headers of another type": (("'x' AS value", "map('a', 'b') AS headers"), {}, "'headers'"),
    "an unknown option": (("'x' AS value",), {"topics": "orders"}, "option 'topics' is unknown; did you mean 'topic'?"),
    "an unknown codec": (("'x' AS value",), {"kafka.compression.type": "brotli"}, "option 'kafka.compression.type'"),
}


def test_rows_that_cannot_be_written(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    for case, (columns, options, sentence) in WRONG_ROWS.items():
        frame = spark.range(1).selectExpr(*columns)
        text = refusal(write, frame, cluster, **({"topic": topic} | dict(options)))
        assert sentence in text, f"{case}: {text}"
    no_topic = spark.range(1).selectExpr("'x' AS value")
    assert "'topic'" in refusal(write, no_topic, cluster)
    null_topic = spark.range(1).selectExpr("'x' AS value", "CAST(NULL AS STRING) AS topic")
    assert "'topic'" in refusal(write, null_topic, cluster)


def test_a_record_that_is_too_large(spark: SparkSession, cluster: Kafka) -> None:
    topic = cluster.make_topic(1, max_message_bytes="10000")
    frame = spark.range(1).selectExpr("repeat('x', 20000) AS value")
    assert f"{topic}-0" in refusal(write, frame, cluster, topic=topic)


def test_a_stream_of_rows_that_cannot_be_written(
    spark: SparkSession, cluster: Kafka, topic: str, tmp_path: Path
) -> None:
    frame = source(spark, cluster, "strandline", {"subscribe": topic, "startingOffsets": "earliest"}, streaming=True)
    unnamed = frame.selectExpr("key AS something")
    text = refusal(lambda: to_topic(unnamed, cluster, "strandline", topic, tmp_path).start().awaitTermination(60))
    assert "'value'" in text
