"""Where a damaged stretch of a segment ends.

The length in a rotten header leads nowhere, and neither base offset nor leader epoch is under the checksum. So the next sound batch
is looked for: first where the length says it should be, then byte by byte.

Always true: what is taken for the next sound batch carries its checksum, lies within the offsets that the segment can hold there,
and is followed without a gap by the next one or the segment's end: a wrong base offset alone would pass the first two. Where
compaction may have left gaps, the next one must be sound too and come later: that is all that can be known there.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from crc32c import crc32c

from strandline.records.header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    HEADER,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    RECORDS_AT,
    BatchHeader,
)

SEARCH_BYTES = 256 * 1024
"""Read at once while looking for a batch."""

_OFFSET = struct.Struct(">q")
Read = Callable[[int, int], bytes]
"""Position and size to bytes, fewer only at the end of the file."""


class BatchPosition(NamedTuple):
    """A batch that is sound, or the end of a segment."""

    position: int
    offset: int


def header_problem(header: BatchHeader, bytes_left: int, expected_offset: int, limit_offset: int) -> str | None:
    """What about a header can't be right, whatever its checksum covers; `limit_offset` is one past the last possible."""
    if header.magic != MAGIC:
        return f"a batch has magic {header.magic}"
    if not RECORDS_AT <= header.length + LOG_OVERHEAD <= bytes_left:
        return f"a batch has length {header.length}, and {bytes_left} bytes are left"
    if header.base_offset < expected_offset:
        return f"a batch starts at offset {header.base_offset}, below {expected_offset}"
    if header.last_offset_delta < 0 or header.last_offset >= limit_offset:
        return f"a batch ends at offset {header.last_offset}, and the segment at {limit_offset}"
    return None


class BatchSearch:
    """Looking through one segment of `size` bytes that ends before `limit_offset`, or at it if `end_is_known`."""

    def __init__(
        self, read: Read, size: int, limit_offset: int, *, end_is_known: bool, may_have_gaps: bool = False
    ) -> None:
        self._read = read
        self._may_have_gaps = may_have_gaps
        self._size = size
        self._limit_offset = limit_offset
        self._end_is_known = end_is_known

    def next_sound(self, position: int, expected_offset: int) -> BatchPosition:
        """The first sound batch after the damaged one at `position`; `expected_offset` is where the damage begins."""
        count = 0
        for is_second in (False, True):
            header = self._header_at(position)
            if header is None or header.magic != MAGIC or not RECORDS_AT <= header.size_bytes <= self._size - position:
                break
            following = position + header.size_bytes
            count += header.last_offset_delta + 1
            found = self._linked_at(following, expected_offset + 1)
            if not self._carries_checksum(position, header):
                if found is None and following < self._size:
                    break  # its length may be what is wrong
                return self._end() if found is None else BatchPosition(following, found.base_offset)
            # It has a wrong offset or epoch, or the next one has: that can be told where offsets go on without a gap.
            is_linked = is_second or self._may_have_gaps
            if found is not None and (is_linked or found.base_offset - expected_offset == count):
                return BatchPosition(following, found.base_offset)
            if following == self._size:
                return self._end()
            position = following
        return self._bytewise(position + 1, expected_offset + 1)

    def _bytewise(self, position: int, expected_offset: int) -> BatchPosition:
        """A base offset that fits begins with the digits that all of them share, and has the magic behind it."""
        first, last = _OFFSET.pack(expected_offset), _OFFSET.pack(max(self._limit_offset - 1, expected_offset))
        shared = first[: next((i for i in range(_OFFSET.size) if first[i] != last[i]), _OFFSET.size)]
        gap = MAGIC_AT - BASE_OFFSET_AT - len(shared)
        # Looking ahead consumes nothing, so candidates may overlap.
        candidate = re.compile(b"(?=%s.{%d}%c)" % (re.escape(shared), gap, MAGIC), re.DOTALL)
        while position + RECORDS_AT <= self._size:
            chunk = self._read(position, SEARCH_BYTES)
            for match in candidate.finditer(chunk):
                at = position + match.start()
                found = self._linked_at(at, expected_offset)
                if found is not None:
                    return BatchPosition(at, found.base_offset)
            if position + len(chunk) >= self._size:
                break
            position += len(chunk) - MAGIC_AT
        return self._end()

    def sound_at(self, position: int, expected_offset: int) -> BatchHeader | None:
        """The header of the batch at `position`, if there is one and it is sound."""
        header = self._header_at(position)
        if header is None:
            return None
        if header_problem(header, self._size - position, expected_offset, self._limit_offset) is not None:
            return None
        return header if self._carries_checksum(position, header) else None

    def _linked_at(self, position: int, expected_offset: int) -> BatchHeader | None:
        """The same, if its offsets are confirmed by what follows it."""
        header = self.sound_at(position, expected_offset)
        if header is None:
            return None
        following = position + header.size_bytes
        if self._may_have_gaps:
            is_followed = following == self._size or self.sound_at(following, header.next_offset) is not None
            return header if is_followed else None
        if following == self._size:
            return header if header.next_offset == self._limit_offset or not self._end_is_known else None
        after = self._header_at(following)
        return header if after is not None and after.base_offset == header.next_offset else None

    def _header_at(self, position: int) -> BatchHeader | None:
        if self._size - position < RECORDS_AT:
            return None
        return BatchHeader._make(HEADER.unpack(self._read(position, RECORDS_AT)))

    def _carries_checksum(self, position: int, header: BatchHeader) -> bool:
        covered = self._read(position + ATTRIBUTES_AT, header.size_bytes - ATTRIBUTES_AT)
        return bool(crc32c(covered) == header.crc)

    def _end(self) -> BatchPosition:
        return BatchPosition(self._size, self._limit_offset)
