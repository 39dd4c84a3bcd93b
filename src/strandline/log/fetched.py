"""Batches as a leader sent them, before they may enter a follower's log.

Always true: what passes is whole, carries its checksum, goes on where the log ended, and was written in an epoch that is neither
older than the log's latest nor newer than the one it was asked for in (KAFKA-18723). The checksum covers neither offset nor
epoch, so those are checked by sense. Each header is read once, each byte once; nothing is copied.
"""

from __future__ import annotations

from typing import NamedTuple

from crc32c import crc32c

from strandline.ports import Buffer
from strandline.records.header import ATTRIBUTES_AT, HEADER, LOG_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader


class WholeBatches(NamedTuple):
    """The longest valid prefix of what came."""

    headers: list[BatchHeader]
    size_bytes: int
    end_offset: int
    problem: str | None
    """Why the batch after them was not taken, if there is one that should have been."""


class AppendedFetch(NamedTuple):
    """What a follower's log took of an answer."""

    end_offset: int
    bytes: int
    problem: str | None


def whole_valid_batches(data: Buffer, expected_offset: int, max_epoch: int, min_epoch: int = -1) -> WholeBatches:
    """Check batches from the start of `data` on, up to the first that may not be appended.

    A batch at the end that is cut off is no problem, an answer has a size; but the first always comes whole.
    """
    view = memoryview(data)
    end = len(view)
    position, epoch = 0, min_epoch
    headers: list[BatchHeader] = []
    problem = None
    while end - position >= RECORDS_AT:
        header = tuple.__new__(BatchHeader, HEADER.unpack_from(view, position))  # BatchHeader._make, at half its price
        batch_end = position + LOG_OVERHEAD + header[1]
        if (
            header[3] != MAGIC
            or header[1] < RECORDS_AT - LOG_OVERHEAD
            or header[0] < expected_offset
            or header[6] < 0
            or not epoch <= header[2] <= max_epoch
        ):
            problem = _problem(header, expected_offset, epoch, max_epoch)
            break
        if batch_end > end:
            break
        if crc32c(view[position + ATTRIBUTES_AT : batch_end]) != header[4]:
            problem = f"the batch at offset {header.base_offset} fails its checksum"
            break
        headers.append(header)
        epoch = header[2]
        expected_offset = header[0] + header[6] + 1
        position = batch_end
    if not headers and problem is None and end:
        problem = f"the first batch did not come whole, only {end} bytes of it"
    return WholeBatches(headers, position, expected_offset, problem)


def _problem(header: BatchHeader, expected_offset: int, min_epoch: int, max_epoch: int) -> str:
    if header.magic != MAGIC:
        return f"a batch has magic {header.magic} where offset {expected_offset} is expected"
    if header.length < RECORDS_AT - LOG_OVERHEAD:
        return f"a batch has length {header.length} where offset {expected_offset} is expected"
    if header.base_offset < expected_offset:
        return f"a batch starts at offset {header.base_offset}, but {expected_offset} is the next"
    if header.last_offset_delta < 0:
        return f"the batch at offset {header.base_offset} ends before it starts"
    if header.partition_leader_epoch > max_epoch:
        return (
            f"the batch at offset {header.base_offset} is of leader epoch {header.partition_leader_epoch}, "
            f"later than {max_epoch}, in which it was asked for"
        )
    return (
        f"the batch at offset {header.base_offset} is of leader epoch {header.partition_leader_epoch}, "
        f"but the log is at {min_epoch} already"
    )
