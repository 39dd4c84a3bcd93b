"""`format("strandline")` reads what librdkafka wrote, from our brokers and from Apache Kafka's alike.

Wherever Spark's own Kafka connector knows the same options, it is asked too, and must have the same rows to show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from strandline.spark import offsets_behind_latest
from tests.judges.java import judge
from tests.system.clients import CONFLUENT, Rec
from tests.system.server import eventually
from tests.system.spark.support import (
    BEGIN_MS,
    COUNT,
    HALF_MS,
    LOSSES,
    PARTITIONS,
    RECORDS,
    Kafka,
    Row,
    finish,
    numbered,
    rows,
    rows_of,
    sizes,
    source,
    stopping,
    stored,
    to_parquet,
    values,
    write_every_kind,
)

pytestmark = [pytest.mark.java, pytest.mark.timeout(240)]

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def read(spark: SparkSession, cluster: Kafka, **options: Any) -> DataFrame:
    return source(spark, cluster, "strandline", options)


def stream(spark: SparkSession, cluster: Kafka, **options: Any) -> DataFrame:
    return source(spark, cluster, "strandline", {"startingOffsets": "earliest"} | options, streaming=True)


def both(spark: SparkSession, cluster: Kafka, **options: Any) -> list[Row]:
    """The rows that our source reads, which are those that Spark's connector reads."""
    ours, theirs = (rows(source(spark, cluster, connector, options)) for connector in ("strandline", "kafka"))
    assert ours == theirs
    return ours


# Batches


def by_partition(topic: str, *numbers: int) -> str:
    return json.dumps({topic: dict(enumerate(numbers))})


def bounds(topic: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Options of a batch, and how many records lie within."""
    yield {"startingOffsets": "earliest", "endingOffsets": "latest"}, COUNT
    yield {"startingOffsets": by_partition(topic, -2, 40, 99), "endingOffsets": by_partition(topic, 5, 60, -1)}, 26
    yield {"startingTimestamp": HALF_MS, "endingTimestamp": HALF_MS + 30_000}, 30
    yield {"endingTimestamp": HALF_MS, "endingOffsets": by_partition(topic, 1, 1, 1)}, COUNT // 2
    yield {"startingTimestamp": 2 * BEGIN_MS, "startingOffsetsByTimestampStrategy": "latest"}, 0
    yield (
        {
            "startingOffsetsByTimestamp": by_partition(topic, BEGIN_MS, HALF_MS, HALF_MS + 30_000),
            "endingOffsetsByTimestamp": by_partition(topic, HALF_MS, HALF_MS + 6_000, 2 * BEGIN_MS),
        },
        50 + 2 + 40,
    )


def test_bounds_of_a_batch(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    everything = rows_of(topic, RECORDS, [n // PARTITIONS for n in range(COUNT)])
    for options, count in bounds(topic):
        found = both(spark, cluster, subscribe=topic, **options)
        assert len(found) == count, options
        assert set(found) <= set(everything)


def test_topics_are_named_in_three_ways(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    other = cluster.make_topic(1)
    cluster.write(other, numbered(0, 5))
    assert len(both(spark, cluster, subscribe=f"{topic}, {other}")) == COUNT + 5
    assert len(both(spark, cluster, assign=json.dumps({topic: [0, 2], other: [0]}))) == 200 + 5
    assert len(both(spark, cluster, subscribePattern=f"{topic[:-1]}.|{other}")) >= COUNT + 5
    inner = topic.removeprefix("topic-")[:-1]
    assert len(both(spark, cluster, subscribePattern=inner)) == COUNT


def test_splits_have_all_rows_once(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    for options, count in ({"minPartitions": 7}, 7), ({"maxRecordsPerPartition": 25}, 12):
        frame = read(spark, cluster, subscribe=topic, **options)
        assert frame.rdd.getNumPartitions() == count
        assert values(frame) == list(range(COUNT))


WITHOUT_EFFECT = {
    "includeHeaders": "false",
    "groupIdPrefix": "mine",
    "kafkaConsumer.pollTimeoutMs": 60_000,
    "fetchOffset.numRetries": 5,
    "fetchOffset.retryIntervalMs": 20,
    "partition.metadata.cache.ttl.ms": 1000,
    "maxOffsetsPerTrigger": 10,
    "kafka.client.id": "spark",
    "kafka.fetch.max.bytes": 1000,
    "kafka.max.poll.records": 7,
    "KAFKA.check.crcs": "true",
}
"""None of these changes what a batch reads."""


def test_only_columns_that_are_wanted(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    frame = read(spark, cluster, subscribe=topic, columns="offset, value", **WITHOUT_EFFECT)
    assert frame.columns == ["offset", "value"]
    assert values(frame) == list(range(COUNT))
    schema = "timestamp TIMESTAMP, topic STRING"
    reader = spark.read.format("strandline").schema(schema)
    picked = reader.options(**{"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic}).load()
    assert {row.topic for row in picked.collect()} == {topic}


@pytest.mark.parametrize("timestamps", ["CreateTime", "LogAppendTime"])
def test_every_codec_null_and_header(spark: SparkSession, cluster: Kafka, timestamps: str) -> None:
    topic = cluster.make_topic(len(CONFLUENT.codecs), message_timestamp_type=timestamps)
    records, offsets = write_every_kind(cluster, topic)
    found = both(spark, cluster, subscribe=topic, includeHeaders="true")
    expected = rows_of(topic, records, offsets, headers=True, timestamp_type=int(timestamps == "LogAppendTime"))
    if timestamps == "LogAppendTime":
        assert all(row.timestamp_ms > 1.01 * BEGIN_MS for row in found)
        assert [row._replace(timestamp_ms=0) for row in found] == [row._replace(timestamp_ms=0) for row in expected]
        return
    assert found == expected
    # From inside a batch, and to inside a batch.
    inside = {"startingOffsets": json.dumps({topic: dict.fromkeys(range(5), 7)})}
    inside["endingOffsets"] = json.dumps({topic: dict.fromkeys(range(5), 11)})
    assert {row.offset for row in both(spark, cluster, subscribe=topic, **inside)} == set(range(7, 11))


@pytest.mark.parametrize("cluster", ["kafka"], indirect=True)  # our brokers have no transactions yet
def test_what_was_aborted_is_not_read(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    topic = cluster.make_topic(2)
    settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap, "transactional.id": topic}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(30)
    for round_number, ending in enumerate(("commit", "abort", "commit", "abort", "open")):
        producer.begin_transaction()
        for number in range(20 * round_number, 20 * round_number + 20):
            producer.produce(topic, b"%d" % number, partition=number % 2)
        producer.flush(30)
        if ending == "commit":
            producer.commit_transaction(30)
        elif ending == "abort":
            producer.abort_transaction(30)
    committed = [*range(20), *range(40, 60)]
    isolated = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert sorted(int(row.value or b"") for row in both(spark, cluster, **isolated)) == committed
    assert values(read(spark, cluster, subscribe=topic)) == list(range(100))
    frame = stream(spark, cluster, **isolated, maxOffsetsPerTrigger=13)
    finish(to_parquet(frame, tmp_path).trigger(availableNow=True).start())
    assert stored(spark, tmp_path) == committed
    producer.commit_transaction(30)
    finish(to_parquet(frame, tmp_path).trigger(availableNow=True).start())
    assert stored(spark, tmp_path) == [*committed, *range(80, 100)]


# Filters

FILTERS = {
    "partition = 1": 1,
    "partition IN (0, 2) AND offset >= 90": 2,
    "offset > 10 AND offset < 20 AND partition <> 1": 3,
    f"timestamp >= timestamp_millis({HALF_MS})": 3,
    f"timestamp > timestamp_millis({HALF_MS}) AND timestamp <= timestamp_millis({HALF_MS + 20_000})": 3,
    "offset = 7 OR partition = 0": 3,
    "partition = 9": 1,
}
"""What is asked, and into how many splits it is pushed: Spark makes one of none."""


def test_filters_are_pushed_and_change_nothing(spark: SparkSession, cluster: Kafka, topic: str) -> None:
    spark.conf.set(PUSHDOWN, "true")
    try:
        everything = read(spark, cluster, subscribe=topic)
        judged = everything.selectExpr("partition", "offset", *(f"{each} AS `{each}`" for each in FILTERS)).collect()
        for condition, splits in FILTERS.items():
            plain = sorted((row.partition, row.offset) for row in judged if row[condition])
            pushed = read(spark, cluster, subscribe=topic, pushFilters="true").where(condition)
            assert pushed.rdd.getNumPartitions() == splits, condition
            assert [(row.partition, row.offset) for row in rows(pushed)] == plain, condition
    finally:
        spark.conf.unset(PUSHDOWN)
    frame = read(spark, cluster, subscribe=topic, pushFilters="true").where("partition = 1")
    with pytest.raises(AnalysisException, match=PUSHDOWN):
        frame.collect()


# Streams


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    topic = cluster.make_topic(2)
    cluster.write(topic, numbered(0, 100, 2))
    frame = stream(spark, cluster, subscribe=topic)
    with stopping(to_parquet(frame, tmp_path).start()) as query:
        query.processAllAvailable()
        cluster.write(topic, numbered(100, 100, 2))
        query.processAllAvailable()
        assert stored(spark, tmp_path) == list(range(200))
        cluster.add_partitions(topic, 3)
        cluster.write(topic, [Rec(2, None, b"%d" % n, BEGIN_MS) for n in range(200, 210)])

        def sees_the_new_partition() -> bool:
            query.processAllAvailable()
            return len(stored(spark, tmp_path)) == 210

        eventually(sees_the_new_partition, "the new partition is read from its beginning", 60)
    cluster.write(topic, numbered(210, 90, 3))
    progress = finish(to_parquet(frame, tmp_path).trigger(availableNow=True).start())
    assert sum(sizes(progress)) == 90, "only what is new is read"
    assert stored(spark, tmp_path) == list(range(300))
    assert offsets_behind_latest(progress[-1]).total == 0


def test_rate_limits(spark: SparkSession, cluster: Kafka, topic: str, tmp_path: Path) -> None:
    limited = stream(spark, cluster, subscribe=topic, maxOffsetsPerTrigger=90)
    progress = finish(to_parquet(limited, tmp_path / "offsets").trigger(availableNow=True).start())
    assert sizes(progress) == [90, 90, 90, 30]
    assert offsets_behind_latest(progress[0]).total == 210
    assert stored(spark, tmp_path / "offsets") == list(range(COUNT))

    uneven = cluster.make_topic(2)
    cluster.write(uneven, [Rec(0, None, b"%d" % n, BEGIN_MS) for n in range(100)])
    cluster.write(uneven, [Rec(1, b"x" * 10_000, b"%d" % n, BEGIN_MS) for n in range(100, 200)])
    limited = stream(spark, cluster, subscribe=uneven, maxBytesPerTrigger="300k")
    progress = finish(to_parquet(limited, tmp_path / "bytes").trigger(availableNow=True).start())
    assert len(sizes(progress)) in (4, 5), "about a megabyte"
    assert stored(spark, tmp_path / "bytes") == list(range(200))


def test_a_trigger_waits_for_enough_offsets(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    topic = cluster.make_topic(1)
    cluster.write(topic, numbered(0, 10))
    waits = stream(spark, cluster, subscribe=topic, minOffsetsPerTrigger=20, maxTriggerDelay="10m")
    with stopping(to_parquet(waits, tmp_path).start()) as query:
        eventually(lambda: sizes(query.recentProgress) == [10], "its first batch", 60)
        cluster.write(topic, numbered(10, 15))
        query.processAllAvailable()
        cluster.write(topic, numbered(25, 5))
        eventually(lambda: sizes(query.recentProgress) == [10, 20], "enough offsets", 60)
    cluster.write(topic, numbered(30, 5))
    finish(to_parquet(waits, tmp_path).trigger(availableNow=True).start())
    assert stored(spark, tmp_path) == list(range(35)), "what is available now is not waited for"


def test_a_group_shows_how_far_the_query_is(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    topic = cluster.make_topic(2)
    group = f"group-of-{topic}"
    cluster.write(topic, numbered(0, 100, 2))
    frame = stream(spark, cluster, subscribe=topic, groupId=group)
    finish(to_parquet(frame, tmp_path).trigger(availableNow=True).start())
    cluster.write(topic, numbered(100, 10, 2))
    assert described(cluster, group) == {0: (50, 5), 1: (50, 5)}

    with stopping(to_parquet(frame, tmp_path).start()) as query:
        query.processAllAvailable()
        eventually(lambda: committed(cluster, group, topic) == {0: 55, 1: 55}, "it idles without lag", 30)
    cluster.write(topic, numbered(110, 4, 2))
    assert described(cluster, group) == {0: (55, 2), 1: (55, 2)}
    assert values(read(spark, cluster, subscribe=topic, startingOffsets="group", groupId=group)) == [110, 111, 112, 113]
    assert described(cluster, group) == {0: (55, 2), 1: (55, 2)}, "a batch commits nothing"


def described(cluster: Kafka, group: str) -> dict[int, tuple[int, int]]:
    """Offset and lag of each partition, as Kafka's own tool shows them."""
    shown = judge().run(GROUPS, "--bootstrap-server", cluster.bootstrap, "--describe", "--group", group).check().out
    lines = [line.split() for line in shown.splitlines() if line.startswith(group)]
    return {int(line[2]): (int(line[3]), int(line[5])) for line in lines}


def committed(cluster: Kafka, group: str, topic: str) -> dict[int, int]:
    """The same without starting a JVM for it, to be asked again and again."""
    asked = confluent_kafka.ConsumerGroupTopicPartitions(group)
    (answer,) = cluster.admin.list_consumer_group_offsets([asked]).values()
    return {each.partition: each.offset for each in answer.result(30).topic_partitions if each.topic == topic}


def test_a_topic_that_was_made_anew_is_refused(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    topic = cluster.make_topic(1)
    cluster.write(topic, numbered(0, 10))
    frame = stream(spark, cluster, subscribe=topic)
    finish(to_parquet(frame, tmp_path).trigger(availableNow=True).start())
    cluster.delete_topic(topic)
    cluster.make_topic(1, topic)
    cluster.write(topic, numbered(10, 20))
    query = to_parquet(frame, tmp_path).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException, match=topic):
        query.awaitTermination(60)
    assert stored(spark, tmp_path) == list(range(10))


@pytest.mark.parametrize("loss", LOSSES)
def test_records_that_are_gone(spark: SparkSession, cluster: Kafka, tmp_path: Path, loss: str) -> None:
    topic = cluster.make_topic(1)
    cluster.write(topic, numbered(0, 100))
    frame = stream(spark, cluster, subscribe=topic, maxOffsetsPerTrigger=10, **LOSSES[loss])
    with stopping(to_parquet(frame, tmp_path).trigger(processingTime="1 hour").start()) as query:
        eventually(lambda: sizes(query.recentProgress) == [10], "its first batch", 60)
    cluster.delete_records(topic, 0, 60)
    query = to_parquet(frame, tmp_path).trigger(availableNow=True).start()
    if loss == "fails":
        with pytest.raises(StreamingQueryException, match=f"{topic}-0"):
            query.awaitTermination(60)
    else:
        finish(query)
        assert stored(spark, tmp_path) == [*range(10), *range(60, 100)]


def test_the_leader_dies_in_the_middle(spark: SparkSession, cluster: Kafka, tmp_path: Path) -> None:
    topic = cluster.make_topic(2, min_insync_replicas=str(min(2, cluster.replicas)))
    frame = stream(spark, cluster, subscribe=topic, maxOffsetsPerTrigger=400)
    with stopping(to_parquet(frame, tmp_path).start()) as query:
        cluster.write(topic, numbered(0, 2000, 2))
        with cluster.without_leader(topic):
            cluster.write(topic, numbered(2000, 1000, 2))
            query.processAllAvailable()
        cluster.write(topic, numbered(3000, 100, 2))
        query.processAllAvailable()
        assert query.exception() is None
    assert stored(spark, tmp_path) == list(range(3100)), "each row once"
