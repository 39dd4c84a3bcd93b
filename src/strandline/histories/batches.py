"""The batches of a log as its files hold them, past the disk's faults and chances.

Always true: two batches are equal only if all their bytes are; whether a batch is sound is said by its own checksum. A
reader takes in each batch once, when the log has grown by it; what is cut is read anew, what rots later it does not
see.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

from strandline.node.observation.logs import ObservedLog, ObservedSegment
from strandline.records.header import ATTRIBUTES_AT, LOG_OVERHEAD, RECORDS_AT
from strandline.sim.file import SimFile
from strandline.sim.inode import Inode

_HEAD = struct.Struct(">qiixIxxi")
"""Of a batch header: base offset, length, leader epoch, CRC, last offset delta."""


class LoggedBatch(NamedTuple):
    base_offset: int
    last_offset: int
    epoch: int
    crc: int
    content: bytes = b""
    """From the base offset to the last record."""

    @property
    def is_sound(self) -> bool:
        return crc32c(memoryview(self.content)[ATTRIBUTES_AT:]) == self.crc

    def __repr__(self) -> str:
        return f"batch {self.base_offset}-{self.last_offset} of epoch {self.epoch} (CRC {self.crc:08x})"


def walk(data: bytes | bytearray, position: int = 0) -> Iterator[tuple[LoggedBatch, int]]:
    """The batches of a segment from `position` on, and where each ends; nothing more where the bytes make no sense."""
    size = len(data)
    while position + RECORDS_AT <= size:
        base_offset, length, epoch, crc, delta = _HEAD.unpack_from(data, position)
        end = position + LOG_OVERHEAD + length
        if length < RECORDS_AT - LOG_OVERHEAD or end > size or delta < 0:
            return
        yield LoggedBatch(base_offset, base_offset + delta, epoch, crc, bytes(data[position:end])), end
        position = end


def inode_of(segment: ObservedSegment) -> Inode:
    """What a segment's file is on its simulated disk."""
    file = segment.file
    assert isinstance(file, SimFile), "histories play on simulated disks"
    return file.inode


class LogReader:
    """All batches of one log, and which of them are new."""

    def __init__(self, log: ObservedLog) -> None:
        self.log = log
        self._begin()

    def _begin(self) -> None:
        self.batches: list[LoggedBatch] = []
        self._last_offsets: list[int] = []
        self.end_offset = 0
        self.truncations = self.log.truncations
        self._segment_base = -1
        self._position = 0

    def read(self) -> bool:
        """Take in what was appended; False if something was cut since, and everything had to be read anew."""
        log = self.log
        is_growth = log.truncations == self.truncations
        if not is_growth:
            self._begin()
        if self.end_offset != log.log_end_offset:
            for segment in log.segments:
                if segment.base_offset >= self._segment_base:
                    self._read(segment)
            self.end_offset = log.log_end_offset
        return is_growth

    def _read(self, segment: ObservedSegment) -> None:
        if segment.base_offset != self._segment_base:
            self._segment_base, self._position = segment.base_offset, 0
        for batch, end in walk(inode_of(segment).data, self._position):
            self.batches.append(batch)
            self._last_offsets.append(batch.last_offset)
            self._position = end

    def between(self, offset: int, limit_offset: int) -> Iterator[LoggedBatch]:
        """From the one that holds `offset` on, as far as they begin below the limit."""
        batches = self.batches
        for index in range(bisect_left(self._last_offsets, offset), len(batches)):
            if batches[index].base_offset >= limit_offset:
                return
            yield batches[index]


def all_batches(log: ObservedLog) -> list[LoggedBatch]:
    """Of a log as it is now."""
    reader = LogReader(log)
    reader.read()
    return reader.batches
