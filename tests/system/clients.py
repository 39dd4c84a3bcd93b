"""Three Kafka clients with one face, so that what one writes another can read.

`write` returns the offset of every record in the order given; `read` returns everything a topic holds, by partition. Both use
the client's own means; nothing of ours is between them and the broker.
"""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import aiokafka
import confluent_kafka

from tests.system.server import Server, eventually

TIMEOUT_S = 20.0
MESSAGE_BYTES_MAX = 1_048_588
"""Kafka's default of message.max.bytes; some clients start lower."""

Header = tuple[str, bytes | None]


class Rec(NamedTuple):
    """A record as a client sends it."""

    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[Header, ...] = ()


class Seen(NamedTuple):
    """A record as a client reads it."""

    offset: int
    record: Rec


@dataclass(frozen=True, slots=True)
class Broker:
    """Where clients connect: plainly, or with TLS if there is a file of certificates to trust."""

    bootstrap: str
    cafile: str | None
    server: Server | None = None
    """The process, if it is ours."""

    def confluent(self, **more: Any) -> dict[str, Any]:
        tls = {"security.protocol": "SSL", "ssl.ca.location": self.cafile} if self.cafile else {}
        renamed = {key.replace("_", "."): value for key, value in more.items()}
        return {"bootstrap.servers": self.bootstrap, **tls, **renamed}

    def consumer(self, **more: Any) -> confluent_kafka.Consumer:
        """A consumer that belongs to no group: librdkafka wants a name for one all the same."""
        settings = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
        return confluent_kafka.Consumer(self.confluent(**more) | settings)

    def aiokafka(self) -> dict[str, Any]:
        tls = {"security_protocol": "SSL", "ssl_context": self._context()} if self.cafile else {}
        return {"bootstrap_servers": self.bootstrap, **tls}

    def kafka_python(self) -> dict[str, Any]:
        tls = {"security_protocol": "SSL", "ssl_cafile": self.cafile} if self.cafile else {}
        return {"bootstrap_servers": self.bootstrap, **tls}

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.cafile)


class Client(Protocol):
    name: str
    codecs: tuple[str, ...]

    async def write(
        self, broker: Broker, topic: str, records: Sequence[Rec], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]: ...

    async def read(self, broker: Broker, topic: str, partitions: int = 1) -> dict[int, list[Seen]]: ...


class Confluent:
    """librdkafka."""

    name = "confluent-kafka"
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

    async def write(
        self, broker: Broker, topic: str, records: Sequence[Rec], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        offsets: dict[int, int] = {}
        errors: list[confluent_kafka.KafkaError] = []
        producer = confluent_kafka.Producer(
            broker.confluent(
                linger_ms=5, compression_type=codec, enable_idempotence=idempotent, message_max_bytes=MESSAGE_BYTES_MAX
            )
        )
        _await_partitions(producer, topic, {record.partition for record in records})
        for index, record in enumerate(records):

            def delivered(
                error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message, index: int = index
            ) -> None:
                if error is not None:
                    errors.append(error)
                else:
                    offset = message.offset()
                    assert offset is not None
                    offsets[index] = offset

            producer.produce(
                topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=delivered,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )
        unsent = producer.flush(TIMEOUT_S)
        assert not errors, errors[0]
        assert unsent == 0, f"{unsent} records were not acknowledged"
        return [offsets[index] for index in range(len(records))]

    async def read(self, broker: Broker, topic: str, partitions: int = 1) -> dict[int, list[Seen]]:
        return read_from(broker, topic, partitions)


def _await_partitions(producer: confluent_kafka.Producer, topic: str, partitions: set[int]) -> None:
    """librdkafka refuses a partition that its broker has not heard of yet: partitions that were just added."""

    def are_known() -> bool:
        found = producer.list_topics(topic, timeout=10).topics[topic].partitions
        return not found or partitions <= found.keys()

    eventually(are_known, f"partitions {sorted(partitions)} of {topic} are known", 30)


def read_from(broker: Broker, topic: str, partitions: int = 1, start: int = 0, **config: Any) -> dict[int, list[Seen]]:
    """With librdkafka, by assignment, from an offset to the end of what this client may see."""
    return read_topics(broker, [topic], partitions, start, **config)[topic]


def read_topics(
    broker: Broker, topics: Sequence[str], partitions: int, start: int, **config: Any
) -> dict[str, dict[int, list[Seen]]]:
    """The same for several topics with as many partitions each."""
    consumer = broker.consumer(check_crcs=True, enable_partition_eof=True, fetch_wait_max_ms=50, **config)
    try:
        unfinished = {(topic, partition) for topic in topics for partition in range(partitions)}
        consumer.assign([confluent_kafka.TopicPartition(*each, start) for each in sorted(unfinished)])
        seen: dict[str, dict[int, list[Seen]]] = {topic: {each: [] for each in range(partitions)} for topic in topics}
        deadline = time.monotonic() + TIMEOUT_S
        while unfinished:
            assert time.monotonic() < deadline, f"{unfinished} not read to the end in {TIMEOUT_S:.0f} s"
            for message in consumer.consume(1000, 0.05):
                error, topic, partition = message.error(), message.topic(), message.partition()
                assert topic is not None
                assert partition is not None
                if error is None:
                    seen[topic][partition].append(_seen(message, partition))
                else:
                    assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                    unfinished.discard((topic, partition))
        return seen
    finally:
        consumer.close()


def _seen(message: confluent_kafka.Message, partition: int) -> Seen:
    offset, (kind, timestamp_ms) = message.offset(), message.timestamp()
    assert offset is not None
    assert kind == confluent_kafka.TIMESTAMP_CREATE_TIME
    headers: Any = message.headers() or ()
    key: Any = message.key()
    value: Any = message.value()
    return Seen(offset, Rec(partition, key, value, timestamp_ms, tuple(headers)))


class Aiokafka:
    name = "aiokafka"
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

    async def write(
        self, broker: Broker, topic: str, records: Sequence[Rec], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        compression = None if codec == "none" else codec
        producer = aiokafka.AIOKafkaProducer(
            **broker.aiokafka(), compression_type=compression, enable_idempotence=idempotent, linger_ms=5
        )
        async with producer:
            sent = [
                await producer.send(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    timestamp_ms=record.timestamp_ms,
                    headers=list(record.headers),
                )
                for record in records
            ]
            return [(await each).offset for each in sent]

    async def read(self, broker: Broker, topic: str, partitions: int = 1) -> dict[int, list[Seen]]:
        async with self.consumer(broker) as consumer:
            assigned = [aiokafka.TopicPartition(topic, partition) for partition in range(partitions)]
            consumer.assign(assigned)
            await consumer.seek_to_beginning(*assigned)
            ends = await consumer.end_offsets(assigned)
            seen: dict[int, list[Seen]] = {partition: [] for partition in range(partitions)}
            deadline = time.monotonic() + TIMEOUT_S
            while any([await consumer.position(each) < ends[each] for each in assigned]):
                assert time.monotonic() < deadline, f"did not read up to {ends} in {TIMEOUT_S:.0f} s"
                for messages in (await consumer.getmany(timeout_ms=50)).values():
                    for m in messages:
                        record = Rec(m.partition, m.key, m.value, m.timestamp, tuple(m.headers))
                        seen[m.partition].append(Seen(m.offset, record))
            return seen

    @contextlib.asynccontextmanager
    async def consumer(self, broker: Broker) -> AsyncIterator[Any]:
        consumer = aiokafka.AIOKafkaConsumer(**broker.aiokafka(), enable_auto_commit=False, auto_offset_reset="none")
        async with consumer:
            yield consumer


class KafkaPython:
    """Its codecs besides gzip come from packages of their own, which the lock file names."""

    name = "kafka-python"
    codecs: tuple[str, ...] = ("none", "gzip", "snappy", "lz4", "zstd")

    async def write(
        self, broker: Broker, topic: str, records: Sequence[Rec], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        from kafka import KafkaProducer

        compression = None if codec == "none" else codec
        producer = KafkaProducer(
            **broker.kafka_python(), compression_type=compression, enable_idempotence=idempotent, linger_ms=5
        )
        try:
            sent = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    list(record.headers),
                    record.partition,
                    record.timestamp_ms,
                )
                for record in records
            ]
            return [each.get(TIMEOUT_S).offset for each in sent]
        finally:
            producer.close()

    async def read(self, broker: Broker, topic: str, partitions: int = 1) -> dict[int, list[Seen]]:
        from kafka import TopicPartition

        with self.consumer(broker) as consumer:
            assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
            consumer.assign(assigned)
            consumer.seek_to_beginning(*assigned)
            ends = consumer.end_offsets(assigned)
            seen: dict[int, list[Seen]] = {partition: [] for partition in range(partitions)}
            deadline = time.monotonic() + TIMEOUT_S
            while any(consumer.position(each) < ends[each] for each in assigned):
                assert time.monotonic() < deadline, f"did not read up to {ends} in {TIMEOUT_S:.0f} s"
                for messages in consumer.poll(timeout_ms=50).values():
                    for m in messages:
                        record = Rec(m.partition, m.key, m.value, m.timestamp, tuple(m.headers))
                        seen[m.partition].append(Seen(m.offset, record))
            return seen

    @contextlib.contextmanager
    def consumer(self, broker: Broker) -> Iterator[Any]:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            **broker.kafka_python(), group_id=None, enable_auto_commit=False, auto_offset_reset="none"
        )
        try:
            yield consumer
        finally:
            consumer.close()


CONFLUENT, AIOKAFKA, KAFKA_PYTHON = Confluent(), Aiokafka(), KafkaPython()
CLIENTS: tuple[Client, ...] = (CONFLUENT, AIOKAFKA, KAFKA_PYTHON)
