"""The offset map compiled, where numba is installed: the same answers at many times the speed.

Keys lie one after the other in an arena, entries in arrays beside each other, and a table of slots leads from a key's hash to its
entry. Room is made before a batch is walked, so the loops below never allocate.

Always true: keys are compared byte by byte, never only their hashes; `OffsetMap` gives the same answer to every question.
"""

from __future__ import annotations

from bisect import bisect_left
from importlib import import_module
from typing import TYPE_CHECKING

from strandline.log.compaction.offset_map import OffsetMap, Sifted
from strandline.records.errors import InvalidRecord
from strandline.records.header import BatchHeader

numba = import_module("numba")
numpy = import_module("numpy")

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Numbers = NDArray[np.int64]

ENTRIES_AT_FIRST = 1024
ARENA_BYTES_AT_FIRST = 64 * 1024
KEY_BYTES = 64
"""What a key takes on average before the map counts as full, whatever its entries: keys may be long."""
_SEED = hash("a hash that nobody outside of this process can foresee") & 0xFFFF_FFFF_FFFF_FFFF
_PRIME = 0x9E37_79B9_7F4A_7C15


class CompiledOffsetMap(OffsetMap):
    def __init__(self) -> None:
        super().__init__()
        self._count = self._arena_used = 0
        self._arena: Bytes = numpy.empty(ARENA_BYTES_AT_FIRST, numpy.uint8)
        self._entries: Numbers = numpy.empty((ENTRIES_AT_FIRST, 4), numpy.int64)
        """Hash, start and size of the key, newest offset."""
        self._slots: Numbers = numpy.full(2 * ENTRIES_AT_FIRST, -1, numpy.int64)
        self._spans: Numbers = numpy.empty(256, numpy.int64)

    def __len__(self) -> int:
        return self._count

    def is_full(self, entries_max: int) -> bool:
        return self._count >= entries_max or self._arena_used >= KEY_BYTES * entries_max

    def note(self, data: bytes, position: int, end: int, header: BatchHeader) -> None:
        self._make_room(header.records_count, end - position)
        walked, self._count, self._arena_used = _note(
            numpy.frombuffer(data, numpy.uint8),
            position,
            end,
            header.records_count,
            header.base_offset,
            self._slots,
            self._entries,
            self._count,
            self._arena,
            self._arena_used,
        )
        if walked != end:
            raise InvalidRecord(f"The records of the batch at offset {header.base_offset} do not fill it")

    def settle(self) -> None:
        self._settled = numpy.sort(self._entries[: self._count, 3]).tolist()

    def has_newest_in(self, header: BatchHeader) -> bool:
        i = bisect_left(self._settled, header.base_offset)
        return i < len(self._settled) and self._settled[i] <= header.last_offset

    def sift_noted(self, data: bytes, position: int, end: int, header: BatchHeader, drop_tombstones: bool) -> Sifted:
        return self._sift(data, position, end, header, drop_tombstones, is_noted=True)

    def sift_older(self, data: bytes, position: int, end: int, header: BatchHeader, drop_tombstones: bool) -> Sifted:
        return self._sift(data, position, end, header, drop_tombstones, is_noted=False)

    def _sift(
        self, data: bytes, position: int, end: int, header: BatchHeader, drop_tombstones: bool, *, is_noted: bool
    ) -> Sifted:
        if len(self._spans) < 2 * header.records_count:
            self._spans = numpy.empty(2 * header.records_count, numpy.int64)
        walked, count, spans, has_tombstones = _sift(
            numpy.frombuffer(data, numpy.uint8),
            position,
            end,
            header.records_count,
            header.base_offset,
            drop_tombstones,
            is_noted,
            self._slots,
            self._entries,
            self._arena,
            self._spans,
        )
        if walked != end:
            raise InvalidRecord(f"The records of the batch at offset {header.base_offset} do not fill it")
        return Sifted(count, self._spans[:spans].tolist(), bool(has_tombstones))

    def _make_room(self, more_entries: int, more_bytes: int) -> None:
        """For as many new keys as a batch can have."""
        needed = self._count + more_entries
        if needed > len(self._entries):
            entries = numpy.empty((max(needed, 2 * len(self._entries)), 4), numpy.int64)
            entries[: self._count] = self._entries[: self._count]
            self._entries = entries
        if 2 * needed > len(self._slots):
            self._slots = numpy.full(1 << (4 * needed - 1).bit_length(), -1, numpy.int64)
            _rehash(self._slots, self._entries, self._count)
        if self._arena_used + more_bytes > len(self._arena):
            arena = numpy.empty(max(self._arena_used + more_bytes, 2 * len(self._arena)), numpy.uint8)
            arena[: self._arena_used] = self._arena[: self._arena_used]
            self._arena = arena


def _read_varint_py(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """A signed value and the position after it, which lies beyond `end` if there is none."""
    raw = 0
    shift = 0
    while position < end and shift < 35:
        byte = numpy.int64(data[position])
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFF_FFFF
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, end + 1


def _find_py(
    data: Bytes, start: int, size: int, slots: Numbers, entries: Numbers, arena: Bytes
) -> tuple[int, int, int]:
    """The entry of a key, or -1; the slot where it is or would be; its hash."""
    mixed = numpy.uint64(_SEED)
    for i in range(start, start + size):
        mixed = (mixed ^ numpy.uint64(data[i])) * numpy.uint64(_PRIME)
        mixed ^= mixed >> numpy.uint64(29)
    code = numpy.int64(mixed >> numpy.uint64(1))
    mask = len(slots) - 1
    slot = code & mask
    while True:
        entry = slots[slot]
        if entry < 0:
            return -1, slot, code
        if entries[entry, 0] == code and entries[entry, 2] == size:
            known = entries[entry, 1]
            is_same = True
            for i in range(size):
                if arena[known + i] != data[start + i]:
                    is_same = False
                    break
            if is_same:
                return entry, slot, code
        slot = (slot + 1) & mask


def _rehash_py(slots: Numbers, entries: Numbers, count: int) -> None:
    mask = len(slots) - 1
    for entry in range(count):
        slot = entries[entry, 0] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


def _note_py(
    data: Bytes,
    position: int,
    end: int,
    records_count: int,
    base_offset: int,
    slots: Numbers,
    entries: Numbers,
    count: int,
    arena: Bytes,
    arena_used: int,
) -> tuple[int, int, int]:
    for _ in range(records_count):
        length, position = _read_varint(data, position, end)
        record_end = position + length
        if length < 0 or record_end > end:
            return -1, count, arena_used
        position += 1
        while position < record_end and data[position] > 0x7F:
            position += 1
        delta, position = _read_varint(data, position + 1, record_end)
        size, position = _read_varint(data, position, record_end)
        if position + size > record_end:
            return -1, count, arena_used
        if size >= 0:
            entry, slot, code = _find(data, position, size, slots, entries, arena)
            if entry < 0:
                entry = count
                count += 1
                slots[slot] = entry
                entries[entry, 0], entries[entry, 1], entries[entry, 2] = code, arena_used, size
                for i in range(size):
                    arena[arena_used + i] = data[position + i]
                arena_used += size
            entries[entry, 3] = base_offset + delta
        position = record_end
    return position, count, arena_used


def _sift_py(
    data: Bytes,
    position: int,
    end: int,
    records_count: int,
    base_offset: int,
    drop_tombstones: bool,
    is_noted: bool,
    slots: Numbers,
    entries: Numbers,
    arena: Bytes,
    spans: Numbers,
) -> tuple[int, int, int, bool]:
    kept = filled = 0
    has_tombstones = False
    for _ in range(records_count):
        start = position
        length, position = _read_varint(data, position, end)
        record_end = position + length
        if length < 0 or record_end > end:
            return -1, 0, 0, False
        position += 1
        while position < record_end and data[position] > 0x7F:
            position += 1
        delta, position = _read_varint(data, position + 1, record_end)
        size, position = _read_varint(data, position, record_end)
        if position + size > record_end:
            return -1, 0, 0, False
        is_kept = size >= 0
        if is_kept:
            entry, _, _ = _find(data, position, size, slots, entries, arena)
            is_kept = entries[entry, 3] == base_offset + delta if is_noted and entry >= 0 else entry < 0
            value_size, position = _read_varint(data, position + size, record_end)
            if is_kept and value_size < 0:
                if drop_tombstones:
                    is_kept = False
                else:
                    has_tombstones = True
        if is_kept:
            kept += 1
            if filled and spans[filled - 1] == start:
                spans[filled - 1] = record_end
            else:
                spans[filled], spans[filled + 1] = start, record_end
                filled += 2
        position = record_end
    return position, kept, filled, has_tombstones


_compile = numba.njit(cache=True, nogil=True)
_read_varint = numba.njit(cache=True, nogil=True, inline="always")(_read_varint_py)
_find = _compile(_find_py)
_rehash = _compile(_rehash_py)
_note = _compile(_note_py)
_sift = _compile(_sift_py)
