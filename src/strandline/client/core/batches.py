"""A producer's batch that is not acknowledged yet, and the delivery of each of its records.

A batch of records is filled here and built when it leaves; `whole_batches.py` has those that came whole.

Always true: once sealed, a batch's bytes do not change; only a batch that is surely in no log may be sealed anew, under
another producer id. Every record's delivery is resolved exactly once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol

from strandline.errors import KafkaError
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, SEQUENCE_MAX
from strandline.records.record import Headers

Buffer = bytes | bytearray | memoryview
NO_OFFSET = -1


class ProducerIdentity(NamedTuple):
    """The producer id and epoch under which sequences count."""

    producer_id: int
    producer_epoch: int
    is_transactional: bool = False


NO_IDENTITY = ProducerIdentity(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


class RecordMetadata(NamedTuple):
    """Where a record is. The offset is -1 if the broker did not say: acks=0, or a duplicate it no longer remembers."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class Wakeup(Protocol):
    """What one who waits for a delivery awaits."""

    def done(self) -> bool: ...

    def set_result(self, result: None, /) -> None: ...

    def __await__(self) -> Generator[object, None, None]: ...


class RecordDelivery:
    """The delivery of one record: awaitable, or polled with `done` and `result`."""

    __slots__ = ("_make_future", "_outcome", "_waiters", "timestamp")

    def __init__(self, make_future: Callable[[], Wakeup], timestamp: int) -> None:
        self.timestamp = timestamp
        self._make_future = make_future
        self._outcome: RecordMetadata | KafkaError | None = None
        self._waiters: list[Callable[[], None]] | None = None

    @property
    def done(self) -> bool:
        return self._outcome is not None

    def result(self) -> RecordMetadata:
        """Where the record is, or KafkaError; only once it is done."""
        assert self._outcome is not None, "the record is still on its way"
        if isinstance(self._outcome, KafkaError):
            raise self._outcome
        return self._outcome

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        if self._outcome is not None:
            callback()
        elif self._waiters is None:
            self._waiters = [callback]
        else:
            self._waiters.append(callback)

    def resolve(self, outcome: RecordMetadata | KafkaError) -> None:
        assert self._outcome is None, "a delivery is resolved once"
        self._outcome = outcome
        if self._waiters is not None:
            for callback in self._waiters:
                callback()
            self._waiters = None

    def __await__(self) -> Generator[object, None, RecordMetadata]:
        if self._outcome is None:
            # A future of its own: cancelling who waits for one record must not disturb who waits for another.
            future = self._make_future()
            self.add_done_callback(lambda: None if future.done() else future.set_result(None))
            yield from future.__await__()
        return self.result()


class ProducerBatch(ABC):
    __slots__ = (
        "attempts",
        "base_sequence",
        "created_at",
        "data",
        "deadline",
        "link",
        "memory_bytes",
        "number",
        "partition",
        "topic",
        "uncertain",
    )

    def __init__(self, topic: str, partition: int, number: tuple[int, ...], now: float, deadline: float) -> None:
        self.topic = topic
        self.partition = partition
        self.number = number
        """Its place among the partition's batches, in the order of the calls to send."""
        self.created_at = now
        self.deadline = deadline
        self.memory_bytes = 0
        self.attempts = 0
        self.base_sequence = NO_SEQUENCE
        self.data: bytearray | None = None
        self.uncertain = False
        """An attempt ended without an answer that says it was not appended."""
        self.link: object = None
        """The connection of its latest attempt."""

    @property
    @abstractmethod
    def records_count(self) -> int: ...

    @property
    @abstractmethod
    def size_bytes(self) -> int: ...

    @property
    def is_sequenced(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    @abstractmethod
    def is_full(self, batch_size: int) -> bool:
        """There is nothing to linger for."""

    def seal(self, identity: ProducerIdentity, base_sequence: int, codec: CompressionType, level: int | None) -> None:
        """Make the bytes that every attempt sends."""
        assert self.data is None, "a sealed batch stays as it is"
        self.base_sequence = base_sequence
        self.data = self._build(identity, base_sequence, codec, level)

    @abstractmethod
    def _build(
        self, identity: ProducerIdentity, base_sequence: int, codec: CompressionType, level: int | None
    ) -> bytearray: ...

    def unseal(self) -> None:
        """Take its sequence away, so that it can be sent under another identity."""
        assert not self.uncertain, "a batch that may be in the log keeps its sequence"
        self.base_sequence, self.data = NO_SEQUENCE, None

    @abstractmethod
    def acknowledge(self, base_offset: int, log_append_time_ms: int) -> None: ...

    @abstractmethod
    def fail(self, error: KafkaError) -> None: ...

    def split(self) -> list[ProducerBatch]:
        """Two halves, for a broker that finds the batch too large. Sequences stay with their records."""
        assert self.data is not None
        assert self.records_count > 1
        middle = self.records_count // 2
        halves = self._halves(middle)
        for half in halves:
            half.attempts = self.attempts
            half.uncertain = self.uncertain
        if self.is_sequenced:
            halves[0].base_sequence = self.base_sequence
            halves[1].base_sequence = add_sequence(self.base_sequence, middle)
        return halves

    @abstractmethod
    def _halves(self, middle: int) -> list[ProducerBatch]:
        """So many records, and the others; together they take as much memory as before."""


class RecordsBatch(ProducerBatch):
    """Records that are taken one by one."""

    __slots__ = ("_deliveries", "builder")

    def __init__(self, topic: str, partition: int, number: tuple[int, ...], now: float, deadline: float) -> None:
        super().__init__(topic, partition, number, now, deadline)
        self.builder = BatchBuilder()
        self._deliveries: list[RecordDelivery] = []

    def takes(self, memory_bytes: int, batch_size: int) -> bool:
        """There is room for a record of this size, and it is not sealed."""
        is_open = self.data is None and self.base_sequence == NO_SEQUENCE
        return is_open and self.builder.size_bytes + memory_bytes <= batch_size

    def append(
        self, key: Buffer | None, value: Buffer | None, headers: Headers, delivery: RecordDelivery, memory_bytes: int
    ) -> None:
        self.builder.append(key, value, headers, delivery.timestamp)
        self._deliveries.append(delivery)
        self.memory_bytes += memory_bytes

    @property
    def records_count(self) -> int:
        return len(self._deliveries)

    @property
    def size_bytes(self) -> int:
        return self.builder.size_bytes if self.data is None else len(self.data)

    def is_full(self, batch_size: int) -> bool:
        return self.builder.size_bytes >= batch_size

    def _build(
        self, identity: ProducerIdentity, base_sequence: int, codec: CompressionType, level: int | None
    ) -> bytearray:
        return self.builder.build(
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=base_sequence,
            codec=codec,
            level=level,
            transactional=identity.is_transactional,
        )

    def acknowledge(self, base_offset: int, log_append_time_ms: int) -> None:
        topic, partition = self.topic, self.partition
        for delta, delivery in enumerate(self._deliveries):
            offset = NO_OFFSET if base_offset < 0 else base_offset + delta
            timestamp = delivery.timestamp if log_append_time_ms < 0 else log_append_time_ms
            delivery.resolve(RecordMetadata(topic, partition, offset, timestamp))

    def fail(self, error: KafkaError) -> None:
        for delivery in self._deliveries:
            delivery.resolve(error)

    def _halves(self, middle: int) -> list[ProducerBatch]:
        assert self.data is not None
        halves = [
            RecordsBatch(self.topic, self.partition, (*self.number, half), self.created_at, self.deadline)
            for half in (0, 1)
        ]
        for index, record in enumerate(decode(self.data, check_crc=False)):
            memory_bytes = self.memory_bytes // self.records_count
            halves[index >= middle].append(
                record.key, record.value, record.headers, self._deliveries[index], memory_bytes
            )
        halves[1].memory_bytes += self.memory_bytes - halves[0].memory_bytes - halves[1].memory_bytes
        return [*halves]


def add_sequence(sequence: int, count: int) -> int:
    """After 2^31-1 comes 0."""
    return (sequence + count) & SEQUENCE_MAX
