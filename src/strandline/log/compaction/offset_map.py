"""The newest offset of each key in the dirty part of a log.

This is where cleaning spends its time, so records are walked with as few steps as possible: of each only its length and its key are
read, of those that stay also whether they have a value. `compiled.py` has the same map for where numba is installed.

Always true: keys are compared, never only their hashes; a key of `SHORT_KEY_BYTES` or more is known by a digest that no shorter key
can be, so memory is bounded by the number of entries. Bytes come from batches whose checksum was right.
"""

from __future__ import annotations

from bisect import bisect_left
from hashlib import blake2b
from itertools import repeat
from typing import NamedTuple

from strandline.records.errors import InvalidRecord
from strandline.records.header import BatchHeader
from strandline.records.varint import read_varint

SHORT_KEY_BYTES = 64
"""A size below fits into one byte of a varint."""
_DIGEST_MARK = b"#"
_NULL_SIZE = 1
"""-1, as a varint."""


class Sifted(NamedTuple):
    """What is to stay of a batch's records."""

    records_count: int
    spans: list[int]
    """Start and end of each run of records that stay, one after the other."""
    has_tombstones: bool
    """Whether one of them has no value."""


class OffsetMap:
    def __init__(self) -> None:
        self._newest: dict[bytes, int] = {}
        self._settled: list[int] = []

    def __len__(self) -> int:
        return len(self._newest)

    def is_full(self, entries_max: int) -> bool:
        return len(self._newest) >= entries_max

    def note(self, data: bytes, position: int, end: int, header: BatchHeader) -> None:
        """The records of a batch, from `position` to `end` in `data`, are the newest with their keys. Batches come in order."""
        note = _note_dense if header.records_count == header.last_offset_delta + 1 else _note_sparse
        try:
            walked = note(self._newest, data, position, header)
        except IndexError:
            walked = -1
        if walked != end:
            raise InvalidRecord(f"The records of the batch at offset {header.base_offset} do not fill it")

    def settle(self) -> None:
        """All was noted: from here on it is asked."""
        self._settled = sorted(self._newest.values())

    def has_newest_in(self, header: BatchHeader) -> bool:
        """Whether a record of this batch, which was noted, is the newest with its key."""
        i = bisect_left(self._settled, header.base_offset)
        return i < len(self._settled) and self._settled[i] <= header.last_offset

    def sift_noted(self, data: bytes, position: int, end: int, header: BatchHeader, drop_tombstones: bool) -> Sifted:
        """Of a batch that was noted, the records that are the newest with their keys."""
        if header.records_count != header.last_offset_delta + 1:
            return _sift_sparse(self._newest, data, position, header, drop_tombstones)
        low = bisect_left(self._settled, header.base_offset)
        high = bisect_left(self._settled, header.next_offset, low)
        return _sift_dense(self._settled[low:high], data, position, header, drop_tombstones)

    def sift_older(self, data: bytes, position: int, end: int, header: BatchHeader, drop_tombstones: bool) -> Sifted:
        """Of a batch that is older than all that was noted, the records whose keys did not come again."""
        try:
            sifted, walked = _sift_older(self._newest, data, position, header, drop_tombstones)
        except IndexError:
            walked = -1
        if walked != end:
            raise InvalidRecord(f"The records of the batch at offset {header.base_offset} do not fill it")
        return sifted


def _note_dense(newest: dict[bytes, int], data: bytes, position: int, header: BatchHeader) -> int:
    """Offsets count up by one, so a record's place says which it has."""
    base_offset = header.base_offset
    for offset in range(base_offset, base_offset + header.records_count):
        first = data[position]
        if first < 0x80:
            end = position + 1 + (first >> 1)
            position += 2
        elif (second := data[position + 1]) < 0x80:
            end = position + 2 + ((first & 0x7F | second << 7) >> 1)
            position += 3
        else:
            length, position = read_varint(data, position)
            end = position + length
            position += 1
        while data[position] > 0x7F:  # timestamp delta
            position += 1
        position += 1
        while data[position] > 0x7F:  # offset delta
            position += 1
        size = data[position + 1]
        if size < 0x80:
            if size != _NULL_SIZE:
                newest[data[position + 2 : position + 2 + (size >> 1)]] = offset
        else:
            newest[_long_key(data, position + 1)[0]] = offset
        position = end
    return position


def _note_sparse(newest: dict[bytes, int], data: bytes, position: int, header: BatchHeader) -> int:
    base_offset = header.base_offset
    for _ in repeat(None, header.records_count):
        key, delta, _, position = _read(data, position)
        if key is not None:
            newest[key] = base_offset + delta
    return position


def _sift_dense(wanted: list[int], data: bytes, position: int, header: BatchHeader, drop_tombstones: bool) -> Sifted:
    at, base_offset = 0, header.base_offset
    spans: list[int] = []
    count, has_tombstones = 0, False
    for offset in wanted:
        skipped = offset - base_offset - at
        for _ in repeat(None, skipped):
            first = data[position]
            if first < 0x80:
                position += 1 + (first >> 1)
            elif (second := data[position + 1]) < 0x80:
                position += 2 + ((first & 0x7F | second << 7) >> 1)
            else:
                length, position = read_varint(data, position)
                position += length
        start = position
        first = data[position]
        if first < 0x80:
            end = position + 1 + (first >> 1)
            position += 2
        elif (second := data[position + 1]) < 0x80:
            end = position + 2 + ((first & 0x7F | second << 7) >> 1)
            position += 3
        else:
            length, position = read_varint(data, position)
            end = position + length
            position += 1
        while data[position] > 0x7F:  # timestamp delta
            position += 1
        position += 1
        while data[position] > 0x7F:  # offset delta
            position += 1
        size = data[position + 1]
        position = position + 2 + (size >> 1) if size < 0x80 else _long_key(data, position + 1)[1]
        is_tombstone = data[position] == _NULL_SIZE
        position = end
        at += skipped + 1
        if is_tombstone:
            if drop_tombstones:
                continue
            has_tombstones = True
        count += 1
        if spans and spans[-1] == start:
            spans[-1] = position
        else:
            spans += start, position
    return Sifted(count, spans, has_tombstones)


def _sift_sparse(
    newest: dict[bytes, int], data: bytes, position: int, header: BatchHeader, drop_tombstones: bool
) -> Sifted:
    base_offset = header.base_offset
    spans: list[int] = []
    count, has_tombstones = 0, False
    for _ in repeat(None, header.records_count):
        start = position
        key, delta, is_tombstone, position = _read(data, start)
        if key is None or newest[key] != base_offset + delta or (is_tombstone and drop_tombstones):
            continue
        has_tombstones |= is_tombstone
        count += 1
        if spans and spans[-1] == start:
            spans[-1] = position
        else:
            spans += start, position
    return Sifted(count, spans, has_tombstones)


def _sift_older(
    newest: dict[bytes, int], data: bytes, position: int, header: BatchHeader, drop_tombstones: bool
) -> tuple[Sifted, int]:
    run = position
    spans: list[int] = []
    count, has_tombstones = header.records_count, False
    for _ in repeat(None, count):
        start = position
        first = data[position]
        if first < 0x80:
            end = position + 1 + (first >> 1)
            position += 2
        elif (second := data[position + 1]) < 0x80:
            end = position + 2 + ((first & 0x7F | second << 7) >> 1)
            position += 3
        else:
            length, position = read_varint(data, position)
            end = position + length
            position += 1
        while data[position] > 0x7F:  # timestamp delta
            position += 1
        position += 1
        while data[position] > 0x7F:  # offset delta
            position += 1
        size = data[position + 1]
        if size < 0x80:
            position += 2
            key_end = position + (size >> 1)
            is_dropped = size == _NULL_SIZE or data[position:key_end] in newest
            position = key_end
        else:
            key, position = _long_key(data, position + 1)
            is_dropped = key in newest
        if not is_dropped and data[position] == _NULL_SIZE:
            if drop_tombstones:
                is_dropped = True
            else:
                has_tombstones = True
        if is_dropped:
            count -= 1
            if start > run:
                spans += run, start
            run = end
        position = end
    if position > run:
        spans += run, position
    return Sifted(count, spans, has_tombstones), position


def _read(data: bytes, position: int) -> tuple[bytes | None, int, bool, int]:
    """Key, offset delta and whether there is no value of one record, and where it ends."""
    length, position = read_varint(data, position)
    end = position + length
    position += 1
    while data[position] > 0x7F:
        position += 1
    delta, position = read_varint(data, position + 1)
    size = data[position]
    key: bytes | None
    if size == _NULL_SIZE:
        key, position = None, position + 1
    elif size < 0x80:
        position += 1
        key = data[position : position + (size >> 1)]
        position += size >> 1
    else:
        key, position = _long_key(data, position)
    return key, delta, data[position] == _NULL_SIZE, end


def _long_key(data: bytes, position: int) -> tuple[bytes, int]:
    """What stands for a long key, and where it ends."""
    size, position = read_varint(data, position)
    return _DIGEST_MARK + blake2b(data[position : position + size]).digest(), position + size
