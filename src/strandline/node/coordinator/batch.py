"""A pending batch: the records that operations of one turn of the event loop have written, all of them outside of
transactions, or all in one transaction of one producer.

Always true: each operation that waits for the batch is in it once, in the order of the operations, and is notified
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.records.batch import BatchBuilder
from strandline.records.compression import CompressionType
from strandline.records.record import record_bytes_max

Done = Callable[[ErrorCode, Moment], CoordinatorResult | None]
Committed = Callable[[Moment], None]
Encoded = Sequence[tuple[bytes, bytes | None]]


class PendingBatch:
    __slots__ = ("_builder", "committed", "dones", "producer", "timer")

    def __init__(self, producer: tuple[int, int] | None = None) -> None:
        self.producer = producer
        """The producer id and epoch in whose transaction the records are."""
        self.dones: list[Done] = []
        """Of operations that are not answered yet."""
        self.committed: list[Committed] = []
        """Of those and others whose answer took too long."""
        self.timer: asyncio.TimerHandle | None = None
        """When it has taken too long to be committed."""
        self._builder = BatchBuilder()

    @property
    def records_count(self) -> int:
        return self._builder.records_count

    def has_room(self, encoded: Encoded, limit_bytes: int) -> bool:
        more = sum(record_bytes_max(key, value) for key, value in encoded)
        return self._builder.size_bytes + more <= limit_bytes

    def add(self, encoded: Encoded, wall_ms: int) -> None:
        for key, value in encoded:
            self._builder.append(key, value, timestamp=wall_ms)

    def wait_for(self, result: CoordinatorResult) -> None:
        """The operation that this is the result of waits for the batch."""
        self.dones.append(result.done)
        if result.committed is not None:
            self.committed.append(result.committed)

    def build(self, codec: CompressionType) -> bytearray:
        if self.producer is None:
            return self._builder.build(codec=codec)
        producer_id, epoch = self.producer
        # A producer does not number its offsets: each batch begins at 0 (TXN-T42).
        return self._builder.build(
            codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
        )
