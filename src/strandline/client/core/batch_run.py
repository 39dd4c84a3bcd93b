"""The whole batches at the beginning of what a Fetch brought, as far as a reader wants them.

Only lengths, magic and offsets are read: a few bytes of each batch. Whether its CRC is right is for those who open it.

Always true: what is between `begin` of the data and `size_bytes` are whole batches, in the order of their offsets; the
first may begin before the offset that was asked for.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from strandline.records import header as layout
from strandline.records.errors import CorruptRecord

_OFFSET_LENGTH = struct.Struct(">qi")
_OFFSET_LENGTH_EPOCH_MAGIC = struct.Struct(">qiib")
_INT32 = struct.Struct(">i")


class BatchRun(NamedTuple):
    size_bytes: int
    """Of the whole batches that begin before `end`."""
    next_offset: int
    """Where to go on. At least `end` if a batch beyond it was seen: then nothing is missing in between."""
    last_epoch: int
    """Leader epoch of the last of them, -1 if there is none."""
    cut_batch_bytes: int
    """What the first batch needs, if it did not fit; else 0."""


def run_of(data: memoryview, position: int, end: int) -> BatchRun:
    """CorruptRecord if the first batch cannot be one; a later one is left for the next Fetch to complain of."""
    at, size, last_at = 0, len(data), -1
    next_offset = position
    cut_bytes = 0
    read = _OFFSET_LENGTH_EPOCH_MAGIC.unpack_from
    while size - at >= layout.LOG_OVERHEAD:
        if size - at <= layout.MAGIC_AT:
            cut_bytes = layout.LOG_OVERHEAD + _OFFSET_LENGTH.unpack_from(data, at)[1]
            break
        base_offset, length, _, magic = read(data, at)
        if length < layout.RECORDS_AT - layout.LOG_OVERHEAD or magic != layout.MAGIC:
            if at == 0:
                _refuse(length, magic)
            break
        following = at + layout.LOG_OVERHEAD + length
        if following > size:
            cut_bytes = layout.LOG_OVERHEAD + length
            break
        if base_offset >= end:
            next_offset = max(next_offset, base_offset)
            break
        last_at, at = at, following
    last_epoch = -1
    if last_at >= 0:
        base_offset, _, last_epoch, _ = read(data, last_at)
        last_offset_delta: int = _INT32.unpack_from(data, last_at + layout.LAST_OFFSET_DELTA_AT)[0]
        next_offset = max(next_offset, base_offset + last_offset_delta + 1)
    return BatchRun(at, next_offset, last_epoch, cut_bytes if at == 0 else 0)


def _refuse(length: int, magic: int) -> None:
    if length < layout.RECORDS_AT - layout.LOG_OVERHEAD:
        raise CorruptRecord(f"a batch claims a length of {length} bytes, less than a header")
    layout.check_magic(magic)
