"""Our client against Apache Kafka, and librdkafka as the witness of what it wrote."""

# mypy: disable-error-code="arg-type, var-annotated"

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bench.kafka_cluster import kafka_cluster
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition

from strandline.client import aio, blocking
from strandline.client.bulk import OffsetOutOfRange, PartitionFetcher, TopicRecreated
from strandline.client.bulk_producer import BatchProducer
from strandline.client.flow.descriptions import ConfigResource, CreatedTopic, NewTopic, ResourceType, TopicDescription
from strandline.client.flow.group_descriptions import GroupDescription, OffsetAndMetadata
from strandline.config.alter import Alteration, Op
from strandline.errors import ErrorCode, KafkaError
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import iterate
from strandline.records.ready import ReadyBatch
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


async def test_the_asyncio_client_reads_every_codec(bootstrap: str, topic: str) -> None:
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


def test_confluent_reads_what_we_wrote(bootstrap: str, topic: str) -> None:
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


def test_the_blocking_client_administers_and_moves_records(bootstrap: str) -> None:
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
        named = admin.describe_configs([resource], names=["message.timestamp.type"])[resource]
        assert isinstance(named, list)
        assert [(entry.name, entry.value) for entry in named] == [("message.timestamp.type", "CreateTime")]
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
        (log_dir,) = admin.describe_log_dirs([node.node_id], [("blocking", 0)])[node.node_id]
        assert log_dir.replicas.keys() == {("blocking", 0)}
        assert admin.delete_topics(["blocking"]) == {"blocking": None}


# Whole batches


def _ready(first: int, count: int, size_bytes: int, codec: CompressionType) -> ReadyBatch:
    builder = BatchBuilder()
    for number in range(first, first + count):
        builder.append(b"%d" % number, random.Random(number).randbytes(size_bytes), HEADERS, SystemClock().wall_ms())
    return ReadyBatch(builder.build(codec=codec), builder.records_count, builder.max_timestamp)


def test_whole_batches_are_produced_fetched_and_read_by_confluent(bootstrap: str) -> None:
    per_batch, batches, size_bytes = 100, 30, 5_000
    with blocking.Client(bootstrap) as client:
        admin = blocking.Admin(client)
        admin.create_topics([NewTopic("whole", len(CompressionType), 1)])
        with BatchProducer(client, blocking.ProducerConfig(buffer_memory=4_000_000)) as producer:
            assert producer.partitions_count("whole") == len(CompressionType)
            for codec in CompressionType:
                for number in range(batches):
                    producer.send("whole", int(codec), _ready(number * per_batch, per_batch, size_bytes, codec))
            producer.flush()
            written = producer.written()
        total = per_batch * batches
        assert {key: each[:3] for key, each in written.items()} == {
            ("whole", int(c)): (0, total, total) for c in CompressionType
        }

        described = admin.describe_topics(["whole"])["whole"]
        assert isinstance(described, TopicDescription)
        for codec in CompressionType:
            config = blocking.ConsumerConfig(max_partition_fetch_bytes=3_000_000, isolation_level="read_committed")
            start, end = 150, total - 50
            fetcher = PartitionFetcher(client, "whole", int(codec), start, end, config, topic_id=described.topic_id)
            numbers = []
            for piece in fetcher:
                assert piece.aborted == []
                for position, header in iterate(piece.data):
                    batch = piece.data[position : position + header.size_bytes]
                    for record in decode(batch):
                        if piece.offset <= record.offset < end:
                            assert record.value == random.Random(record.offset).randbytes(size_bytes)
                            numbers.append(record.offset)
            assert numbers == list(range(start, end))
        with pytest.raises(OffsetOutOfRange, match=rf"whole-0 has no offset 9999: its log goes from 0 to {total}"):
            list(PartitionFetcher(client, "whole", 0, 9_999, 10_000))

    consumer = ConfluentConsumer({"bootstrap.servers": bootstrap, "group.id": "w", "check.crcs": True})
    consumer.assign([TopicPartition("whole", int(codec), total - 10) for codec in CompressionType])
    seen: list[Any] = []
    while len(seen) < 10 * len(CompressionType):
        seen += consumer.consume(100, 5.0)
    consumer.close()
    assert all(message.value() == random.Random(message.offset()).randbytes(size_bytes) for message in seen)
    assert all(tuple(message.headers()) == HEADERS for message in seen)


def test_a_topic_that_kafka_made_again_is_not_read_on(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as client:
        admin = blocking.Admin(client)
        made = admin.create_topics([NewTopic("again", 1, 1)])["again"]
        assert isinstance(made, CreatedTopic)
        with BatchProducer(client) as producer:
            for number in range(20):
                producer.send("again", 0, _ready(number * 100, 100, 1_000, CompressionType.NONE))
            producer.flush()
        config = blocking.ConsumerConfig(max_partition_fetch_bytes=300_000)
        pieces = iter(PartitionFetcher(client, "again", 0, 0, 2_000, config, topic_id=made.topic_id))
        next(pieces)
        admin.delete_topics(["again"])
        while not isinstance(admin.create_topics([NewTopic("again", 1, 1)])["again"], CreatedTopic):
            pass
        with pytest.raises(TopicRecreated, match="topic 'again' was deleted and made again"):
            list(pieces)
        with pytest.raises(KafkaError, match="no-such-topic"):
            BatchProducer(client, allow_auto_topic_creation=False).partitions_count("no-such-topic")


# Groups

GROUP_PARTITIONS = 6
PROTOCOLS = {
    "eager": {"group_protocol": "classic"},
    "cooperative": {"group_protocol": "classic", "partition_assignment_strategy": ("cooperative-sticky",)},
    "consumer": {"group_protocol": "consumer"},
}


class Members:
    """Consumers of one group that poll beside each other, and what each of them has consumed."""

    def __init__(self, client: aio.AsyncClient, topic: str, **config: Any) -> None:
        self._client = client
        self._topic = topic
        self._config = {"group_id": topic, "auto_offset_reset": "earliest", "heartbeat_interval_ms": 500} | config
        self.members: dict[str, aio.Consumer] = {}
        self.consumed: list[tuple[int, int]] = []
        self.lost: list[str] = []

    def join(self, name: str, **config: Any) -> aio.Consumer:
        member = aio.Consumer(self._client, aio.ConsumerConfig(**self._config, **config))
        member.subscribe([self._topic], on_lost=lambda _: self.lost.append(name))
        self.members[name] = member
        return member

    async def poll_until(self, holds: Callable[[], bool], timeout_s: float = 60.0) -> None:
        async def poll(member: aio.Consumer) -> None:
            for record in await member.poll(0.2):
                self.consumed.append((record.partition, record.offset))

        async with asyncio.timeout(timeout_s):
            while not holds():
                await asyncio.gather(*(poll(member) for member in self.members.values()))

    def is_shared_evenly(self) -> bool:
        owned = [partition for member in self.members.values() for partition in member.assignment()]
        sizes = [len(member.assignment()) for member in self.members.values()]
        return len(set(owned)) == len(owned) == GROUP_PARTITIONS and max(sizes) - min(sizes) <= 1

    def shares(self) -> dict[str, set[tuple[str, int]]]:
        return {name: set(member.assignment()) for name, member in self.members.items()}


async def _fill(client: aio.AsyncClient, topic: str, first: int, count: int) -> None:
    async with aio.Producer(client) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, partition=number % GROUP_PARTITIONS)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_members_join_leave_and_go_on_where_the_group_was(bootstrap: str, protocol: str) -> None:
    topic = f"group-{protocol}"
    async with aio.AsyncClient(bootstrap, clock=SystemClock(), randomness=random.Random()) as client:
        admin = aio.Admin(client)
        await admin.create_topics([NewTopic(topic, GROUP_PARTITIONS, 1)])
        await _fill(client, topic, 0, 300)
        group = Members(client, topic, **PROTOCOLS[protocol])
        group.join("a")
        await group.poll_until(lambda: group.is_shared_evenly() and len(group.consumed) == 300)
        alone = group.shares()["a"]
        group.join("b")
        group.join("c")
        await group.poll_until(group.is_shared_evenly)
        if protocol != "eager":
            assert group.shares()["a"] < alone, "it keeps what need not move"

        described = (await admin.describe_groups([topic]))[topic]
        assert isinstance(described, GroupDescription)
        assert (described.state, described.type) == ("Stable", "Consumer" if protocol == "consumer" else "Classic")
        assert {frozenset(m.assignment) for m in described.members} == set(map(frozenset, group.shares().values()))
        assert (topic, described.type) in [(g.group_id, g.type) for g in await admin.list_groups(states=["Stable"])]

        await group.members.pop("a").close()
        await group.poll_until(group.is_shared_evenly)
        await _fill(client, topic, 300, 300)
        await group.poll_until(lambda: len(group.consumed) >= 600)
        assert sorted(group.consumed) == [(p, o) for p in range(GROUP_PARTITIONS) for o in range(100)]
        assert group.lost == []
        for member in group.members.values():
            await member.close()
        offsets = (await admin.list_group_offsets({topic: None}))[topic]
        assert offsets == {(topic, p): OffsetAndMetadata(100, 0) for p in range(GROUP_PARTITIONS)}

        assert await admin.alter_group_offsets(topic, {(topic, 0): OffsetAndMetadata(90, 0, "moved")}) == {
            (topic, 0): None
        }
        assert await admin.delete_group_offsets(topic, [(topic, 1)]) == {(topic, 1): None}
        again = Members(client, topic, **PROTOCOLS[protocol])
        member = again.join("again")
        await again.poll_until(lambda: len(again.consumed) == 110)
        assert sorted(again.consumed) == [(0, o) for o in range(90, 100)] + [(1, o) for o in range(100)]
        assert await member.committed([(topic, 5)]) == {(topic, 5): OffsetAndMetadata(100, 0)}
        refused = (await admin.delete_groups([topic]))[topic]
        assert isinstance(refused, KafkaError)
        assert refused.code is ErrorCode.NON_EMPTY_GROUP
        await member.close()
        assert await admin.delete_groups([topic]) == {topic: None}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_static_member_comes_back_to_what_it_had(bootstrap: str, protocol: str) -> None:
    topic = f"static-{protocol}"
    async with aio.AsyncClient(bootstrap, clock=SystemClock(), randomness=random.Random()) as client:
        await aio.Admin(client).create_topics([NewTopic(topic, GROUP_PARTITIONS, 1)])
        group = Members(client, topic, **PROTOCOLS[protocol])
        group.join("a", group_instance_id="i-a")
        group.join("b", group_instance_id="i-b")
        await group.poll_until(group.is_shared_evenly)
        before = group.shares()
        generation = group.members["b"].group_metadata().generation_id
        await group.members.pop("a").close()
        group.join("a", group_instance_id="i-a")
        await group.poll_until(group.is_shared_evenly)
        assert group.shares() == before
        assert group.members["b"].group_metadata().generation_id == generation
        for member in group.members.values():
            await member.close()


def test_the_blocking_client_consumes_as_a_member_of_the_same_group_as_confluent(bootstrap: str) -> None:
    with blocking.Client(bootstrap) as client:
        blocking.Admin(client).create_topics([NewTopic("mixed", GROUP_PARTITIONS, 1)])
        theirs = ConfluentConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "mixed",
                "partition.assignment.strategy": "cooperative-sticky",
                "heartbeat.interval.ms": 500,
            }
        )
        theirs.subscribe(["mixed"])
        config = blocking.ConsumerConfig(
            group_id="mixed", partition_assignment_strategy=("cooperative-sticky",), heartbeat_interval_ms=500
        )
        ours = blocking.Consumer(client, config)
        ours.subscribe(["mixed"])
        while not (len(ours.assignment()) == len(theirs.assignment()) == GROUP_PARTITIONS // 2):
            ours.poll(0.2)
            theirs.poll(0.2)
        owned = {partition for _, partition in ours.assignment()} | {tp.partition for tp in theirs.assignment()}
        assert owned == set(range(GROUP_PARTITIONS))
        theirs.close()
        while len(ours.assignment()) < GROUP_PARTITIONS:
            ours.poll(0.2)
        ours.close()
