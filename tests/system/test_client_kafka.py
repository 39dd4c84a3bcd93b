"""Our client against Apache Kafka, and librdkafka as the witness of what it wrote."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
from bench.kafka_cluster import kafka_cluster
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition

from strandline.client import aio, blocking
from strandline.client.flow.described import ConfigResource, CreatedTopic, NewTopic, ResourceType, TopicDescription
from strandline.config.alter import Alteration, Op
from strandline.errors import ErrorCode, KafkaError
from strandline.records.compression import CompressionType
from strandline.runtime.clock import SystemClock
from tests.judges.java import judge

pytestmark = pytest.mark.java

HEADERS = (("h", b"x"), ("h", None))
VALUES = [None, b"", *(random.Random(size).randbytes(size) for size in (1, 100, 20_000, 400_000))]
PARTITIONS = [("codecs", index) for index in range(len(CompressionType))]


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    judge()
    with kafka_cluster(1) as cluster:
        yield cluster.bootstrap


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> str:
    """One partition for each codec, written by the asyncio client."""
    asyncio.run(_write(bootstrap))
    return "codecs"


async def _write(bootstrap: str) -> None:
    async with aio.AsyncClient(bootstrap, clock=SystemClock(), randomness=random.Random()) as client:
        made = await aio.Admin(client).create_topics(
            [NewTopic("codecs", len(PARTITIONS), 1, {"max.message.bytes": "2000000"})]
        )
        assert isinstance(made["codecs"], CreatedTopic)
        for codec in CompressionType:
            config = aio.ProducerConfig(compression_type=codec, max_request_size=2_000_000, linger_ms=0)
            async with aio.Producer(client, config) as producer:
                sent = [
                    producer.send("codecs", value, b"%d" % i, int(codec), HEADERS) for i, value in enumerate(VALUES)
                ]
                assert [(await delivery).offset for delivery in sent] == list(range(len(VALUES)))


async def test_the_asyncio_client_reads_every_codec(bootstrap: str, topic: str):
    async with aio.AsyncClient(bootstrap, clock=SystemClock(), randomness=random.Random()) as client:
        consumer = aio.Consumer(client, aio.ConsumerConfig(auto_offset_reset="earliest"))
        consumer.assign(PARTITIONS)
        assert set((await consumer.end_offsets(PARTITIONS)).values()) == {len(VALUES)}
        records = []
        while len(records) < len(PARTITIONS) * len(VALUES):
            records += await consumer.poll(5.0)
        for _, partition in PARTITIONS:
            mine = [record for record in records if record.partition == partition]
            assert [record.value for record in mine] == VALUES
            assert [record.offset for record in mine] == list(range(len(VALUES)))
            assert all(record.headers == HEADERS for record in mine)
        consumer.seek(topic, 0, 4)
        again = await consumer.poll(5.0)
        assert (again[0].offset, again[0].value) == (4, VALUES[4])
        await consumer.close()


def test_confluent_reads_what_we_wrote(bootstrap: str, topic: str):
    consumer = ConfluentConsumer({"bootstrap.servers": bootstrap, "group.id": "g", "check.crcs": True})
    consumer.assign([TopicPartition(topic, partition, 0) for _, partition in PARTITIONS])
    messages = []
    while len(messages) < len(PARTITIONS) * len(VALUES):
        messages += consumer.consume(len(PARTITIONS) * len(VALUES) - len(messages), 5.0)
    consumer.close()
    for _, partition in PARTITIONS:
        mine = [message for message in messages if message.partition() == partition]
        assert [message.value() for message in mine] == VALUES
        assert all(tuple(message.headers()) == HEADERS for message in mine)


def test_the_blocking_client_administers_and_moves_records(bootstrap: str):
    with blocking.Client(bootstrap) as client:
        admin = blocking.Admin(client)
        assert isinstance(admin.create_topics([NewTopic("blocking", 1, 1)])["blocking"], CreatedTopic)
        refused = admin.create_topics([NewTopic("blocking", 1, 1)])["blocking"]
        assert isinstance(refused, KafkaError)
        assert refused.code is ErrorCode.TOPIC_ALREADY_EXISTS

        with blocking.Producer(client) as producer:
            sent = [producer.send("blocking", b"%d" % i) for i in range(5_000)]
        assert [record.result().offset for record in sent] == list(range(5_000))
        consumer = blocking.Consumer(client, blocking.ConsumerConfig(auto_offset_reset="earliest"))
        consumer.assign([("blocking", 0)])
        values: list[bytes | None] = []
        while len(values) < 5_000:
            values += [record.value for record in consumer.poll(5.0)]
        assert values == [b"%d" % i for i in range(5_000)]

        resource = ConfigResource(ResourceType.TOPIC, "blocking")
        assert admin.alter_configs({resource: [Alteration("retention.ms", Op.SET, "1000000")]}) == {resource: None}
        configs = admin.describe_configs([resource])[resource]
        assert isinstance(configs, list)
        assert {entry.name: entry.value for entry in configs}["retention.ms"] == "1000000"
        assert admin.delete_records({("blocking", 0): 100}) == {("blocking", 0): 100}
        assert consumer.beginning_offsets([("blocking", 0)]) == {("blocking", 0): 100}
        (producers,) = admin.describe_producers([("blocking", 0)]).values()
        assert isinstance(producers, list)
        assert producers[0].last_sequence == 4_999
        assert admin.create_partitions({"blocking": 3}) == {"blocking": None}
        described = admin.describe_topics(["blocking"])["blocking"]
        assert isinstance(described, TopicDescription)
        assert len(described.partitions) == 3
        assert described.partitions[0].elr == ()
        (node,) = admin.describe_cluster().brokers
        (log_dir,) = admin.describe_log_dirs([node.node_id])[node.node_id]
        assert log_dir.replicas["blocking", 0].size_bytes > 0
        assert admin.delete_topics(["blocking"]) == {"blocking": None}
