"""The 61 bytes in front of every record batch, and the few of them that a broker writes itself.

Always true: the CRC covers everything from the attributes on, so base offset and leader epoch can be assigned without
touching it. A `batch` is a buffer that holds exactly one batch; readers of a longer buffer say so by taking a position.
Nothing here copies a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from crc32c import crc32c

from strandline.ports import Buffer
from strandline.records.errors import CorruptRecord, InvalidRecord

BASE_OFFSET_AT: Final = 0
LENGTH_AT: Final = 8
PARTITION_LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
COUNT_AT: Final = 57
RECORDS_AT: Final = 61

LOG_OVERHEAD: Final = 12
"""Base offset and length: the bytes that the length field does not count."""
MAGIC: Final = 2

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1
SEQUENCE_MAX: Final = 0x7FFF_FFFF

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_INT64: Final = struct.Struct(">q")
assert HEADER.size == RECORDS_AT


class BatchHeader(NamedTuple):
    """The header's fields in the order of their bytes, and what follows from them."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    """The first record's timestamp, or the delete horizon if that flag is set; the records count from it either way."""
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_bytes(self) -> int:
        """Of the whole batch, from base offset to the last record."""
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """After 2^31-1 comes 0; a batch without a sequence has none at its end either."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX

    @property
    def codec(self) -> int:
        """A number of 0-7; CompressionType knows the ones that mean something."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & TIMESTAMP_TYPE_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones and markers of this batch, once it has decided so."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`. Only its presence and magic are checked: the rest is for those who rely on it."""
    if len(buffer) - position < RECORDS_AT:
        raise CorruptRecord(f"A batch header has {RECORDS_AT} bytes, and only {len(buffer) - position} are there")
    header = BatchHeader._make(HEADER.unpack_from(buffer, position))
    check_magic(header.magic)
    return header


def check_magic(magic: int) -> None:
    if magic == MAGIC:
        return
    if 0 <= magic < MAGIC:
        raise InvalidRecord(f"Message format v{magic} is not supported, only v{MAGIC}")
    raise CorruptRecord(f"There is no message format with magic {magic}")


def iterate(buffer: Buffer, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """The position and header of each complete batch; an incomplete one at the end is left alone, without complaint.

    A reader's last batch is often cut short by the size it asked for. CRCs are not checked.
    """
    end = len(buffer)
    while end - position >= LOG_OVERHEAD:
        length: int = _INT32.unpack_from(buffer, position + LENGTH_AT)[0]
        if length < RECORDS_AT - LOG_OVERHEAD:
            raise CorruptRecord(
                f"The batch at position {position} claims a length of {length} bytes, less than a header"
            )
        if end - position > MAGIC_AT:
            check_magic(buffer[position + MAGIC_AT])
        if end - position < LOG_OVERHEAD + length:
            return
        yield position, BatchHeader._make(HEADER.unpack_from(buffer, position))
        position += LOG_OVERHEAD + length


def crc_of(batch: Buffer) -> int:
    """The CRC-32C that the batch should carry."""
    crc: int = crc32c(memoryview(batch)[ATTRIBUTES_AT:])
    return crc


def crc_valid(batch: Buffer) -> bool:
    """Whether the batch carries its CRC; one that is too short to carry any does not."""
    return len(batch) >= RECORDS_AT and _UINT32.unpack_from(batch, CRC_AT)[0] == crc_of(batch)


def ensure_valid(batch: Buffer) -> BatchHeader:
    """The header of a batch whose length, magic and CRC are right; CorruptRecord otherwise."""
    header = read_header(batch)
    if header.size_bytes != len(batch):
        raise CorruptRecord(f"The batch claims {header.size_bytes} bytes, but there are {len(batch)}")
    if header.crc != (computed := crc_of(batch)):
        raise CorruptRecord(f"The batch carries CRC {header.crc:#010x}, but its bytes give {computed:#010x}")
    return header


def assign(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give the batch its place in a log. The CRC does not cover these fields."""
    _INT64.pack_into(batch, BASE_OFFSET_AT, base_offset)
    _INT32.pack_into(batch, PARTITION_LEADER_EPOCH_AT, leader_epoch)


def stamp_append_time(batch: bytearray | memoryview, timestamp: int) -> None:
    """Make every record's timestamp the broker's (message.timestamp.type=LogAppendTime)."""
    _stamp(batch, _INT16.unpack_from(batch, ATTRIBUTES_AT)[0] | TIMESTAMP_TYPE_FLAG, timestamp)


def stamp_create_time(batch: bytearray | memoryview, max_timestamp: int) -> None:
    """Keep the records' own timestamps and correct what the header says about the largest of them."""
    _stamp(batch, _INT16.unpack_from(batch, ATTRIBUTES_AT)[0] & ~TIMESTAMP_TYPE_FLAG, max_timestamp)


def _stamp(batch: bytearray | memoryview, attributes: int, max_timestamp: int) -> None:
    unchanged = (attributes, max_timestamp) == (
        _INT16.unpack_from(batch, ATTRIBUTES_AT)[0],
        _INT64.unpack_from(batch, MAX_TIMESTAMP_AT)[0],
    )
    if unchanged:  # so is the CRC, and computing it would read the whole batch
        return
    _INT16.pack_into(batch, ATTRIBUTES_AT, attributes)
    _INT64.pack_into(batch, MAX_TIMESTAMP_AT, max_timestamp)
    seal(batch)


def seal(batch: bytearray | memoryview) -> None:
    """Write the CRC. Last of all, except for `assign`."""
    _UINT32.pack_into(batch, CRC_AT, crc_of(batch))
