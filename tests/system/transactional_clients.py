"""The transactions of three Kafka clients with one face: producers that begin, write, commit offsets and end; readers of either
isolation; members of groups whose offsets go into a transaction.

Always true: a reader reads up to the end that its isolation shows it; what a producer has sent is acknowledged once `flush` has
returned.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import aiokafka
import confluent_kafka

TIMEOUT_S = 20.0
READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
Place = tuple[str, int]
"""A topic and a partition."""
Values = dict[Place, list[bytes]]


class TransactionalProducer(Protocol):
    async def init(self) -> None: ...
    async def begin(self) -> None: ...
    async def send(self, place: Place, value: bytes) -> None: ...
    async def flush(self) -> None: ...
    async def send_offsets(self, offsets: dict[Place, int], member: Any) -> None: ...
    async def commit(self) -> None: ...
    async def abort(self) -> None: ...
    async def close(self) -> None: ...


class TransactionalClient(Protocol):
    name: str
    protocols: tuple[str, ...]
    """Of groups."""

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer: ...

    async def read(self, bootstrap: str, places: list[Place], isolation: str) -> Values: ...

    def member(
        self, bootstrap: str, group: str, topic: str, count: int, protocol: str
    ) -> contextlib.AbstractAsyncContextManager[Any]:
        """A member of a group that has read so many records and committed nothing; what `send_offsets` takes of it."""
        ...


async def _in_time(is_over: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_over():
        assert time.monotonic() < deadline, f"{what}: not within {TIMEOUT_S:.0f} s"
        await asyncio.sleep(0.02)


class ConfluentProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "log_level": 0,
            }
        )

    async def init(self) -> None:
        self._producer.init_transactions(TIMEOUT_S)

    async def begin(self) -> None:
        self._producer.begin_transaction()

    async def send(self, place: Place, value: bytes) -> None:
        self._producer.produce(place[0], value, partition=place[1])

    async def flush(self) -> None:
        assert self._producer.flush(TIMEOUT_S) == 0

    async def send_offsets(self, offsets: dict[Place, int], member: Any) -> None:
        places = [confluent_kafka.TopicPartition(*place, offset) for place, offset in offsets.items()]
        self._producer.send_offsets_to_transaction(places, member, TIMEOUT_S)

    async def commit(self) -> None:
        self._producer.commit_transaction(TIMEOUT_S)

    async def abort(self) -> None:
        self._producer.abort_transaction(TIMEOUT_S)

    async def close(self) -> None:
        """It goes with its last reference."""


class ConfluentTransactions:
    name = "confluent-kafka"
    protocols: tuple[str, ...] = ("classic", "consumer")

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        return ConfluentProducer(bootstrap, transactional_id, timeout_ms)

    async def read(self, bootstrap: str, places: list[Place], isolation: str) -> Values:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
            }
        )
        consumer.assign([confluent_kafka.TopicPartition(*place, 0) for place in places])
        values: Values = {place: [] for place in places}
        unfinished = set(places)
        deadline = time.monotonic() + TIMEOUT_S
        while unfinished:
            assert time.monotonic() < deadline, f"did not read {unfinished} to the end"
            messages = consumer.consume(1_000, 0.05)
            for message in messages:
                topic, partition, value = message.topic(), message.partition(), message.value()
                assert topic is not None
                assert partition is not None
                error = message.error()
                if error is not None:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    unfinished.discard((topic, partition))
                else:
                    values[topic, partition].append(value or b"")
        consumer.close()
        return values

    @contextlib.asynccontextmanager
    async def member(self, bootstrap: str, group: str, topic: str, count: int, protocol: str) -> AsyncIterator[Any]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([topic])
        seen = 0

        def has_all() -> bool:
            nonlocal seen
            seen += len(consumer.consume(count, 0.05))
            return seen >= count

        try:
            await _in_time(has_all, "records")
            yield consumer.consumer_group_metadata()
        finally:
            consumer.close()


class AiokafkaProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )

    async def init(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self._producer.start()

    async def begin(self) -> None:
        await self._producer.begin_transaction()

    async def send(self, place: Place, value: bytes) -> None:
        await self._producer.send(place[0], value, partition=place[1])

    async def flush(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self._producer.flush()

    async def send_offsets(self, offsets: dict[Place, int], member: Any) -> None:
        places = {aiokafka.TopicPartition(*place): offset for place, offset in offsets.items()}
        async with asyncio.timeout(TIMEOUT_S):
            await self._producer.send_offsets_to_transaction(places, member)

    async def commit(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self._producer.commit_transaction()

    async def abort(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await self._producer.abort_transaction()

    async def close(self) -> None:
        with contextlib.suppress(Exception):  # it says again what it has said
            await self._producer.stop()


class AiokafkaTransactions:
    name = "aiokafka"
    protocols: tuple[str, ...] = ("classic",)

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        return AiokafkaProducer(bootstrap, transactional_id, timeout_ms)

    async def read(self, bootstrap: str, places: list[Place], isolation: str) -> Values:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False, fetch_max_wait_ms=20
        )
        values: Values = {place: [] for place in places}
        async with consumer, asyncio.timeout(TIMEOUT_S):
            assigned = [aiokafka.TopicPartition(*place) for place in places]
            consumer.assign(assigned)
            await consumer.seek_to_beginning(*assigned)
            ends = await consumer.end_offsets(assigned)
            while any([await consumer.position(each) < ends[each] for each in assigned]):
                for place, messages in (await consumer.getmany(timeout_ms=20)).items():
                    values[place.topic, place.partition] += [message.value for message in messages]
        return values

    @contextlib.asynccontextmanager
    async def member(self, bootstrap: str, group: str, topic: str, count: int, protocol: str) -> AsyncIterator[Any]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        async with consumer:
            async with asyncio.timeout(TIMEOUT_S):
                for _ in range(count):
                    await consumer.getone()
            yield group


class KafkaPythonProducer:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )

    async def init(self) -> None:
        self._producer.init_transactions()

    async def begin(self) -> None:
        self._producer.begin_transaction()

    async def send(self, place: Place, value: bytes) -> None:
        self._producer.send(place[0], value, partition=place[1])

    async def flush(self) -> None:
        self._producer.flush(TIMEOUT_S)

    async def send_offsets(self, offsets: dict[Place, int], member: Any) -> None:
        from kafka import OffsetAndMetadata, TopicPartition

        places = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
        self._producer.send_offsets_to_transaction(places, member)

    async def commit(self) -> None:
        self._producer.commit_transaction()

    async def abort(self) -> None:
        self._producer.abort_transaction()

    async def close(self) -> None:
        self._producer.close(0)


class KafkaPythonTransactions:
    name = "kafka-python"
    protocols: tuple[str, ...] = ("classic",)

    def producer(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> TransactionalProducer:
        return KafkaPythonProducer(bootstrap, transactional_id, timeout_ms)

    async def read(self, bootstrap: str, places: list[Place], isolation: str) -> Values:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level=isolation,
            group_id=None,
            enable_auto_commit=False,
            fetch_max_wait_ms=20,
        )
        values: Values = {place: [] for place in places}
        try:
            assigned = [TopicPartition(*place) for place in places]
            consumer.assign(assigned)
            consumer.seek_to_beginning(*assigned)
            ends = consumer.end_offsets(assigned)
            deadline = time.monotonic() + TIMEOUT_S
            while any(consumer.position(each) < ends[each] for each in assigned):
                assert time.monotonic() < deadline, f"did not read up to {ends}"
                for place, messages in consumer.poll(timeout_ms=20).items():
                    values[place.topic, place.partition] += [message.value for message in messages]
        finally:
            consumer.close()
        return values

    @contextlib.asynccontextmanager
    async def member(self, bootstrap: str, group: str, topic: str, count: int, protocol: str) -> AsyncIterator[Any]:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        # As in `member_process.py`: it has to know the topic before it joins, and to poll for longer than that takes.
        consumer.partitions_for_topic(topic)
        consumer.subscribe([topic])
        seen = 0

        def has_all() -> bool:
            nonlocal seen
            seen += sum(map(len, consumer.poll(timeout_ms=2_000).values()))
            return seen >= count

        try:
            await _in_time(has_all, "records")
            yield consumer.group_metadata()
        finally:
            consumer.close()


TRANSACTIONAL: tuple[TransactionalClient, ...] = (
    ConfluentTransactions(),
    AiokafkaTransactions(),
    KafkaPythonTransactions(),
)
