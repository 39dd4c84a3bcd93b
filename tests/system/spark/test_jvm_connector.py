"""Spark's own Kafka connector, unchanged, reads from and writes to three of our nodes.

It is the judge of our wire: what it reads is compared with what librdkafka wrote, and what it writes is read by librdkafka.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.system.clients import CONFLUENT, Rec, read_from
from tests.system.server import eventually
from tests.system.spark.support import (
    BEGIN_MS,
    COUNT,
    HALF_MS,
    LOSSES,
    PARTITIONS,
    RECORDS,
    Kafka,
    finish,
    murmur2_partition,
    numbered,
    rows,
    rows_of,
    said,
    sizes,
    source,
    stopping,
    stored,
    to_parquet,
    to_topic,
    values,
    write_every_kind,
    written,
)

pytestmark = [
    pytest.mark.java,
    pytest.mark.timeout(240),
    pytest.mark.parametrize("cluster", ["strandline"], indirect=True, scope="package"),
]


def read(spark: SparkSession, cluster: Kafka, **options: Any) -> DataFrame:
    return source(spark, cluster, "kafka", options)


def stream(spark: SparkSession, cluster: Kafka, **options: Any) -> DataFrame:
    return source(spark, cluster, "kafka", {"startingOffsets": "earliest"} | options, streaming=True)


BOUNDS: dict[str, tuple[dict[str, Any], range]] = {
    "everything": ({}, range(COUNT)),
    "earliest to latest": ({"startingOffsets": "earliest", "endingOffsets": "latest"}, range(COUNT)),
    "from a timestamp": ({"startingTimestamp": HALF_MS}, range(COUNT // 2, COUNT)),
    "between timestamps": (
        {"startingTimestamp": HALF_MS, "endingTimestamp": HALF_MS + 30_000},
        range(COUNT // 2, COUNT // 2 + 30),
    ),
    "from beyond the last record": (
        {"startingTimestamp": BEGIN_MS * 2, "startingOffsetsByTimestampStrategy": "latest"},
        range(0),
    ),
}


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_batch_with_bounds(spark: SparkSession, cluster: Kafka, topic: str, bounds: str) -> None:
    options, expected = BOUNDS[bounds]
    assert values(read(spark, cluster, subscribe=topic, **options)) == list(expected)


def test_a_batch_with_bounds_of_each_partition(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    start = {topic: {"0": -2, "1": 40, "2": 99}}
    end = {topic: {"0": 5, "1": 60, "2": -1}}
    found = rows(
        read(spark, cluster, subscribe=topic, startingOffsets=json.dumps(start), endingOffsets=json.dumps(end))
    )
    every = rows_of(topic, RECORDS, [n // PARTITIONS for n in range(COUNT)])
    wanted = {0: range(5), 1: range(40, 60), 2: range(99, 100)}
    assert found == [row for row in every if row.offset in wanted[row.partition]]

    start = {topic: {"0": BEGIN_MS, "1": HALF_MS, "2": HALF_MS + 30_000}}
    end = {topic: {"0": HALF_MS, "1": HALF_MS + 6_000, "2": BEGIN_MS * 2}}
    by_timestamp = {"startingOffsetsByTimestamp": json.dumps(start), "endingOffsetsByTimestamp": json.dumps(end)}
    wanted = {0: range(50), 1: range(50, 52), 2: range(60, 100)}
    assert rows(read(spark, cluster, subscribe=topic, **by_timestamp)) == [
        row for row in every if row.offset in wanted[row.partition]
    ]


def test_topics_are_named_in_three_ways(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    assert values(read(spark, cluster, assign=json.dumps({topic: [1]}))) == list(range(1, COUNT, PARTITIONS))
    assert values(read(spark, cluster, subscribePattern=f"{topic[:-1]}[{topic[-1]}z]")) == list(range(COUNT))


def test_offsets_are_also_found_by_a_member_of_a_group(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    """Spark's former way: a consumer joins a group only to be told the partitions and to seek."""
    name = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    spark.conf.set(name, "true")
    try:
        options: dict[str, Any] = {"subscribe": topic, "groupIdPrefix": "judge"}
        assert values(read(spark, cluster, **options)) == list(range(COUNT))
        assert values(read(spark, cluster, startingTimestamp=HALF_MS, **options)) == list(range(COUNT // 2, COUNT))
    finally:
        spark.conf.unset(name)


@pytest.mark.parametrize("timestamps", ["CreateTime", "LogAppendTime"])
def test_every_codec_null_and_header(spark: SparkSession, cluster: Kafka, timestamps: str) -> None:
    topic = cluster.make_topic(len(CONFLUENT.codecs), message_timestamp_type=timestamps)
    records, offsets = write_every_kind(cluster, topic)
    found = rows(read(spark, cluster, subscribe=topic, includeHeaders="true"))
    if timestamps == "CreateTime":
        assert found == rows_of(topic, records, offsets, headers=True)
    else:
        assert all(row.timestamp_ms > BEGIN_MS * 1.01 for row in found)
        expected = rows_of(topic, records, offsets, headers=True, timestamp_type=1)
        assert [row._replace(timestamp_ms=0) for row in found] == [row._replace(timestamp_ms=0) for row in expected]
    assert rows(read(spark, cluster, **{"subscribe": topic, "kafka.isolation.level": "read_committed"})) == [
        row._replace(headers=None) for row in found
    ]


def test_partitions_are_split(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    frame = read(spark, cluster, subscribe=topic, minPartitions=12)
    assert frame.rdd.getNumPartitions() == 12
    assert values(frame) == list(range(COUNT))


# Streams


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    topic = cluster.make_topic(2)
    cluster.write(topic, numbered(0, 100, 2))
    frame = stream(spark, cluster, subscribe=topic)
    with stopping(to_parquet(frame, tmp_path).start()) as query:
        query.processAllAvailable()
        cluster.write(topic, numbered(100, 100, 2))
        query.processAllAvailable()
        cluster.add_partitions(topic, 3)
        cluster.write(topic, [Rec(2, None, b"%d" % n, BEGIN_MS) for n in range(200, 210)])

        def sees_the_new_partition() -> bool:
            query.processAllAvailable()
            return len(stored(spark, tmp_path)) == 210

        eventually(sees_the_new_partition, "the new partition is read from its beginning", 30)
    cluster.write(topic, numbered(210, 90, 3))
    progress = finish(to_parquet(frame, tmp_path).trigger(availableNow=True).start())
    assert sum(each.numInputRows for each in progress) == 90, "only what is new is read"
    assert stored(spark, tmp_path) == list(range(300))
    (described,) = progress[-1].sources
    assert json.loads(described.endOffset) == json.loads(described.latestOffset)
    assert described.metrics["maxOffsetsBehindLatest"] == "0"


def test_rate_limits(spark: SparkSession, cluster: Kafka, topic: str, tmp_path: Path) -> None:
    limited = stream(spark, cluster, subscribe=topic, maxOffsetsPerTrigger=90)
    progress = finish(to_parquet(limited, tmp_path / "max").trigger(availableNow=True).start())
    assert sizes(progress) == [90, 90, 90, 30]
    assert stored(spark, tmp_path / "max") == list(range(COUNT))

    name = cluster.make_topic(1)
    cluster.write(name, numbered(0, 10))
    waits = stream(spark, cluster, subscribe=name, minOffsetsPerTrigger=20, maxTriggerDelay="10m")
    with stopping(to_parquet(waits, tmp_path / "min").start()) as query:
        eventually(lambda: sizes(query.recentProgress) == [10], "its first batch", 30)
        cluster.write(name, numbered(10, 15))
        query.processAllAvailable()  # is content: the connector says that there is nothing new
        cluster.write(name, numbered(25, 5))
        eventually(lambda: sizes(query.recentProgress) == [10, 20], "enough offsets", 30)


def test_counts_of_a_stream_are_updated_in_a_topic(
    spark: SparkSession, cluster: Kafka, topic: str, tmp_path: Path
) -> None:
    counts = cluster.make_topic(1)
    frame = stream(spark, cluster, subscribe=topic, maxOffsetsPerTrigger=150).groupBy("partition").count()
    pairs = frame.selectExpr("CAST(partition AS STRING) AS key", "CAST(count AS STRING) AS value")
    finish(to_topic(pairs, cluster, "kafka", counts, tmp_path).outputMode("update").trigger(availableNow=True).start())
    seen = [(each.record.key, each.record.value) for each in read_from(cluster.broker, counts)[0]]
    assert sorted(seen) == sorted((b"%d" % p, count) for p in range(PARTITIONS) for count in (b"50", b"100"))


# Writes


@pytest.mark.parametrize("codec", CONFLUENT.codecs)
def test_keyed_rows_land_where_every_producer_puts_them(spark: SparkSession, cluster: Kafka, codec: str) -> None:
    topic = cluster.make_topic(5)
    frame = spark.range(200).selectExpr(
        "encode('key ' || id, 'utf-8') AS key",
        "encode(CAST(id AS STRING), 'utf-8') AS value",
        "array(struct('h' AS key, encode('x', 'utf-8') AS value)) AS headers",
    )
    options = {"kafka.bootstrap.servers": cluster.bootstrap, "topic": topic, "kafka.compression.type": codec}
    frame.write.format("kafka").options(**options, includeHeaders="true").save()
    found = [seen.record for each in read_from(cluster.broker, topic, 5).values() for seen in each]
    assert sorted(int(record.value or b"") for record in found) == list(range(200))
    assert {record.headers for record in found} == {(("h", b"x"),)}
    assert all(record.partition == murmur2_partition(record.key, 5) for record in found)


def test_rows_say_their_topic_and_partition(spark: SparkSession, cluster: Kafka) -> None:
    first, second = cluster.make_topic(2), cluster.make_topic(2)
    frame = spark.range(100).selectExpr(
        f"IF(id < 50, '{first}', '{second}') AS topic",
        "CAST(id % 2 AS INT) AS partition",
        "CAST(id AS STRING) AS value",
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", cluster.bootstrap).save()
    for topic, begin in (first, 0), (second, 50):
        for partition, each in read_from(cluster.broker, topic, 2).items():
            numbers = sorted(int(seen.record.value or b"") for seen in each)
            assert numbers == list(range(begin + partition, begin + 50, 2))


def test_what_it_writes_it_reads(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    copy = cluster.make_topic(PARTITIONS)
    original = read(spark, cluster, subscribe=topic)
    original.withColumn("topic", lit(copy)).write.format("kafka").option(
        "kafka.bootstrap.servers", cluster.bootstrap
    ).save()

    def contents(name: str) -> list[tuple[Any, ...]]:
        return sorted((row.partition, row.key, row.value) for row in rows(read(spark, cluster, subscribe=name)))

    assert contents(copy) == contents(topic)


# Leaders


def test_leaders_are_killed_in_the_middle(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    """From topic to topic, and the leader of either dies and comes back: nothing is missing."""
    begin, end = (cluster.make_topic(2, min_insync_replicas="2") for _ in range(2))
    options = {"kafka.retry.backoff.ms": 50, "kafka.reconnect.backoff.max.ms": 200, "kafka.metadata.max.age.ms": 1000}
    frame = stream(spark, cluster, subscribe=begin, **options).drop("topic")
    count = 0
    with stopping(to_topic(frame, cluster, "kafka", end, tmp_path, **options).start()) as query:
        for topic in begin, end:
            cluster.write(begin, numbered(count, 1000, 2))
            with cluster.without_leader(topic):
                cluster.write(begin, numbered(count + 1000, 500, 2))
                count += 1500
                expected = set(range(count))
                eventually(partial(all_arrived, cluster, end, expected), "all rows arrive", 60)
        assert query.exception() is None


def all_arrived(cluster: Kafka, topic: str, expected: set[int]) -> bool:
    return set(written(cluster, topic, 2)) == expected


def test_a_batch_survives_the_leader_that_it_reads_from(spark: SparkSession, cluster: Kafka) -> None:
    topic = cluster.make_topic(1, min_insync_replicas="2")
    count = 20_000
    padding = b"x" * 900
    cluster.write(topic, [Rec(0, padding, b"%d" % n, BEGIN_MS) for n in range(count)])
    small = {
        "kafka.max.partition.fetch.bytes": 20_000,
        "kafka.max.poll.records": 100,
        "kafka.reconnect.backoff.max.ms": 200,
    }
    frame = read(spark, cluster, subscribe=topic, **small)
    frame.selectExpr("count(*)").collect()  # all is warm, the next one begins at once
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(values, frame)
        with cluster.without_leader(topic):
            assert reading.result(60) == list(range(count))


# Real-Time Mode


def real_time(writer: DataStreamWriter, duration: str) -> DataStreamWriter:
    """Batches so long, whose rows come out at once."""
    trigger: Any = writer.outputMode("update").trigger  # its annotations do not know of this mode yet
    timed: DataStreamWriter = trigger(realTime=duration)
    return timed


def await_flow(cluster: Kafka, begin: str, arrived: Any, query: StreamingQuery, rounds: int = 3) -> None:
    """Records written while the query runs come out of it, round after round."""
    for index in range(rounds):
        cluster.write(begin, numbered(index * 10, 10))

        def all_came(count: int = 10 * (index + 1)) -> bool:
            assert query.exception() is None, query.exception()
            return bool(arrived() == list(range(count)))

        eventually(all_came, f"round {index} comes out", 60)


def test_real_time_mode_moves_records_while_its_batch_runs(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    begin, end = cluster.make_topic(1), cluster.make_topic(1)
    frame = stream(spark, cluster, subscribe=begin).drop("topic")
    writer = real_time(to_topic(frame, cluster, "kafka", end, tmp_path), "60 seconds")
    with stopping(writer.start()) as query:
        await_flow(cluster, begin, lambda: written(cluster, end), query)
        assert query.lastProgress is None, "the first batch is still running: nobody waited for its end"
    cluster.write(begin, numbered(30, 10))
    with stopping(real_time(writer, "5 seconds").start()) as query:
        eventually(lambda: query.lastProgress is not None, "a batch ends", 60)
        assert query.exception() is None
    assert set(written(cluster, end)) == set(range(40))


def test_real_time_mode_to_the_console(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    begin = cluster.make_topic(1)
    frame = stream(spark, cluster, subscribe=begin).selectExpr("'row ' || CAST(value AS STRING) AS shown")
    writer = frame.writeStream.format("console").option("checkpointLocation", str(tmp_path))
    cluster.write(begin, numbered(0, 10))
    with stopping(real_time(writer, "5 seconds").start()):
        eventually(lambda: all(f"row {n}" in said(spark) for n in range(10)), "the console shows the rows", 60)


def test_continuous_mode(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    begin, end = cluster.make_topic(1), cluster.make_topic(1)
    frame = stream(spark, cluster, subscribe=begin).drop("topic")
    with stopping(to_topic(frame, cluster, "kafka", end, tmp_path).trigger(continuous="1 second").start()) as query:
        await_flow(cluster, begin, lambda: written(cluster, end), query)


# Refusals


@pytest.mark.parametrize("loss", LOSSES)
def test_records_that_are_gone(spark: SparkSession, cluster: Kafka, tmp_path: Path, loss: str) -> None:
    """Spark notices from our answers that what it wanted is deleted."""
    topic = cluster.make_topic(1)
    cluster.write(topic, numbered(0, 100))
    frame = stream(spark, cluster, subscribe=topic, maxOffsetsPerTrigger=10, **LOSSES[loss])
    with stopping(to_parquet(frame, tmp_path).trigger(processingTime="1 hour").start()) as query:
        eventually(lambda: query.lastProgress is not None, "its first batch", 30)
    cluster.delete_records(topic, 0, 60)
    query = to_parquet(frame, tmp_path).trigger(availableNow=True).start()
    if loss == "fails":
        with pytest.raises(StreamingQueryException, match=f"{topic}-0"):
            query.awaitTermination(60)
    else:
        finish(query)
        assert stored(spark, tmp_path) == [*range(10), *range(60, 100)]
