"""Every record of a produced batch, read once and not kept: can consumers read what is about to be written? (SEC-L9)

Nothing is made of a record, so this costs a fraction of decoding it. Two walks give the same answers: the plain one below, and one
in machine code that `strandline.runtime` puts in its place where there is any (`columnar.compiled_walk`).

Always true: what passes has exactly `count` records with offset deltas 0, 1, 2, … that fill their declared lengths, and no byte is
left over; so `records.record.read_records` yields all of them. What does not pass is an InvalidRecord.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn

from strandline.ports import Buffer
from strandline.records.errors import InvalidRecord
from strandline.records.header import NO_TIMESTAMP
from strandline.records.varint import read_varint, read_varlong

SOUND, BAD_RECORD, BAD_OFFSET_DELTA, LEFT_OVER = range(4)
"""What a walk can find."""


Walked = tuple[int, int, int]
"""What only the records themselves could tell: the least timestamp of those that have one (NO_TIMESTAMP if none has), the greatest,
and how many have no key. A plain tuple: every produced batch makes one."""


class Walker(NamedTuple):
    """A way to walk."""

    walk: Callable[[Buffer, int, int, int], Walked]
    """Takes the data, the position of the first record, how many there are up to the end of the data, and the base timestamp."""
    records_on_loop_max: int
    """So many records take a few milliseconds. More are walked beside the event loop (SEC-L8)."""


def refuse(reason: int, index: int, count: int) -> NoReturn:
    """In the words that both walks use."""
    if reason == BAD_OFFSET_DELTA:
        raise InvalidRecord(f"Record {index} of the batch does not have offset delta {index}")
    if reason == LEFT_OVER:
        raise InvalidRecord(f"Bytes are left in the batch after its {count} records")
    raise InvalidRecord(f"Record {index} of the {count} that the batch claims cannot be read")


_ZIGZAG: Final = [(raw >> 1) ^ -(raw & 1) for raw in range(0x80)]
_INT64_MAX: Final = (1 << 63) - 1
_TIMESTAMP_SAFE: Final = 1 << 62
"""No delta that is read in line leads from here beyond 64 bits."""
_COPIED_BYTES_MAX: Final = 1024 * 1024
"""A view is slower to look into than it is to copy, but no other thread runs during a copy."""
_BEYOND: Final = 1 << 65
"""Larger than every delta."""


def walk_plain(data: Buffer, position: int, count: int, base_timestamp: int) -> Walked:
    """In Python: about a microsecond a record."""
    if isinstance(data, memoryview) and len(data) <= _COPIED_BYTES_MAX:
        data, position = bytes(data[position:]), 0
    reason, index, min_delta, max_delta, keyless_count = _walk(data, position, count, base_timestamp)
    if reason != SOUND:
        refuse(reason, index, count)
    return (
        NO_TIMESTAMP if min_delta == _BEYOND else base_timestamp + min_delta,
        max(base_timestamp + max_delta, NO_TIMESTAMP),
        keyless_count,
    )


def _walk(data: Buffer, position: int, count: int, base_timestamp: int) -> tuple[int, int, int, int, int]:
    """What was found and at which record; the extreme timestamp deltas and how many records have no key."""
    end = len(data)
    min_delta, max_delta, keyless_count = _BEYOND, -_BEYOND, 0
    none_delta = NO_TIMESTAMP - base_timestamp
    is_safe = -_TIMESTAMP_SAFE < base_timestamp < _TIMESTAMP_SAFE
    zigzag = _ZIGZAG
    index = 0
    try:
        # Most varints have one byte and the rest mostly two: both are read in line, because a call costs more than the record. One
        # that runs past its record is found at the record's end, because positions only grow.
        for index in range(count):
            first = data[position]
            if first < 0x80:
                limit = position + 1 + zigzag[first]
                position += 2
            elif (second := data[position + 1]) < 0x80 and not first & 1:
                limit = position + 2 + ((first & 0x7F | second << 7) >> 1)
                position += 3
            else:
                length, position = read_varint(data, position)
                limit = position + length
                position += 1
            if limit > end:
                return BAD_RECORD, index, 0, 0, 0

            first = data[position]  # behind the attributes, of which none is in use
            if first < 0x80 and is_safe:
                delta = zigzag[first]
                position += 1
            elif (second := data[position + 1]) < 0x80 and not first & 1 and is_safe:
                delta = (first & 0x7F | second << 7) >> 1
                position += 2
            else:
                delta, position = read_varlong(data, position)
                if not -_INT64_MAX - 1 <= base_timestamp + delta <= _INT64_MAX:
                    return BAD_RECORD, index, 0, 0, 0
            if delta > max_delta:
                max_delta = delta
            if delta < min_delta and delta != none_delta:
                min_delta = delta

            first = data[position]
            if first < 0x80:
                position += 1
                if zigzag[first] != index:
                    return BAD_RECORD if position > limit else BAD_OFFSET_DELTA, index, 0, 0, 0
            elif (second := data[position + 1]) < 0x80:
                position += 2
                if (first & 0x7F | second << 7) != index << 1:
                    return BAD_RECORD if position > limit else BAD_OFFSET_DELTA, index, 0, 0, 0
            else:
                offset_delta, position = read_varint(data, position)
                if position > limit or offset_delta != index:
                    return BAD_RECORD if position > limit else BAD_OFFSET_DELTA, index, 0, 0, 0

            first = data[position]
            if first < 0x80:
                if first & 1:
                    keyless_count += 1
                    position += 1
                else:
                    position += 1 + (first >> 1)
            else:
                size, position = read_varint(data, position)
                if size < 0:
                    keyless_count += 1
                else:
                    position += size

            first = data[position]
            if first < 0x80:
                position += 1 if first & 1 else 1 + (first >> 1)
            elif (second := data[position + 1]) < 0x80 and not first & 1:
                position += 2 + ((first & 0x7F | second << 7) >> 1)
            else:
                size, position = read_varint(data, position)
                if size > 0:
                    position += size

            if data[position]:
                position = _skip_headers(data, position, limit)
            else:
                position += 1
            if position != limit:
                return BAD_RECORD, index, 0, 0, 0
    except (IndexError, InvalidRecord):
        return BAD_RECORD, index, 0, 0, 0
    return SOUND if position == end else LEFT_OVER, index, min_delta, max_delta, keyless_count


def _skip_headers(data: Buffer, position: int, limit: int) -> int:
    """The position behind the headers, which is beyond `limit` if they cannot be read."""
    count, position = read_varint(data, position)
    if not 0 <= count <= limit - position:
        return limit + 1
    for _ in range(count):
        size, position = read_varint(data, position)
        if size < 0:
            return limit + 1
        size, position = read_varint(data, position + size)
        if size > 0:
            position += size
        if position > limit:
            break
    return position


PLAIN: Final = Walker(walk_plain, 10_000)
in_use: Walker = PLAIN
"""Of this process. Whoever starts it may put a faster one here: no answer depends on it."""


def use(walker: Walker) -> None:
    global in_use
    in_use = walker
