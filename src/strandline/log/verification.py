"""Which bytes of a segment may be served: those whose checksum was seen to be right since they came from the device.

What this process appended it checked before it wrote. What was there when the segment was opened, or was read from the device
again, is checked when it is first handed out, and that is remembered. The memory is a hint, not a proof: a page may leave and come
back unseen, in a long read of which only some bytes are probed or by another reader. So found damage ends it for the segment.

Always true: a checked region starts and ends between two batches; each of its batches carries its checksum, ends before the next
one starts, and is of the leader epoch that the log's entries name for its offset.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from crc32c import crc32c

from strandline.log.damage import header_problem
from strandline.log.epochs import UNDEFINED_EPOCH, LeaderEpochs
from strandline.log.errors import CorruptBatch
from strandline.ports import Buffer
from strandline.records.header import ATTRIBUTES_AT, HEADER, LOG_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader

if TYPE_CHECKING:
    from strandline.log.segment import Segment

_OFFSET = struct.Struct(">q")
_HEAD = struct.Struct(">qiibI2xi")
"""Of a batch header: base offset, length, leader epoch, magic, CRC, last offset delta."""


class CheckedRegions:
    """The checked regions of one segment's file."""

    __slots__ = ("_ends", "_starts", "unchecked_end")

    def __init__(self, size: int) -> None:
        self.unchecked_end = size
        """All that lies at or beyond is checked; 0 once everything is."""
        self._starts: list[int] = []
        self._ends: list[int] = []

    def end_of(self, position: int) -> int:
        """Where the checked region that holds `position` ends; `position` itself if none does."""
        i = bisect_right(self._starts, position) - 1
        return max(self._ends[i], position) if i >= 0 else position

    def add(self, start: int, end: int) -> None:
        """Everything in [start, end) was checked."""
        first = bisect_right(self._starts, start) - 1
        if first < 0 or self._ends[first] < start:
            first += 1
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        if not self._starts[0] and self._ends[0] >= self.unchecked_end:
            self.all()
        elif self._ends[-1] >= self.unchecked_end:
            self.unchecked_end = self._starts.pop()
            self._ends.pop()

    def all(self) -> None:
        """Everything was checked."""
        self._starts, self._ends, self.unchecked_end = [], [], 0

    def forget(self, size: int) -> None:
        """Nothing of the first `size` bytes counts any more: they come from the device, which may have rotted since."""
        self._starts, self._ends, self.unchecked_end = [], [], size

    def cut(self, size: int) -> None:
        """The file ends at `size` now."""
        if size < self.unchecked_end:
            kept = [
                (start, min(end, size)) for start, end in zip(self._starts, self._ends, strict=True) if start < size
            ]
            self.forget(size)
            for start, end in kept:
                self.add(start, end)


def sound_from(segment: Segment, position: int, data: bytes, offset: int, epochs: LeaderEpochs) -> Buffer:
    """Of `data`, which a reader of `offset` is to get, all up to the first batch that is not sound."""
    base_offset: int = _OFFSET.unpack_from(data)[0]
    if base_offset > offset:
        check_gap(segment, position, offset, epochs)
    return data if position >= segment.checked.unchecked_end else sound_prefix(segment, position, data, epochs)


def check_gap(segment: Segment, position: int, offset: int, epochs: LeaderEpochs) -> None:
    """No batch before `position` has `offset`: compaction took it, or a header lies about its last one. CorruptBatch if so."""
    start = segment.floor(offset)
    while start < min(position, segment.checked.unchecked_end):
        data = segment.read(start, position - start)
        try:
            sound = len(sound_prefix(segment, start, data, epochs))
            if sound == len(data):
                return
            damaged = segment.damage_at(start + sound, "a batch before a gap is not sound")
        except CorruptBatch as first:
            damaged = first
        if offset < damaged.end_offset or damaged.end_position <= start:
            raise damaged
        start = damaged.end_position


def sound_prefix(segment: Segment, position: int, data: bytes, epochs: LeaderEpochs) -> Buffer:
    """Of `data`, which stands at `position` and begins with a whole batch, all up to the first batch that is not sound.

    CorruptBatch if that is the first. A batch that is cut off at the end can't be checked, so it goes: what is left is a view of
    `data`, which may be megabytes.
    """
    checked = segment.checked
    start = checked.end_of(position) - position
    unchecked = checked.unchecked_end - position
    if start >= min(len(data), unchecked):
        return data
    found = walk(segment, position, data, epochs, segment.base_offset, start=start, stop=unchecked)
    end, problem = found.end, found.problem
    if problem is None and end > start and position + end < segment.size:
        problem = _overlap(segment, position + end, data[end : end + _OFFSET.size], found.next_offset)
        end = end if problem is None else found.last
    if end > start:
        checked.add(position + start, position + end)
    if problem is not None and end == 0:
        raise segment.damage_at(position, problem)
    return data if end == len(data) or (end >= unchecked and problem is None) else memoryview(data)[:end]


class WalkedBatches(NamedTuple):
    """How far batches are sound; `last` and `end` count from where the bytes start."""

    last: int
    """Where the last of them starts."""
    end: int
    next_offset: int
    problem: str | None


def walk(
    segment: Segment,
    position: int,
    data: bytes,
    epochs: LeaderEpochs,
    expected_offset: int,
    *,
    start: int = 0,
    stop: int | None = None,
) -> WalkedBatches:
    """Check the batches of `data`, which stands at `position`, that start from `start` on and before `stop`."""
    end = len(data)
    stop = end if stop is None else stop
    limit_offset, bytes_left = segment.next_offset, segment.size - position
    view = memoryview(data)
    last = at = start
    epoch, epoch_end = UNDEFINED_EPOCH, 0
    while at < stop and end - at >= RECORDS_AT:
        base_offset, length, batch_epoch, magic, crc, last_offset_delta = _HEAD.unpack_from(view, at)
        next_offset = base_offset + last_offset_delta + 1
        batch_end = at + LOG_OVERHEAD + length
        if (
            magic != MAGIC
            or not RECORDS_AT - LOG_OVERHEAD <= length <= bytes_left - at - LOG_OVERHEAD
            or not expected_offset <= base_offset < next_offset <= limit_offset
        ):
            header = BatchHeader._make(HEADER.unpack_from(view, at))
            problem = header_problem(header, bytes_left - at, expected_offset, limit_offset)
            # If it starts before the last one ends, either of them may be wrong.
            return WalkedBatches(last, last if base_offset < expected_offset else at, expected_offset, problem)
        if batch_end > end:
            break
        if crc32c(view[at + ATTRIBUTES_AT : batch_end]) != crc:
            return WalkedBatches(last, at, expected_offset, f"the batch at offset {base_offset} fails its checksum")
        if base_offset >= epoch_end:
            epoch, epoch_end = epochs.span_at(base_offset)
        if batch_epoch != epoch and epoch != UNDEFINED_EPOCH:
            problem = f"the batch at offset {base_offset} is of epoch {batch_epoch}, not {epoch}"
            return WalkedBatches(last, at, expected_offset, problem)
        last, at, expected_offset = at, batch_end, next_offset
    return WalkedBatches(last, at, expected_offset, None)


def _overlap(segment: Segment, position: int, data: bytes, expected_offset: int) -> str | None:
    """Whether the batch at `position`, which is not checked yet, starts before the one in front of it ends."""
    if len(data) < _OFFSET.size:
        data = segment.read(position, _OFFSET.size)
    base_offset: int = _OFFSET.unpack(data)[0]
    if base_offset < expected_offset:
        return f"a batch ends at offset {expected_offset - 1}, and the next one starts at {base_offset}"
    return None
