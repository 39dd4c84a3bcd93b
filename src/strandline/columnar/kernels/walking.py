"""The kernel of the broker's walk: every record of a produced batch read once, and nothing copied.

It is loaded without LLVM (`mapped`), so it calls nothing and has no data beside its code: varints are read in line.

Always true: it is as strict as `records.walk.walk_plain` and answers the same.
"""

from __future__ import annotations

from strandline.columnar.kernels.calls import (
    WALK_BAD_INDEX,
    WALK_BASE_TIMESTAMP,
    WALK_COUNT,
    WALK_END,
    WALK_KEYLESS,
    WALK_MAX_TIMESTAMP,
    WALK_MIN_TIMESTAMP,
    WALK_POSITION,
    Pointer,
)
from strandline.columnar.kernels.primitives import numpy, read_varint_inline, read_varlong_inline
from strandline.records.header import NO_TIMESTAMP
from strandline.records.walk import BAD_OFFSET_DELTA, BAD_RECORD, LEFT_OVER, SOUND


def walk_records(data: Pointer, cell: Pointer) -> int:
    """So many records from a position to exactly the end, as `cell` says; what is known of them goes there too."""
    position, end = cell[WALK_POSITION], cell[WALK_END]
    count, base_timestamp = cell[WALK_COUNT], cell[WALK_BASE_TIMESTAMP]
    min_timestamp = max_timestamp = numpy.int64(NO_TIMESTAMP)
    keyless = numpy.int64(0)
    for i in range(count):
        cell[WALK_BAD_INDEX] = i
        length, position = read_varint_inline(data, position, end)
        limit = position + length
        if length < 0 or limit > end:
            return BAD_RECORD
        delta, position = read_varlong_inline(data, position + 1, limit)
        timestamp = base_timestamp + delta
        # Two of one sign whose sum has the other: it does not fit 64 bits.
        if ((base_timestamp ^ timestamp) & (delta ^ timestamp)) < 0:
            return BAD_RECORD
        offset_delta, position = read_varint_inline(data, position, limit)
        if position > limit:
            return BAD_RECORD
        if offset_delta != i:
            return BAD_OFFSET_DELTA
        size, position = read_varint_inline(data, position, limit)
        if size < 0:
            keyless += 1
        else:
            position += size
        size, position = read_varint_inline(data, position, limit)
        if size > 0:
            position += size
        headers, position = read_varint_inline(data, position, limit)
        if headers != 0:
            if headers < 0 or headers > limit - position:
                return BAD_RECORD
            for _ in range(headers):
                size, position = read_varint_inline(data, position, limit)
                if size < 0:
                    return BAD_RECORD
                size, position = read_varint_inline(data, position + size, limit)
                if size > 0:
                    position += size
                if position > limit:
                    return BAD_RECORD
        if position != limit:
            return BAD_RECORD
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if timestamp != NO_TIMESTAMP and (timestamp < min_timestamp or min_timestamp == NO_TIMESTAMP):
            min_timestamp = timestamp
    if position != end:
        return LEFT_OVER
    cell[WALK_MIN_TIMESTAMP] = min_timestamp
    cell[WALK_MAX_TIMESTAMP] = max_timestamp
    cell[WALK_KEYLESS] = keyless
    return SOUND
