"""Columns out of what librdkafka and the Java client wrote, and back: batches made from columns are read by librdkafka.

Always true: the bytes are those that a real broker sent, and both ways to decode them see what was produced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest

from strandline.client import blocking
from strandline.client.bulk import PartitionFetcher
from strandline.client.bulk_producer import BatchProducer
from strandline.client.config import ConsumerConfig
from strandline.columnar.columns import TYPES
from strandline.columnar.encoding import Encoder, Rows, partitions_of
from strandline.records.compression import CompressionType
from tests.judges.java import Kafka, Run, judge
from tests.system.clients import CONFLUENT, Broker, Rec, Seen, read_from
from tests.system.conftest import MakeTopic
from tests.system.stories import CODEC_IDS, NOW_MS, PARTITIONS, expected, stored_batches, varied
from tests.unit.columnar.logs import ALL_COLUMNS, WAYS, read

CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"


@pytest.fixture(scope="module")
def client(broker: Broker) -> Iterator[blocking.Client]:
    with blocking.Client(broker.bootstrap) as client:
        yield client


def columns_of(
    client: blocking.Client, topic: str, partition: int, start: int, end: int, fetch_bytes: int = 1 << 20
) -> list[dict[str, Any]]:
    """All that is fetched of a partition, decoded both ways."""
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    config = ConsumerConfig(max_partition_fetch_bytes=fetch_bytes)
    for piece in PartitionFetcher(client, topic, partition, start, end, config, timeout_s=20):
        for way in WAYS:
            outcome = read(way, piece.data, piece.offset, end, piece.aborted, columns=ALL_COLUMNS)
            assert outcome.error is None
            found[way] += outcome.rows
    assert found["plain"] == found["compiled"]
    return found["compiled"]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def seen(partition: int, rows: Sequence[dict[str, Any]]) -> list[Seen]:
    """Rows in the words of the other clients. They were read as partition 3 of topic 't', whatever they are."""
    return [
        Seen(
            row["offset"],
            Rec(
                partition,
                row["key"],
                row["value"],
                row["timestamp"] // 1000,
                tuple((header["key"], header["value"]) for header in row["headers"] or ()),
            ),
        )
        for row in rows
    ]


@pytest.mark.parametrize("codec", CODEC_IDS)
def test_what_librdkafka_wrote(broker: Broker, client: blocking.Client, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic(PARTITIONS)
    records = varied()
    wanted = expected(records, asyncio.run(CONFLUENT.write(broker, topic, records, codec)))
    for partition in range(PARTITIONS):
        end = len(wanted[partition])
        assert seen(partition, columns_of(client, topic, partition, 0, end)) == wanted[partition]
        assert seen(partition, columns_of(client, topic, partition, 3, end - 3, 2000)) == wanted[partition][3:-3]
    assert broker.server is not None
    stored = [
        batch for partition in range(PARTITIONS) for batch in stored_batches(broker.server.data, topic, partition)
    ]
    assert codec == "none" or CODEC_IDS[codec] in {batch.codec for batch in stored}


def test_the_time_is_the_brokers_where_the_topic_says_so(
    broker: Broker, client: blocking.Client, make_topic: MakeTopic
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    began_ms = now_ms()
    asyncio.run(CONFLUENT.write(broker, topic, [Rec(0, None, b"%d" % i, NOW_MS) for i in range(50)], "lz4"))
    rows = columns_of(client, topic, 0, 0, 50)
    assert [row["value"] for row in rows] == [b"%d" % i for i in range(50)]
    assert {row["timestampType"] for row in rows} == {1}
    assert {row["timestamp"] for row in rows} <= set(range(began_ms * 1000, (now_ms() + 1) * 1000, 1000))


@pytest.mark.java
def test_what_the_java_client_wrote(broker: Broker, client: blocking.Client, make_topic: MakeTopic) -> None:
    kafka: Kafka = judge()
    topics = {codec: make_topic() for codec in CODEC_IDS}
    lines = [("NULL", f"key-{i}", f"value {i} " * (i % 40)) for i in range(300)]
    lines += [("a:1,b:zwei,a:", "NULL", "headers"), ("NULL", "tombstone", "NULL"), ("c:NULL", "", "")]
    stdin = "".join("\t".join(line) + "\n" for line in lines)
    properties = ("parse.key=true", "parse.headers=true", "null.marker=NULL")
    reader = [part for each in properties for part in ("--reader-property", each)]
    runs = [
        Run(
            CONSOLE_PRODUCER,
            ["--bootstrap-server", broker.bootstrap, "--topic", topic, "--compression-codec", codec, *reader],
            stdin,
        )
        for codec, topic in topics.items()
    ]
    for result in kafka.run_all(runs):
        result.check()
    for codec, topic in topics.items():
        rows = columns_of(client, topic, 0, 0, len(lines))
        assert [row["value"] for row in rows] == [None if value == "NULL" else value.encode() for *_, value in lines]
        assert [row["key"] for row in rows] == [None if key == "NULL" else key.encode() for _, key, _ in lines]
        assert rows[0]["headers"] is None
        assert rows[300]["headers"] == [
            {"key": "a", "value": b"1"},
            {"key": "b", "value": b"zwei"},
            {"key": "a", "value": b""},
        ]
        assert rows[302]["headers"] == [{"key": "c", "value": None}]
        assert seen(0, rows) == read_from(broker, topic)[0]
        assert broker.server is not None
        assert {batch.codec for batch in stored_batches(broker.server.data, topic, 0)} == {CODEC_IDS[codec]}


@pytest.mark.parametrize("codec", CODEC_IDS)
def test_what_was_made_from_columns_is_read_by_librdkafka(
    broker: Broker, client: blocking.Client, make_topic: MakeTopic, codec: str
) -> None:
    topic = make_topic(PARTITIONS)
    records = [record for record in varied() if record.key is not None]
    rows = Rows(
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array(
            [[{"key": key, "value": value} for key, value in record.headers] for record in records], TYPES["headers"]
        ),
        np.array([record.timestamp_ms for record in records], np.int64),
    )
    partitions = partitions_of(rows.key, PARTITIONS)
    encoder = Encoder(compression=CompressionType.parse(codec), level=None, batch_bytes_max=16_384)
    with BatchProducer(client) as producer:
        for partition in range(PARTITIONS):
            for batch in encoder.encode(rows, np.flatnonzero(partitions == partition)):
                producer.send(topic, partition, batch)
        producer.flush()
    found = read_from(broker, topic, PARTITIONS)
    for partition in range(PARTITIONS):
        wanted = [
            record._replace(partition=partition)
            for record, own in zip(records, partitions, strict=True)
            if own == partition
        ]
        assert [each.record for each in found[partition]] == wanted
        assert seen(partition, columns_of(client, topic, partition, 0, len(wanted))) == found[partition]


def test_keys_land_where_librdkafka_puts_them_for_java(broker: Broker, make_topic: MakeTopic) -> None:
    """librdkafka's murmur2 is made to be the Java client's, null keys apart."""
    topic = make_topic(7)
    keys = [b"%d" % i * (i % 13) for i in range(500)]
    producer = confluent_kafka.Producer(broker.confluent(partitioner="murmur2", linger_ms=5))
    for key in keys:
        producer.produce(topic, key, key)
    assert producer.flush(20) == 0
    landed = {each.record.key: partition for partition, found in read_from(broker, topic, 7).items() for each in found}
    assert landed == dict(zip(keys, partitions_of(pa.array(keys, pa.binary()), 7).tolist(), strict=True))
