"""The batches of one fetch that a reader is to see, opened: found, checked, decompressed.

A fetch may begin inside a batch and end inside another: batches before the start are passed over, and an incomplete one at the
end is left for the next fetch. Control batches are never shown, nor, to a read_committed reader, those of aborted transactions.

Always true: a batch is shown or passed over only after its CRC was found right (unless that is not asked for), since what decides
about that is in the bytes that it covers; whatever is wrong is a CorruptRecord that names the topic-partition and the offset of the
batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from strandline.ports import Buffer
from strandline.records import header as layout
from strandline.records.aborted import AbortedTransactions
from strandline.records.batch import payload_of
from strandline.records.compression import CompressionType
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import BatchHeader

BASE_OFFSET_MAX: Final = (1 << 63) - 1 - (1 << 31)
"""So that a base offset plus any delta stays within 64 bits."""
RECORD_BYTES_MIN: Final = 7
"""Length, attributes, two deltas, three sizes: what the smallest record takes."""


class OpenBatch(NamedTuple):
    """A batch whose records lie in `data` from `position` to `end`."""

    header: BatchHeader
    data: Buffer
    position: int
    end: int

    @property
    def held_bytes(self) -> int:
        """What is kept in memory for its sake alone."""
        return 0 if self.header.codec == CompressionType.NONE else self.end - self.position


class BatchSource(NamedTuple):
    """Where bytes come from, and how far they are trusted."""

    topic: str
    partition: int
    check_crcs: bool
    decompressed_bytes_max: int

    def blame(self, offset: int, error: CorruptRecord) -> CorruptRecord:
        message = f"{self.topic}-{self.partition}: the batch at offset {offset} cannot be read: {error.message}"
        return CorruptRecord(message, error.code)


class FetchedBatches:
    """Those with offsets of `start` <= offset < `end`, one at a time, in order."""

    def __init__(
        self, source: BatchSource, data: Buffer, start: int, end: int, aborted: Sequence[tuple[int, int]] | None
    ) -> None:
        self.source = source
        self.data = memoryview(data)
        self.start = start
        self.end = end
        self.position = 0
        """Of the next batch to be looked at."""
        self.hides_transactions = bool(aborted)
        self._aborted = AbortedTransactions(aborted or (), source.decompressed_bytes_max)

    def __iter__(self) -> Iterator[OpenBatch]:
        while (batch := self.next()) is not None:
            yield batch

    def next(self) -> OpenBatch | None:
        """The next one that has records to show, or None."""
        try:
            for position, header in layout.iterate(self.data, self.position):
                if not 0 <= header.base_offset <= BASE_OFFSET_MAX:
                    raise CorruptRecord("Its base offset cannot be")
                if header.base_offset >= self.end:
                    return None
                end = position + header.size_bytes
                if self.source.check_crcs:
                    _check_crc(header, self.data[position:end])
                opened = None if header.next_offset <= self.start else self._open(header, position)
                self.position = end
                if opened is not None:
                    return opened
        except CorruptRecord as error:
            raise self.source.blame(self._offset(), error) from error
        return None

    def _offset(self) -> int:
        """Of the batch at the position, whatever else is wrong with it."""
        return int.from_bytes(self.data[self.position : self.position + layout.LENGTH_AT], signed=True)

    def _open(self, header: BatchHeader, position: int) -> OpenBatch | None:
        is_aborted = self.hides_transactions and self._aborted.hold(
            header, self.data[position : position + header.size_bytes]
        )
        if header.is_control or is_aborted:
            return None
        opened = _open(self.source, header, self.data, position)
        return opened if header.records_count else None  # else compaction emptied it


def _check_crc(header: BatchHeader, batch: memoryview) -> None:
    crc = layout.crc_of(batch)
    if crc != header.crc:
        raise CorruptRecord(f"The batch carries CRC {header.crc:#010x}, but its bytes give {crc:#010x}")


def _open(source: BatchSource, header: BatchHeader, view: memoryview, position: int) -> OpenBatch:
    end = position + header.size_bytes
    if header.codec == CompressionType.NONE or header.records_count == 0:
        # An emptied batch may have kept its codec but not its data.
        opened = OpenBatch(header, view, position + layout.RECORDS_AT, end)
    else:
        payload = payload_of(header, view[position:end], source.decompressed_bytes_max)
        opened = OpenBatch(header, payload, 0, len(payload))
    count = header.records_count
    if not 0 <= count <= (opened.end - opened.position) // RECORD_BYTES_MIN:
        raise InvalidRecord(f"A batch with {opened.end - opened.position} bytes cannot have {count} records")
    return opened
