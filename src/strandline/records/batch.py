"""Whole batches: built from records, and opened again.

Always true: what `build` returns is one contiguous, sealed batch whose offset deltas count 0, 1, 2, …; what `decode`
yields has passed the CRC, the bound on its decompressed size and the format's rules.
"""

from __future__ import annotations

from collections.abc import Iterator

from strandline.ports import Buffer
from strandline.records import header as layout
from strandline.records.compression import DECOMPRESSED_BYTES_MAX, CompressionType, compress, decompress
from strandline.records.header import BatchHeader
from strandline.records.record import Headers, Record, encode_record, read_records


class BatchBuilder:
    """Records on their way into a batch, encoded as they come, so that its size is known at any time."""

    __slots__ = ("_base_timestamp", "_records", "max_timestamp", "records_count")

    def __init__(self) -> None:
        self._records = bytearray()
        self._base_timestamp = layout.NO_TIMESTAMP
        self.max_timestamp = layout.NO_TIMESTAMP
        self.records_count = 0

    @property
    def size_bytes(self) -> int:
        """Of the batch if it were built now, without compression."""
        return layout.RECORDS_AT + len(self._records)

    def append(
        self,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers = (),
        timestamp: int = layout.NO_TIMESTAMP,
    ) -> int:
        """Add a record and return its offset delta. Its bytes are copied."""
        if timestamp < layout.NO_TIMESTAMP:
            raise ValueError(f"A timestamp is -1 (none) or at least 0, not {timestamp}")
        offset_delta = self.records_count
        if offset_delta == 0:
            self._base_timestamp = timestamp
        self._records += encode_record(offset_delta, timestamp - self._base_timestamp, key, value, headers)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.records_count = offset_delta + 1
        return offset_delta

    def build(
        self,
        *,
        base_offset: int = 0,
        leader_epoch: int = layout.NO_PARTITION_LEADER_EPOCH,
        producer_id: int = layout.NO_PRODUCER_ID,
        producer_epoch: int = layout.NO_PRODUCER_EPOCH,
        base_sequence: int = layout.NO_SEQUENCE,
        codec: CompressionType = CompressionType.NONE,
        level: int | None = None,
        transactional: bool = False,
        control: bool = False,
    ) -> bytearray:
        """The batch. The builder stays as it is: a producer may build again with another sequence."""
        assert self.records_count > 0, "a batch has at least one record"
        attributes = codec | (layout.TRANSACTIONAL_FLAG * transactional) | (layout.CONTROL_FLAG * control)
        header = BatchHeader(
            base_offset=base_offset,
            length=0,
            partition_leader_epoch=leader_epoch,
            magic=layout.MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=self.records_count - 1,
            base_timestamp=self._base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=self.records_count,
        )
        return join(header, self._records if codec is CompressionType.NONE else compress(codec, self._records, level))


def join(header: BatchHeader, payload: Buffer) -> bytearray:
    """A sealed batch of this header, with length and CRC put right, and this (compressed) payload."""
    batch = bytearray(layout.RECORDS_AT)
    batch += payload
    layout.HEADER.pack_into(batch, 0, *header._replace(length=len(batch) - layout.LOG_OVERHEAD, crc=0))
    layout.seal(batch)
    return batch


def decode(batch: Buffer, *, max_bytes: int = DECOMPRESSED_BYTES_MAX, check_crc: bool = True) -> Iterator[Record]:
    """The records of one batch, also of a control batch: the header says which it is.

    Batch and compression are checked at once, each record when its turn comes.
    """
    header = layout.ensure_valid(batch) if check_crc else layout.read_header(batch)
    return open_records(header, batch, max_bytes)


def open_records(header: BatchHeader, batch: Buffer, max_bytes: int) -> Iterator[Record]:
    """The records of a batch whose header is already read and believed."""
    if header.codec == CompressionType.NONE:
        if isinstance(batch, bytes):
            return read_records(batch, layout.RECORDS_AT, header)
        return read_records(bytes(memoryview(batch)[layout.RECORDS_AT :]), 0, header)
    if header.records_count == 0:  # nothing to open: an emptied batch may have kept its codec but not its data
        return iter(())
    return read_records(bytes(payload_of(header, batch, max_bytes)), 0, header)


def payload_of(header: BatchHeader, batch: Buffer, max_bytes: int) -> bytearray | memoryview:
    """The encoded records of a batch, decompressed."""
    return decompress(CompressionType.of(header.codec), memoryview(batch)[layout.RECORDS_AT :], max_bytes)
