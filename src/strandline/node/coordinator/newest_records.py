"""The newest record of each key among many, found without opening the others, for loading a coordinator's topic.

Of most records only the key is looked at; how a record reads is decided when it turns out to be the last of its key.

Always true: the keys are in the order in which their newest records stand in the log.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    RECORDS_AT,
    TRANSACTIONAL_FLAG,
)
from strandline.records.varint import read_varint, read_varlong

_HEADER = struct.Struct(">qi4xbIhiq22xi")
"""Of a batch header: base offset, length, magic, CRC, attributes, last offset delta, base timestamp, records."""
_NOT_PLAIN = CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG


class UndecodedRecord(NamedTuple):
    """A record whose key was read: what follows the key, and when it was written."""

    rest: bytes
    timestamp: int

    def value(self) -> bytes | None:
        try:
            size, position = read_varint(self.rest, 0)
        except IndexError:
            raise InvalidRecord("A record ends before its value") from None
        if position + size > len(self.rest):
            raise InvalidRecord(f"A value claims {size} bytes, but only {len(self.rest) - position} are left")
        return None if size < 0 else self.rest[position : position + size]


class NotedBatches(NamedTuple):
    position: int
    """Where the next batch stands."""
    records: int
    next_offset: int


class NewestRecords:
    def __init__(self) -> None:
        self._found: dict[bytes, UndecodedRecord] = {}

    def note(self, data: bytes, position: int, end: int, count: int, base_timestamp: int) -> None:
        """Take note of the `count` records that fill these bytes."""
        found = self._found
        make = tuple.__new__
        try:
            for _ in range(count):
                # Most varints have one byte and the rest mostly two: both are read in line.
                first = data[position]
                if first < 0x80:
                    record_end = position + 1 + (first >> 1)
                    position += 2
                elif (second := data[position + 1]) < 0x80:
                    record_end = position + 2 + ((first & 0x7F | second << 7) >> 1)
                    position += 3
                else:
                    length, position = read_varint(data, position)
                    record_end = position + length
                    position += 1
                first = data[position]
                if first < 0x80:
                    delta = (first >> 1) ^ -(first & 1)
                    position += 1
                else:
                    delta, position = read_varlong(data, position)
                if data[position] < 0x80:
                    position += 1
                else:
                    _, position = read_varint(data, position)
                first = data[position]
                if first < 0x80:
                    size = (first >> 1) ^ -(first & 1)
                    position += 1
                else:
                    size, position = read_varint(data, position)
                if size >= 0:
                    key = data[position : position + size]
                    position += size
                    # Not in the old one's place: it is later now than all others.
                    found.pop(key, None)
                    found[key] = make(UndecodedRecord, (data[position:record_end], base_timestamp + delta))
                if not position <= record_end <= end:
                    raise InvalidRecord(f"A record ends at {record_end}, and its batch at {end}")
                position = record_end
        except IndexError:
            raise InvalidRecord("The bytes end within a record") from None
        if position != end:
            raise InvalidRecord(f"{end - position} bytes are left after the last record of a batch")

    def note_plain(self, data: bytes, position: int, limit: int) -> NotedBatches:
        """Take note of batches from `position` on,
        up to about `limit` records and to the first that is not plain or not whole.
        """
        view, end, noted = memoryview(data), len(data), 0
        base_offset, delta = -1, 0
        while noted < limit and end - position >= RECORDS_AT:
            offset, length, magic, crc, attributes, last_delta, base_timestamp, count = _HEADER.unpack_from(
                data, position
            )
            batch_end = position + LOG_OVERHEAD + length
            if attributes & _NOT_PLAIN or count < 1 or magic != MAGIC or not position + RECORDS_AT < batch_end <= end:
                break
            if crc32c(view[position + ATTRIBUTES_AT : batch_end]) != crc:
                raise CorruptRecord(f"The batch at position {position} does not carry its CRC")
            self.note(data, position + RECORDS_AT, batch_end, count, base_timestamp)
            noted += count
            position = batch_end
            base_offset, delta = offset, last_delta
        return NotedBatches(position, noted, base_offset + delta + 1)

    def take(self) -> Iterator[tuple[bytes, bytes | None, int]]:
        """Key, value and timestamp of each, which are forgotten."""
        found, self._found = self._found, {}
        return ((key, record.value(), record.timestamp) for key, record in found.items())
