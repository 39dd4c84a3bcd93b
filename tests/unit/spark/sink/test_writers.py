"""The writers as Spark uses them: made on the driver, sent to an executor, asked to commit on the driver again."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs
# mypy: disable-error-code="call-arg, no-any-return, type-arg, union-attr"

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from strandline.client.blocking import Client, Consumer, ConsumerConfig
from strandline.client.bulk import PartitionFetcher
from strandline.records.header import iterate
from strandline.records.partitioner import partition_for
from strandline.spark.errors import OptionError
from strandline.spark.sink.commits import TaskCommit
from strandline.spark.sink.errors import ColumnError, ModeError, WriteFailed
from strandline.spark.sink.writers import BatchWriter, StreamWriter
from tests.unit.spark.node_beside import Cluster

from ...client.server import Broker, serving_beside
from .schemas import schema

TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
ARROW = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "timestamp": TIMESTAMP,
    "headers": HEADERS,
}


def run(
    cluster, columns: str, rows: list[tuple], *, kind=BatchWriter, rows_per_batch: int = 10_000, **options
) -> TaskCommit:
    """Write rows of these columns ("name type, …") in one task, through what Spark does to a writer on the way."""
    names = [column.split() for column in columns.split(", ")]
    made = kind(cluster.options(**options), schema(*columns.split(", ")), False)
    writer = cloudpickle.loads(cloudpickle.dumps(made))
    arrow = pa.schema([(name, ARROW[type_name]) for name, type_name in names])

    def batches():
        for start in range(0, len(rows), rows_per_batch):
            chunk = rows[start : start + rows_per_batch]
            yield pa.RecordBatch.from_pylist([dict(zip(arrow.names, row, strict=True)) for row in chunk], arrow)

    return cloudpickle.loads(cloudpickle.dumps(writer.write(batches())))


def records_of(cluster, topic: str, partitions: int = 1) -> list[list]:
    """All records of each partition."""
    with Client(cluster.bootstrap) as client:
        consumer = Consumer(client, ConsumerConfig(auto_offset_reset="earliest"))
        places = [(topic, partition) for partition in range(partitions)]
        consumer.assign(places)
        missing = sum(consumer.end_offsets(places).values()) - sum(consumer.beginning_offsets(places).values())
        found: list[list] = [[] for _ in places]
        while missing:
            for record in consumer.poll(5):
                found[record.partition].append(record)
                missing -= 1
        consumer.close()
    return found


def test_every_part_of_a_record_arrives(cluster: Cluster) -> None:
    topic = cluster.make("parts")
    at = datetime(2026, 5, 4, 3, 2, 1, 500_999, tzinfo=UTC)
    headers = [{"key": "h", "value": b"1"}, {"key": "h", "value": None}]
    done = run(
        cluster,
        "key string, value binary, headers headers, timestamp timestamp",
        [("k", b"v", headers, at), (None, None, None, at), ("", b"", [], at)],
        topic=topic,
    )
    [records] = records_of(cluster, topic)
    time_ms = 1_777_863_721_500
    assert [(r.key, r.value, tuple(map(tuple, r.headers)), r.timestamp) for r in records] == [
        (b"k", b"v", (("h", b"1"), ("h", None)), time_ms),
        (None, None, (), time_ms),
        (b"", b"", (), time_ms),
    ]
    [written] = done.written
    assert written[:5] == (topic, 0, 0, 3, 3)
    assert done.records_count == 3
    assert done.attempt is None


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(cluster: Cluster, codec: str) -> None:
    topic = cluster.make(f"codec-{codec}")
    run(cluster, "value string", [(f"{n}" * 50,) for n in range(100)], topic=topic, kafka_compression_type=codec)
    [records] = records_of(cluster, topic)
    assert [r.value.decode() for r in records] == [f"{n}" * 50 for n in range(100)]


def test_keys_find_their_partition_and_rows_keep_their_order_over_many_batches(cluster: Cluster) -> None:
    topic = cluster.make("order", 5)
    rows = [(f"k{n % 97}", f"{n}") for n in range(3_000)]
    done = run(cluster, "key string, value string", rows, topic=topic, rows_per_batch=70, kafka_batch_size=900)
    found = records_of(cluster, topic, 5)
    assert sum(map(len, found)) == done.records_count == 3_000
    for partition, records in enumerate(found):
        assert {partition_for(r.key, 5) for r in records} == {partition}
        numbers = [int(r.value) for r in records]
        assert numbers == sorted(numbers)


def test_rows_without_keys_are_spread_evenly(cluster: Cluster) -> None:
    topic = cluster.make("spread", 4)
    run(cluster, "value string", [("v" * 90,)] * 8_000, topic=topic, kafka_batch_size=10_000, rows_per_batch=1_000)
    counts = [len(records) for records in records_of(cluster, topic, 4)]
    assert sum(counts) == 8_000
    assert max(counts) - min(counts) < 300


def test_small_arrow_batches_make_full_record_batches(cluster: Cluster) -> None:
    topic = cluster.make("small")
    run(cluster, "value string", [("v" * 90,)] * 4_000, topic=topic, rows_per_batch=40, kafka_batch_size=100_000)
    with Client(cluster.bootstrap) as client:
        fetched = [bytes(each.data) for each in PartitionFetcher(client, topic, 0, 0, 4_000, ConsumerConfig())]
    counts = [header.records_count for data in fetched for _, header in iterate(data)]
    assert sum(counts) == 4_000
    assert min(counts[:-1]) > 450  # about half of a batch's 1,000: what makes a task send, not what a batch can hold


def test_topics_and_partitions_of_columns(cluster: Cluster) -> None:
    topics = [cluster.make("here", 2), cluster.make("there", 3)]
    rows = [(topics[n % 2], n % 2 + 1 if n % 2 else 1, f"{n}") for n in range(10)]
    done = run(cluster, "topic string, partition int, value string", rows)
    assert [w[:2] for w in done.written] == [("here", 1), ("there", 2)]
    assert [r.value for r in records_of(cluster, "here", 2)[1]] == [b"0", b"2", b"4", b"6", b"8"]
    assert [r.value for r in records_of(cluster, "there", 3)[2]] == [b"1", b"3", b"5", b"7", b"9"]


def test_a_task_without_rows_commits_nothing_and_asks_for_no_topic(cluster: Cluster) -> None:
    assert run(cluster, "value string", [], topic="nowhere").written == ()


def test_each_attempt_is_a_producer_of_its_own(cluster: Cluster) -> None:
    topic = cluster.make("attempts")
    for _ in range(2):
        run(cluster, "value string", [("v",)], topic=topic)
    [answer] = cluster.admin.describe_producers([(topic, 0)]).values()
    assert len({state.producer_id for state in answer}) == 2


def test_partitions_that_were_added_between_two_tasks_are_seen(cluster: Cluster) -> None:
    topic = cluster.make("grows")
    run(cluster, "value string", [("v",)], topic=topic)
    assert cluster.admin.create_partitions({topic: 3}) == {topic: None}
    run(cluster, "partition int, value string", [(2, "w")], topic=topic)
    assert [len(records) for records in records_of(cluster, topic, 3)] == [1, 0, 1]


def test_a_topic_that_was_made_anew_between_two_tasks_is_written_to(cluster: Cluster) -> None:
    topic = cluster.make("anew", 3)
    run(cluster, "value string", [("v",)], topic=topic)
    cluster.remove(topic)
    cluster.make(topic)
    run(cluster, "value string", [("w",)], topic=topic)
    assert [[r.value for r in records] for records in records_of(cluster, topic)] == [[b"w"]]


# Sizes


def test_batches_that_the_topic_finds_too_large_go_in_parts(cluster: Cluster) -> None:
    topic = cluster.make("narrow", 1, max_message_bytes="5000")
    run(cluster, "value string", [(f"{n:04d}" * 20,) for n in range(500)], topic=topic)
    [records] = records_of(cluster, topic)
    assert [int(r.value[:4]) for r in records] == list(range(500))


def test_a_record_that_the_topic_finds_too_large_is_refused_with_its_partition(cluster: Cluster) -> None:
    topic = cluster.make("tiny", 2, max_message_bytes="1000")
    with pytest.raises(WriteFailed, match=r"MESSAGE_TOO_LARGE.*tiny-1"):
        run(cluster, "partition int, value string", [(1, "v" * 2_000)], topic=topic)


# Failures


def test_a_topic_that_does_not_exist_is_named(cluster: Cluster) -> None:
    with pytest.raises(WriteFailed, match=r"cannot write to topic 'nowhere': .*UNKNOWN_TOPIC_OR_PARTITION"):
        run(cluster, "value string", [("v",)], topic="nowhere")


def test_nobody_at_the_address_is_said_with_the_address(cluster: Cluster) -> None:
    writer = BatchWriter(
        {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "kafka.default.api.timeout.ms": "50"},
        schema("value string"),
        False,
    )
    with pytest.raises(WriteFailed, match=r"127\.0\.0\.1:1"):
        writer.write(iter([pa.record_batch({"value": pa.array(["v"])})]))


def test_what_a_broker_refuses_names_the_partition(cluster: Cluster) -> None:
    topic = cluster.make("strict", 2, message_timestamp_after_max_ms="1000")
    late = datetime(2200, 1, 1, tzinfo=UTC)
    with pytest.raises(WriteFailed, match=r"INVALID_TIMESTAMP.*strict-1"):
        run(cluster, "partition int, timestamp timestamp, value string", [(1, late, "v")], topic=topic)


def test_a_task_that_fails_sends_nothing_more(cluster: Cluster) -> None:
    topic = cluster.make("failing")
    options = cluster.options(topic=topic, kafka_batch_size="1000")
    writer = BatchWriter(options, schema("value string"), False)

    def rows():
        yield pa.record_batch({"value": pa.array(["v" * 100] * 4)})  # held: not half a batch
        raise RuntimeError("the query's own failure")

    with pytest.raises(RuntimeError, match="the query's own failure"):
        writer.write(rows())
    run(cluster, "value string", [("after",)], topic=topic)
    assert [r.value for r in records_of(cluster, topic)[0]] == [b"after"]


def test_a_task_that_fails_waits_for_nobody() -> None:
    answer = threading.Event()

    class Silent(Broker):
        def produce(self, request):
            answer.wait(60)
            return super().produce(request)

    broker = Silent()

    def rows():
        yield pa.record_batch({"value": pa.array(["v" * 100] * 40)})
        raise RuntimeError("the query's own failure")

    with serving_beside(broker):
        options = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "topic": "t", "kafka.batch.size": "1000"}
        writer = BatchWriter(options, schema("value string"), False)
        try:
            with pytest.raises(RuntimeError, match="the query's own failure"):
                writer.write(rows())
            assert not answer.is_set()
        finally:
            answer.set()


# What is refused on the driver


def test_a_frame_that_cannot_be_written_makes_no_writer(cluster: Cluster) -> None:
    for kind in (BatchWriter, StreamWriter):
        with pytest.raises(ColumnError, match="'value' is of type int"):
            kind(cluster.options(topic="t"), schema("value int"), False)
        with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
            kind({"topic": "t"}, schema("value string"), False)


def test_overwrite_is_refused_for_a_batch_and_is_complete_mode_for_a_stream(cluster: Cluster) -> None:
    with pytest.raises(ModeError, match="'overwrite' is not supported: a topic can only be appended to"):
        BatchWriter(cluster.options(topic="t"), schema("value string"), True)
    topic = cluster.make("complete")
    writer = StreamWriter(cluster.options(topic=topic), schema("value string"), True)
    for _ in range(2):
        writer.write(iter([pa.record_batch({"value": pa.array(["all"])})]))
    assert [r.value for r in records_of(cluster, topic)[0]] == [b"all", b"all"]


def test_commit_and_abort_need_no_cluster() -> None:
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    batch, stream = (kind(options, schema("value string"), False) for kind in (BatchWriter, StreamWriter))
    batch.commit([None])
    batch.abort([None])
    stream.commit([None], 7)
    stream.abort([None], 7)
