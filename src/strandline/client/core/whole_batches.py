"""Batches that came to the producer whole, and what of them is in the log.

Always true: a whole batch's records are never opened, unless a broker finds it too large: then it goes on in halves.
What becomes of its parts is reported to the receipt that came with it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from strandline.client.core.batches import NO_OFFSET, ProducerBatch, ProducerIdentity
from strandline.errors import KafkaError
from strandline.ids import TopicPartition
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import read_header
from strandline.records.ready import ReadyBatch, stamp


class Receipt(Protocol):
    def acknowledged(self, batch: WholeBatch, base_offset: int) -> None:
        """It is in the log; the offset is -1 if the broker did not say where."""

    def failed(self, batch: WholeBatch, error: KafkaError) -> None: ...


class WholeBatch(ProducerBatch):
    __slots__ = ("_ready", "_receipt")

    def __init__(
        self,
        topic: str,
        partition: int,
        number: tuple[int, ...],
        now: float,
        deadline: float,
        ready: ReadyBatch,
        receipt: Receipt,
    ) -> None:
        super().__init__(topic, partition, number, now, deadline)
        self.memory_bytes = len(ready.data)
        self._ready = ready
        self._receipt = receipt

    @property
    def records_count(self) -> int:
        return self._ready.count

    @property
    def size_bytes(self) -> int:
        return len(self._ready.data)

    def is_full(self, batch_size: int) -> bool:
        return True

    def _build(
        self, identity: ProducerIdentity, base_sequence: int, codec: CompressionType, level: int | None
    ) -> bytearray:
        """As it is: its maker has chosen the codec."""
        producer_id, producer_epoch, is_transactional = identity
        stamp(self._ready, producer_id, producer_epoch, base_sequence, is_transactional=is_transactional)
        return self._ready.data

    def acknowledge(self, base_offset: int, log_append_time_ms: int) -> None:
        self._receipt.acknowledged(self, base_offset)

    def fail(self, error: KafkaError) -> None:
        self._receipt.failed(self, error)

    def _halves(self, middle: int) -> list[ProducerBatch]:
        builders = BatchBuilder(), BatchBuilder()
        for index, record in enumerate(decode(self._ready.data, check_crc=False)):
            builders[index >= middle].append(record.key, record.value, record.headers, record.timestamp)
        codec = CompressionType.of(read_header(self._ready.data).codec)
        halves = [
            WholeBatch(
                self.topic,
                self.partition,
                (*self.number, half),
                self.created_at,
                self.deadline,
                ReadyBatch(builder.build(codec=codec), builder.records_count, builder.max_timestamp),
                self._receipt,
            )
            for half, builder in enumerate(builders)
        ]
        halves[0].memory_bytes = self.memory_bytes // 2
        halves[1].memory_bytes = self.memory_bytes - halves[0].memory_bytes
        return [*halves]


class WrittenRange(NamedTuple):
    """What one producer has in one partition. Others may have written in between."""

    first_offset: int
    """-1 if no broker said where."""
    next_offset: int
    """After the last of them; -1 as well."""
    records_count: int
    bytes: int


class Ledger:
    """A receipt for everything that one producer sends."""

    def __init__(self) -> None:
        self.failure: KafkaError | None = None
        """The first."""
        self.written: dict[TopicPartition, WrittenRange] = {}

    def acknowledged(self, batch: WholeBatch, base_offset: int) -> None:
        key = (batch.topic, batch.partition)
        first, following, count, size_bytes = self.written.get(key, (NO_OFFSET, NO_OFFSET, 0, 0))
        if base_offset >= 0:
            first = base_offset if first == NO_OFFSET else min(first, base_offset)
            following = max(following, base_offset + batch.records_count)
        self.written[key] = WrittenRange(first, following, count + batch.records_count, size_bytes + batch.size_bytes)

    def failed(self, batch: WholeBatch, error: KafkaError) -> None:
        if self.failure is None:
            self.failure = error
