"""`format("strandline")` writes, to our brokers and to Apache Kafka's alike, and librdkafka tells what is there.

Where Spark's own Kafka connector can write the same rows, they must be in the same partitions with the same contents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tests.system.clients import CONFLUENT, Rec, read_from
from tests.system.spark.support import (
    BEGIN_MS,
    Kafka,
    finish,
    murmur2_partition,
    numbered,
    rows,
    source,
    stopping,
    to_topic,
    written,
)

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]


def write(frame: DataFrame, cluster: Kafka, connector: str = "strandline", **options: Any) -> None:
    writer = frame.write.format(connector).option("kafka.bootstrap.servers", cluster.bootstrap)
    writer.options(**options).mode("append").save()


def records(cluster: Kafka, topic: str, partitions: int) -> list[Rec]:
    """All of a topic, in the order of partition and offset."""
    found = read_from(cluster.broker, topic, partitions)
    return [seen.record for partition in sorted(found) for seen in found[partition]]


def stream(spark: SparkSession, cluster: Kafka, topic: str, **options: Any) -> DataFrame:
    chosen = {"subscribe": topic, "startingOffsets": "earliest"} | options
    return source(spark, cluster, "strandline", chosen, streaming=True)


@pytest.mark.parametrize("codec", CONFLUENT.codecs)
def test_keys_land_where_every_producer_puts_them(spark: SparkSession, cluster: Kafka, codec: str) -> None:
    topic = cluster.make_topic(5)
    frame = spark.range(2000).selectExpr("'key ' || id AS key", "CAST(id AS STRING) AS value")
    write(frame, cluster, topic=topic, **{"kafka.compression.type": codec})
    found = records(cluster, topic, 5)
    assert sorted(int(record.value or b"") for record in found) == list(range(2000))
    assert all(record.key == b"key " + (record.value or b"") for record in found)
    assert all(record.partition == murmur2_partition(record.key, 5) for record in found)


EVERY_COLUMN = (
    "IF(id % 3 = 0, NULL, encode('key ' || id, 'utf-8')) AS key",
    "IF(id % 5 = 0, NULL, IF(id % 5 = 1, encode('', 'utf-8'), encode(repeat(CAST(id AS STRING), 50), 'utf-8'))) AS value",
    "CAST(id % 4 AS INT) AS partition",
    "CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN array() ELSE "
    "array(struct('h' AS key, encode('x', 'utf-8') AS value), struct('h' AS key, NULL AS value)) END AS headers",
)


def test_every_column_is_written_as_spark_itself_does(spark: SparkSession, cluster: Kafka) -> None:
    first, second = cluster.make_topic(4), cluster.make_topic(4)
    for connector in "strandline", "kafka":
        topics = {name: cluster.make_topic(4) for name in (first, second)} if connector == "kafka" else {}
        frame = spark.range(0, 500, 1, 1).selectExpr(
            *EVERY_COLUMN,
            f"IF(id < 200, '{topics.get(first, first)}', '{topics.get(second, second)}') AS topic",
        )
        write(frame, cluster, connector)
        for name, theirs in topics.items():
            assert [r._replace(timestamp_ms=0) for r in records(cluster, name, 4)] == [
                r._replace(timestamp_ms=0) for r in records(cluster, theirs, 4)
            ]
    assert len(records(cluster, first, 4)) == 200
    assert len(records(cluster, second, 4)) == 300


def test_timestamps_and_names_that_differ_in_case(spark: SparkSession, cluster: Kafka) -> None:
    """And the option decides on the topic, whatever the column says."""
    topic = cluster.make_topic(1)
    frame = spark.range(0, 100, 1, 1).selectExpr(
        "CAST(id AS STRING) AS VALUE",
        f"timestamp_millis({BEGIN_MS} + id) AS Timestamp",
        "'elsewhere' AS topic",
        "id AS unrelated",
    )
    write(frame, cluster, topic=topic)
    expected = [Rec(0, None, b"%d" % n, BEGIN_MS + n) for n in range(100)]
    assert records(cluster, topic, 1) == expected, "in the order of the rows"


def test_rows_without_key_and_partition_are_spread(spark: SparkSession, cluster: Kafka) -> None:
    topic = cluster.make_topic(3)
    write(spark.range(30_000).selectExpr("repeat('x', 100) || id AS value"), cluster, topic=topic)
    counts = [len(each) for each in read_from(cluster.broker, topic, 3).values()]
    assert sum(counts) == 30_000
    assert min(counts) > 0


def test_what_is_read_can_be_written(spark: SparkSession, cluster: Kafka) -> None:
    begin, end = cluster.make_topic(3), cluster.make_topic(3)
    headers = (("h", b"1"), ("h", None))
    cluster.write(begin, [Rec(n % 3, b"%d" % n, b"%d" % n, BEGIN_MS + n, headers) for n in range(300)], "zstd")
    original = source(spark, cluster, "strandline", {"subscribe": begin, "includeHeaders": "true"})
    write(original, cluster, topic=end)
    copy = source(spark, cluster, "kafka", {"subscribe": end, "includeHeaders": "true"})
    assert rows(copy) == [row._replace(topic=end) for row in rows(original)]


# Streams


def test_a_stream_appends_and_goes_on_from_its_checkpoint(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    begin, end = cluster.make_topic(2), cluster.make_topic(2)
    frame = stream(spark, cluster, begin, maxOffsetsPerTrigger=150)
    for first in 0, 400:
        cluster.write(begin, numbered(first, 400, 2))
        finish(to_topic(frame, cluster, "strandline", end, tmp_path).trigger(availableNow=True).start())
    assert written(cluster, end, 2) == list(range(800))
    # The column `partition` of the source is one of the sink too.
    assert [r._replace(timestamp_ms=0) for r in records(cluster, end, 2)] == [
        r._replace(timestamp_ms=0) for r in records(cluster, begin, 2)
    ]


def test_complete_counts(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    begin, end = cluster.make_topic(2), cluster.make_topic(1)
    cluster.write(begin, numbered(0, 300, 2))
    counts = stream(spark, cluster, begin, maxOffsetsPerTrigger=200).groupBy("partition").count()
    pairs = counts.selectExpr("CAST(partition AS STRING) AS key", "CAST(count AS STRING) AS value")
    writer = to_topic(pairs, cluster, "strandline", end, tmp_path).trigger(availableNow=True)
    finish(writer.outputMode("complete").start())
    seen = [(record.key, record.value) for record in records(cluster, end, 1)]
    assert sorted(seen[:2]) == [(b"0", b"100"), (b"1", b"100")]
    assert sorted(seen[2:]) == [(b"0", b"150"), (b"1", b"150")]
    updating = writer.outputMode("update").option("checkpointLocation", str(tmp_path / "update")).start()
    with pytest.raises(
        StreamingQueryException, match="does not support Update mode"
    ):  # Spark has no way for it in Python
        updating.awaitTermination(60)


def test_leaders_die_in_the_middle(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    """From topic to topic, and the leader of either dies and comes back: nothing is missing."""
    begin, end = (cluster.make_topic(2, min_insync_replicas=str(min(2, cluster.replicas))) for _ in range(2))
    frame = stream(spark, cluster, begin, maxOffsetsPerTrigger=400)
    count = 0
    with stopping(to_topic(frame, cluster, "strandline", end, tmp_path).start()) as query:
        for topic in begin, end:
            cluster.write(begin, numbered(count, 1500, 2))
            with cluster.without_leader(topic):
                cluster.write(begin, numbered(count + 1500, 500, 2))
                count += 2000
                query.processAllAvailable()
        assert query.exception() is None
    assert set(written(cluster, end, 2)) == set(range(count))


def test_a_large_row_and_many_small_ones(spark: SparkSession, cluster: Kafka) -> None:
    topic = cluster.make_topic(1, max_message_bytes="3000000")
    frame = spark.range(0, 2000, 1, 1).selectExpr("IF(id = 1000, repeat('y', 2500000), repeat('x', 300)) AS value")
    write(frame, cluster, topic=topic, **{"kafka.max.request.size": "4000000"})
    lengths = [len(record.value or b"") for record in records(cluster, topic, 1)]
    assert lengths == [300] * 1000 + [2_500_000] + [300] * 999
