"""Transactions of our client, at both protocols, with librdkafka and our own consumer as readers.

Apache Kafka judges the client, and both judge our cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pytest
from bench.kafka_cluster import kafka_cluster
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition as ConfluentPartition

from strandline.client import aio, blocking
from strandline.client.errors import ConnectionLost, ProducerUnusable, TransactionAbortable, TransactionAborted
from strandline.client.flow.client import MAIN
from strandline.client.flow.descriptions import CreatedTopic, NewTopic
from strandline.client.flow.io import sleep
from strandline.client.flow.transaction_descriptions import DescribedTransaction
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.runtime.clock import SystemClock
from strandline.wire.feature_upgrades import FeatureUpgradeType
from tests.judges.java import judge
from tests.system.server import format_data, running

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

pytestmark = pytest.mark.java

R = TypeVar("R", bound="ApiResponse")
ROOT = Path(__file__).parents[2]
PARTITIONS = 2
FEATURE = "transaction.version"


PROPERTIES = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}


@contextmanager
def _kafka(level: int) -> Iterator[str]:
    judge()
    with kafka_cluster(1, features={FEATURE: level}, properties=PROPERTIES) as cluster:
        yield cluster.bootstrap


@contextmanager
def _ours(level: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        format_data(directory / "data", {FEATURE: level})
        with running(directory, directory / "data", PROPERTIES) as server:
            yield server.bootstrap


class Target(NamedTuple):
    transaction_version: int
    start: Callable[[], AbstractContextManager[str]]
    """Gives the bootstrap servers."""


TARGETS = {
    "kafka-0": Target(0, lambda: _kafka(0)),
    "kafka-2": Target(2, lambda: _kafka(2)),
    "ours-0": Target(0, lambda: _ours(0)),
    "ours-2": Target(2, lambda: _ours(2)),
}


@pytest.fixture(scope="module", params=TARGETS)
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    target = TARGETS[request.param]
    with target.start() as servers:
        with blocking.Client(servers) as client:
            blocking.Admin(client).list_topics()
            assert client.flow.cluster.transaction_version == target.transaction_version
        yield servers


class LossyClient(aio.AsyncClient):
    """Of these APIs, every other answer that comes is lost with its connection."""

    def __init__(self, bootstrap: str, lost: tuple[int, ...]) -> None:
        super().__init__(bootstrap, clock=SystemClock(), randomness=random.Random())
        self._lost = lost
        self.answers = Counter[int]()

    async def request(
        self,
        node_id: int | None,
        api_key: int,
        message: ApiRequest[R],
        *,
        timeout_ms: int | None = None,
        version_max: int | None = None,
        version_min: int = 0,
        lane: int = MAIN,
    ) -> R:
        answer = await super().request(
            node_id,
            api_key,
            message,
            timeout_ms=timeout_ms,
            version_max=version_max,
            version_min=version_min,
            lane=lane,
        )
        if api_key in self._lost:
            self.answers[api_key] += 1
            if self.answers[api_key] % 2:
                raise ConnectionLost("the answer was lost")
        return answer


@asynccontextmanager
async def connected(bootstrap: str, *topics: str, lost: tuple[int, ...] = ()) -> AsyncIterator[LossyClient]:
    """A client, and new topics of two partitions."""
    client = LossyClient(bootstrap, lost)
    async with client:
        made = await aio.Admin(client).create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
        assert all(isinstance(topic, CreatedTopic) for topic in made.values())
        yield client


def transactional(client: aio.AsyncClient, transactional_id: str, **config: int) -> aio.Producer:
    return aio.Producer(client, aio.ProducerConfig(transactional_id=transactional_id, **config))  # type: ignore[arg-type]


def by_confluent(bootstrap: str, topic: str, isolation: str = "read_committed") -> dict[int, list[bytes]]:
    """Everything that librdkafka reads up to the end of each partition."""
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([ConfluentPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(1_000, 0.2):
            partition, value = message.partition(), message.value()
            assert partition is not None
            if value is None or message.error() is not None:  # the end of the partition
                ended.add(partition)
            else:
                values[partition].append(value)
    consumer.close()
    return values


async def by_ours(client: aio.AsyncClient, topic: str) -> dict[int, list[bytes]]:
    """The same by our consumer, up to the last stable offset."""
    partitions: list[TopicPartition] = [(topic, partition) for partition in range(PARTITIONS)]
    config = aio.ConsumerConfig(isolation_level="read_committed", auto_offset_reset="earliest")
    consumer = aio.Consumer(client, config)
    consumer.assign(partitions)
    ends = await consumer.end_offsets(partitions)
    values: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    while any([await consumer.position(*key) < end for key, end in ends.items()]):
        for record in await consumer.poll(0.2):
            values[record.partition].append(record.value or b"")
    await consumer.close()
    return values


async def both_read(bootstrap: str, client: aio.AsyncClient, topic: str, expected: dict[int, list[bytes]]) -> None:
    """Markers may be on their way for a moment after the end was answered."""
    async with asyncio.timeout(20):
        while await by_ours(client, topic) != expected:
            await sleep(client.io, 0.1)
    assert await asyncio.to_thread(by_confluent, bootstrap, topic) == expected


async def test_committed_records_are_read_and_aborted_ones_are_not(bootstrap: str) -> None:
    topic = "ends"
    async with connected(bootstrap, topic) as client, transactional(client, topic) as producer:
        expected: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        written = Counter[int]()
        for number in range(30):
            keeps = number % 3 != 1
            with contextlib.suppress(RuntimeError):
                async with producer.transaction():
                    for index in range(number % 7):
                        value = b"%d-%d" % (number, index)
                        producer.send(topic, value, partition=index % PARTITIONS)
                        written[index % PARTITIONS] += 1
                        if keeps:
                            expected[index % PARTITIONS].append(value)
                    if number % 2:
                        await producer.flush()
                    if not keeps:
                        raise RuntimeError("abort")
        await both_read(bootstrap, client, topic, expected)
        uncommitted = await asyncio.to_thread(by_confluent, bootstrap, topic, "read_uncommitted")
        for partition, values in uncommitted.items():
            assert set(expected[partition]) <= set(values)
            assert len(values) <= written[partition], "what was not sent when it was aborted is not sent"


async def test_many_batches_in_flight_are_one_transaction(bootstrap: str) -> None:
    topic = "large"
    async with connected(bootstrap, topic) as client, transactional(client, topic, batch_size=2_000) as producer:
        values = [b"%d" % number + bytes(300) for number in range(2_000)]
        for keeps in (True, False, True):
            async with producer.transaction():
                deliveries = [producer.send(topic, value, partition=n % PARTITIONS) for n, value in enumerate(values)]
                if not keeps:
                    await deliveries[200]
                    await producer.abort_transaction()
            if keeps:
                assert all(delivery.done for delivery in deliveries)
            else:
                with pytest.raises(TransactionAborted):
                    await deliveries[-1]
        await both_read(bootstrap, client, topic, {p: values[p::PARTITIONS] * 2 for p in range(PARTITIONS)})


async def test_nothing_is_seen_before_the_commit(bootstrap: str) -> None:
    topic = "open"
    async with connected(bootstrap, topic) as client, transactional(client, topic) as producer:
        async with producer.transaction():
            await producer.send(topic, b"v", partition=0)
            await producer.flush()
            assert await by_ours(client, topic) == {0: [], 1: []}
        await both_read(bootstrap, client, topic, {0: [b"v"], 1: []})


async def test_a_second_producer_fences_the_first_and_aborts_its_transaction(bootstrap: str) -> None:
    topic = "fenced"
    async with connected(bootstrap, topic) as client, connected(bootstrap) as other:
        first, second = transactional(client, topic), transactional(other, topic)
        async with first.transaction():
            first.send(topic, b"first", partition=0)
        await first.init_transactions()
        first.begin_transaction()
        await first.send(topic, b"open", partition=0)
        async with second.transaction():
            await second.send(topic, b"second", partition=0)
        first.send(topic, b"late", partition=0)
        with pytest.raises(KafkaError) as refused:
            await first.commit_transaction()
        if isinstance(refused.value, TransactionAbortable):  # a leader has said it, who does not know why
            with pytest.raises(ProducerUnusable):
                await first.abort_transaction()
        with pytest.raises(ProducerUnusable, match="can only be closed") as fenced:
            first.begin_transaction()
        assert fenced.value.code is ErrorCode.PRODUCER_FENCED
        with pytest.raises(ProducerUnusable):
            first.send(topic, b"late", partition=0)
        await first.close()
        async with second.transaction():
            second.send(topic, b"again", partition=0)
        await both_read(bootstrap, client, topic, {0: [b"first", b"second", b"again"], 1: []})
        await second.close()


async def state_of(client: aio.AsyncClient, transactional_id: str) -> str:
    described = (await aio.Admin(client).describe_transactions([transactional_id]))[transactional_id]
    assert isinstance(described, DescribedTransaction)
    return described.state


async def test_a_producer_that_took_too_long_is_fenced(bootstrap: str) -> None:
    topic = "slow"
    async with connected(bootstrap, topic) as client:
        producer = transactional(client, topic, transaction_timeout_ms=1_000)
        await producer.init_transactions()
        producer.begin_transaction()
        await producer.send(topic, b"v", partition=0)
        async with asyncio.timeout(20):
            while await state_of(client, topic) != "CompleteAbort":
                await sleep(client.io, 0.1)
        with pytest.raises(KafkaError):
            await producer.commit_transaction()
        with pytest.raises(KafkaError):
            await producer.abort_transaction()
        await producer.close()
        async with transactional(client, topic) as next_one, next_one.transaction():
            next_one.send(topic, b"next", partition=0)
        await both_read(bootstrap, client, topic, {0: [b"next"], 1: []})


async def test_after_a_lost_record_the_transaction_is_aborted_and_the_next_one_works(bootstrap: str) -> None:
    topic = "spoilt"
    async with connected(bootstrap, topic) as client, transactional(client, topic) as producer:
        for _ in range(2):
            block = producer.transaction()
            await block.__aenter__()
            await producer.send(topic, b"v", partition=0)
            producer.send(topic, b"nowhere", partition=9)
            with pytest.raises(TransactionAbortable, match="not 9"):
                await block.__aexit__(None, None, None)
            async with producer.transaction():
                producer.send(topic, b"good", partition=0)
        await both_read(bootstrap, client, topic, {0: [b"good", b"good"], 1: []})


async def test_a_lost_answer_changes_nothing(bootstrap: str) -> None:
    """InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, TxnOffsetCommit: done once, asked twice."""
    topic = "lost"
    async with connected(bootstrap, topic, lost=(22, 24, 25, 26, 28)) as client:
        expected: list[bytes] = []
        async with transactional(client, topic) as producer:
            stamp = aio.Consumer(client, aio.ConsumerConfig(group_id=topic)).group_metadata()
            for number in range(8):
                with contextlib.suppress(RuntimeError):
                    async with producer.transaction():
                        producer.send(topic, b"%d" % number, partition=0)
                        await producer.send_offsets_to_transaction({(topic, 0): number}, stamp)
                        if number % 4 == 3:
                            raise RuntimeError("abort")
                        expected.append(b"%d" % number)
        assert min(client.answers[key] for key in (22, 26, 28)) >= 2
        assert await committed(client, topic, topic) == {0: 6}
        await both_read(bootstrap, client, topic, {0: expected, 1: []})


async def committed(client: aio.AsyncClient, group_id: str, topic: str) -> dict[int, int]:
    """The group's stable offsets."""
    keys: list[TopicPartition] = [(topic, partition) for partition in range(PARTITIONS)]
    consumer = aio.Consumer(client, aio.ConsumerConfig(group_id=group_id))
    found = await consumer.committed(keys)
    await consumer.close()
    return {partition: offset.offset for (_, partition), offset in found.items() if offset is not None}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_consume_transform_produce(bootstrap: str, protocol: str) -> None:
    """Each record of the input is once in the output, although every third transaction is aborted."""
    source, target = f"in-{protocol}", f"out-{protocol}"
    async with connected(bootstrap, source, target) as client:
        async with aio.Producer(client) as producer:
            for number in range(200):
                producer.send(source, b"%d" % number, partition=number % PARTITIONS)
        config = aio.ConsumerConfig(
            group_id=source,
            group_protocol=protocol,  # type: ignore[arg-type]
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=20,
        )
        consumer = aio.Consumer(client, config)
        consumer.subscribe([source])
        transactions = 0
        async with transactional(client, source) as producer, asyncio.timeout(60):
            while sum((await committed(client, source, source)).values()) < 200:
                records = await consumer.poll(0.5)
                if not records:
                    continue
                transactions += 1
                try:
                    async with producer.transaction():
                        for record in records:
                            producer.send(target, record.value, partition=record.partition)
                        offsets = {(record.topic, record.partition): record.offset + 1 for record in records}
                        await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                        if transactions % 3 == 0:
                            raise RuntimeError("abort")
                except RuntimeError:
                    for record in reversed(records):
                        consumer.seek(record.topic, record.partition, record.offset)
        stale = consumer.group_metadata()._replace(generation_id=99)
        async with transactional(client, source) as producer:
            with pytest.raises(TransactionAbortable):
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({(source, 0): 1}, stale)
        await consumer.close()
        assert await committed(client, source, source) == {0: 100, 1: 100}
        expected = {p: [b"%d" % n for n in range(p, 200, PARTITIONS)] for p in range(PARTITIONS)}
        await both_read(bootstrap, client, target, expected)


async def test_the_example_of_the_page(bootstrap: str) -> None:
    source, target = "example", "doubled"
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/transactions.md").read_text(), re.DOTALL)
    example: dict[str, Any] = {}
    exec(code, example)  # noqa: S102  # ours
    async with connected(bootstrap, source, target) as client:
        async with aio.Producer(client) as producer:
            for number in range(100):
                producer.send(source, b"%d," % number, partition=number % PARTITIONS)
        task = asyncio.ensure_future(example["double"](client, source, target, "example-1"))
        async with asyncio.timeout(30):
            while sum((await committed(client, f"double-{source}", source)).values()) < 100:
                await sleep(client.io, 0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        read = await by_ours(client, target)
        assert sorted(value for values in read.values() for value in values) == sorted(
            b"%d," % number * 2 for number in range(100)
        )


@pytest.mark.parametrize("start", [_kafka, _ours])
async def test_the_level_of_the_cluster_changes_while_a_producer_lives(
    start: Callable[[int], AbstractContextManager[str]],
) -> None:
    """Up while a transaction is open, down between two: Kafka cannot end one of version 2 at level 0.
    A client hears of it with its next connection.
    """
    topic = "levels"

    async def change(client: aio.AsyncClient, level: int) -> None:
        type_ = FeatureUpgradeType.UPGRADE if level else FeatureUpgradeType.SAFE_DOWNGRADE
        assert await aio.Admin(client).update_features({FEATURE: level}, type_) == {FEATURE: None}
        async with asyncio.timeout(20):
            while client.cluster.transaction_version != level:
                client.close_lane(MAIN)
                await client.refresh([topic])

    with start(0) as bootstrap:
        async with connected(bootstrap, topic) as client, transactional(client, topic) as producer:
            for number in range(6):
                if number == 4:
                    await change(client, 0)
                async with producer.transaction():
                    await producer.send(topic, b"%d" % number, partition=0)
                    if number == 1:
                        await change(client, 2)
                    await producer.send(topic, b"%d'" % number, partition=0)
            (described,) = (await aio.Admin(client).describe_transactions([topic])).values()
            assert isinstance(described, DescribedTransaction)
            assert described.producer_epoch == 3, "one fence, two ends that brought the next epoch"
            values = [b"%d%s" % (number, half) for number in range(6) for half in (b"", b"'")]
            await both_read(bootstrap, client, topic, {0: values, 1: []})


def test_the_blocking_client_has_transactions_too(bootstrap: str) -> None:
    topic = "blocking"
    with blocking.Client(bootstrap) as client:
        blocking.Admin(client).create_topics([NewTopic(topic, PARTITIONS, 1)])
        with blocking.Producer(client, blocking.ProducerConfig(transactional_id=topic)) as producer:
            with producer.transaction():
                producer.send(topic, b"committed", partition=0)
            with contextlib.suppress(RuntimeError), producer.transaction():
                producer.send(topic, b"aborted", partition=0).result()
                raise RuntimeError("abort")
            producer.begin_transaction()
            sent = producer.send(topic, b"again", partition=1)
            stamp = blocking.Consumer(client, blocking.ConsumerConfig(group_id=topic)).group_metadata()
            producer.send_offsets_to_transaction({(topic, 0): 7}, stamp)
            producer.commit_transaction()
            assert sent.done
            producer.begin_transaction()
            producer.send(topic, b"left open", partition=1).result()
        consumer = blocking.Consumer(client, blocking.ConsumerConfig(group_id=topic))
        assert [o and o.offset for o in consumer.committed([(topic, 0)]).values()] == [7]
    assert by_confluent(bootstrap, topic) == {0: [b"committed"], 1: [b"again"]}
