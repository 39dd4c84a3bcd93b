"""Single records, as they lie one after another inside a decompressed batch.

Record: length, attributes (unused), timestamp delta, offset delta, key, value, headers; all numbers are varints.
Always true: reading is as strict as Kafka. The declared count is there, each record fills exactly its declared length,
and no byte is left over; anything else is an InvalidRecord. A negative size means null, for keys, values and header values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from strandline.ports import Buffer
from strandline.records.errors import InvalidRecord
from strandline.records.header import BatchHeader
from strandline.records.varint import encode_varint, encode_varlong, read_varint, read_varlong

Headers = Sequence[tuple[str, bytes | None]]

RECORD_OVERHEAD_BYTES_MAX: Final = 5 + 1 + 10 + 5 + 5 + 5 + 5
"""What a record takes besides its key, value and headers: length, attributes, two deltas and three sizes at their longest."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


# Most varints have one byte and the rest mostly two: both are read in line, because a call costs more than the record.
_ZIGZAG: Final = [(raw >> 1) ^ -(raw & 1) for raw in range(0x80)]
_TIMESTAMP_MAX: Final = (1 << 63) - 1
_TIMESTAMP_SAFE: Final = 1 << 62


def read_records(data: bytes, position: int, header: BatchHeader) -> Iterator[Record]:
    """The records in `data` from `position` to its end, one by one, under the batch header that announces them."""
    count = header.records_count
    if count < 0:
        raise InvalidRecord(f"A batch cannot have {count} records")
    if count == 0:  # a batch that compaction emptied; Kafka does not look behind its header either
        return
    end = len(data)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    is_append_time, append_time = header.is_log_append_time, header.max_timestamp
    is_safe = -_TIMESTAMP_SAFE < base_timestamp < _TIMESTAMP_SAFE
    make, zigzag = tuple.__new__, _ZIGZAG
    try:
        for _ in range(count):
            first = data[position]
            if first < 0x80:
                length = zigzag[first]
                position += 1
            elif (second := data[position + 1]) < 0x80 and not first & 1:
                length = (first & 0x7F | second << 7) >> 1
                position += 2
            else:
                length, position = read_varint(data, position)
            record_end = position + length
            if record_end > end:
                raise InvalidRecord(f"A record claims {length} bytes, but only {end - position} are left in the batch")

            position += 1  # attributes, of which none is in use
            first = data[position]
            if first < 0x80 and is_safe:
                timestamp = base_timestamp + zigzag[first]
                position += 1
            elif (second := data[position + 1]) < 0x80 and not first & 1 and is_safe:
                timestamp = base_timestamp + ((first & 0x7F | second << 7) >> 1)
                position += 2
            else:
                delta, position = read_varlong(data, position)
                timestamp = base_timestamp + delta
                if not -_TIMESTAMP_MAX - 1 <= timestamp <= _TIMESTAMP_MAX:
                    raise InvalidRecord(f"A record's timestamp {timestamp} is beyond 64 bits")

            first = data[position]
            if first < 0x80:
                offset = base_offset + zigzag[first]
                position += 1
            elif (second := data[position + 1]) < 0x80 and not first & 1:
                offset = base_offset + ((first & 0x7F | second << 7) >> 1)
                position += 2
            else:
                delta, position = read_varint(data, position)
                offset = base_offset + delta

            # A size that reaches past the record cuts a slice short here and is caught below: positions only grow.
            first = data[position]
            if first < 0x80:
                size = zigzag[first]
                position += 1
            else:
                size, position = read_varint(data, position)
            if size < 0:
                key = None
            else:
                key = data[position : position + size]
                position += size

            first = data[position]
            if first < 0x80:
                size = zigzag[first]
                position += 1
            elif (second := data[position + 1]) < 0x80 and not first & 1:
                size = (first & 0x7F | second << 7) >> 1
                position += 2
            else:
                size, position = read_varint(data, position)
            if size < 0:
                value = None
            else:
                value = data[position : position + size]
                position += size

            if data[position] == 0:
                headers: tuple[tuple[str, bytes | None], ...] = ()
                position += 1
            else:
                headers, position = _read_headers(data, position, record_end)

            if position != record_end:
                raise InvalidRecord(f"A record claims {length} bytes and has {length + position - record_end}")
            if is_append_time:
                timestamp = append_time
            yield make(Record, (offset, timestamp, key, value, headers))
    except IndexError:
        raise InvalidRecord(f"The batch ends before its {count} records do") from None
    if position != end:
        raise InvalidRecord(f"{end - position} bytes are left in the batch after its {count} records")


def _read_headers(data: bytes, position: int, record_end: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= record_end - position:
        raise InvalidRecord(f"A record with {record_end - position} bytes left cannot have {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            raise InvalidRecord(f"A header key cannot have {size} bytes")
        # Kafka replaces what is not UTF-8 too; a header nobody can read must not make a record unreadable.
        key = data[position : position + size].decode(errors="replace")
        position += size
        size, position = read_varint(data, position)
        if size < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[position : position + size]))
            position += size
    return tuple(headers), position


_SMALL: Final = [encode_varint(value) for value in range(1024)]
_SMALL_COUNT: Final = len(_SMALL)
_NULL: Final = encode_varint(-1)


def encode_record(
    offset_delta: int, timestamp_delta: int, key: Buffer | None, value: Buffer | None, headers: Headers = ()
) -> bytes:
    """One record, with its length in front."""
    body = b"".join(
        (
            b"\x00",
            _SMALL[timestamp_delta] if 0 <= timestamp_delta < _SMALL_COUNT else encode_varlong(timestamp_delta),
            _SMALL[offset_delta] if 0 <= offset_delta < _SMALL_COUNT else encode_varint(offset_delta),
            _NULL if key is None else _SMALL[size] if (size := len(key)) < _SMALL_COUNT else encode_varint(size),
            key or b"",
            _NULL if value is None else _SMALL[size] if (size := len(value)) < _SMALL_COUNT else encode_varint(size),
            value or b"",
            encode_headers(headers) if headers else b"\x00",
        )
    )
    size = len(body)
    return (_SMALL[size] if size < _SMALL_COUNT else encode_varint(size)) + body


def encode_headers(headers: Headers) -> bytes:
    parts = [encode_varint(len(headers))]
    for key, value in headers:
        encoded = key.encode()
        parts += encode_varint(len(encoded)), encoded
        parts += (_NULL,) if value is None else (encode_varint(len(value)), value)
    return b"".join(parts)


def record_bytes_max(key: Buffer | None, value: Buffer | None, headers: Headers = ()) -> int:
    """An upper bound on what a record will add to a batch, before compression."""
    size_bytes = RECORD_OVERHEAD_BYTES_MAX + (len(key) if key else 0) + (len(value) if value else 0)
    return size_bytes + len(encode_headers(headers)) if headers else size_bytes
