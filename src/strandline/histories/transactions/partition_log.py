"""What the batches of one log say of its transactions: which are open, which ended how and where, and what they had.

Always true: it is read from the bytes alone, in the order of their offsets, and asks nobody what they mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from strandline.histories.batches import LoggedBatch
from strandline.records.batch import decode
from strandline.records.control import ControlRecordType, read_control_type, read_end_txn_marker
from strandline.records.header import read_header

REMEMBERED_MAX = 4_000
NOTHING = -1


class TransactionalBatch(NamedTuple):
    base_offset: int
    last_offset: int
    producer_id: int
    epoch: int
    base_sequence: int
    last_sequence: int
    is_commit: bool | None = None
    """None: it is no marker, but data."""
    coordinator_epoch: int = -1

    @property
    def is_marker(self) -> bool:
        return self.is_commit is not None


@dataclass(slots=True)
class LoggedTransaction:
    producer_id: int
    epoch: int
    first_offset: int
    batches: list[LoggedBatch] = field(default_factory=list)
    marker: TransactionalBatch | None = None
    stable_then: int = -1
    """Where the first transaction of another producer began that was open when this one ended, or else its own end."""

    @property
    def is_committed(self) -> bool:
        return self.marker is not None and self.marker.is_commit is True

    def values(self) -> Iterable[tuple[int, bytes]]:
        for batch in self.batches:
            for record in decode(batch.content, check_crc=False):
                yield record.offset, bytes(record.value or b"")

    def __str__(self) -> str:
        return f"transaction of producer {self.producer_id}, epoch {self.epoch}, from {self.first_offset} on"


class LoggedProducer:
    """What the batches say of a producer id, as every replica has to remember it."""

    __slots__ = ("coordinator_epoch", "epoch", "last_offset", "last_sequence", "markers", "open_from")

    def __init__(self) -> None:
        self.epoch = self.coordinator_epoch = -1
        self.markers = 0
        """So many it has."""
        self.last_sequence = self.last_offset = NOTHING
        """Of what it wrote in this epoch."""
        self.open_from = NOTHING
        """Where its open transaction begins."""

    @property
    def is_open(self) -> bool:
        """It has an open transaction."""
        return self.open_from != NOTHING

    def add(self, batch: TransactionalBatch) -> None:
        if batch.epoch > self.epoch:
            self.epoch = batch.epoch
            self.last_sequence = self.last_offset = NOTHING
        if batch.is_marker:
            self.markers += 1
            self.coordinator_epoch = batch.coordinator_epoch
            self.open_from = NOTHING
            return
        self.last_sequence, self.last_offset = batch.last_sequence, batch.last_offset
        if self.open_from == NOTHING:
            self.open_from = batch.base_offset

    def __str__(self) -> str:
        opened = "" if self.open_from == NOTHING else f", open from {self.open_from} on"
        return (
            f"epoch {self.epoch}, coordinator epoch {self.coordinator_epoch}, sequence {self.last_sequence} at "
            f"{self.last_offset}{opened}"
        )


class PartitionTransactions:
    def __init__(self) -> None:
        self.open: dict[int, LoggedTransaction] = {}
        """By producer id."""
        self.ended: list[LoggedTransaction] = []
        """In the order of their markers."""
        self.producers: dict[int, LoggedProducer] = {}
        """By producer id."""
        self.end_offset = 0

    def add(self, logged: LoggedBatch) -> tuple[TransactionalBatch, LoggedTransaction | None] | None:
        """The batch if it belongs to a transaction, and the transaction that was open before of its producer."""
        self.end_offset = logged.last_offset + 1
        batch = read_transactional(logged)
        if batch is None:
            return None
        producer_id = batch.producer_id
        before = self.open.get(producer_id)
        self.producers.setdefault(producer_id, LoggedProducer()).add(batch)
        if batch.is_marker:
            if before is not None:
                before.marker = batch
                self.ended.append(self.open.pop(producer_id))
                others = (each.first_offset for each in self.open.values())
                before.stable_then = min(others, default=batch.last_offset + 1)
        elif before is None:
            self.open[producer_id] = LoggedTransaction(producer_id, batch.epoch, batch.base_offset, [logged])
        else:
            before.batches.append(logged)
        return batch, before

    def newest_of(self, producer_id: int) -> LoggedTransaction | None:
        """Its open transaction, or else the one that ended last."""
        found = self.open.get(producer_id)
        return found or next((each for each in reversed(self.ended) if each.producer_id == producer_id), None)

    def first_unstable(self, high_watermark: int) -> int | None:
        """The first offset of what is open, or ended by a marker that is not committed."""
        found = [each.first_offset for each in self.open.values()]
        for each in reversed(self.ended):
            if each.marker is not None and each.marker.base_offset < high_watermark:
                break
            found.append(each.first_offset)
        return min(found, default=None)


def of(batches: Iterable[LoggedBatch]) -> PartitionTransactions:
    found = PartitionTransactions()
    for batch in batches:
        found.add(batch)
    return found


@lru_cache(maxsize=REMEMBERED_MAX)
def read_transactional(logged: LoggedBatch) -> TransactionalBatch | None:
    """None for what belongs to no transaction."""
    header = read_header(logged.content)
    if not header.is_transactional:
        return None
    found = TransactionalBatch(
        logged.base_offset,
        logged.last_offset,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_sequence,
    )
    if not header.is_control:
        return found
    (record,) = decode(logged.content, check_crc=False)
    is_commit = read_control_type(record.key) is ControlRecordType.COMMIT
    return found._replace(is_commit=is_commit, coordinator_epoch=read_end_txn_marker(record.value))
