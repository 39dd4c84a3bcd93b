"""The files that cleaned batches go into, `<base offset>.log.cleaned` and its indexes.

Always true: each begins where the one before it ended, so that there is no hole between segments; what `finish` returns is on the
device, though its names may not be yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strandline.log import names
from strandline.log.segment import RELATIVE_OFFSET_MAX, Segment
from strandline.log.txn_index import AbortedTxn
from strandline.ports import Buffer, Disk, Pace
from strandline.records.header import BatchHeader

if TYPE_CHECKING:
    from strandline.log.compaction.job import CleanJob

WRITE_BYTES = 1024 * 1024
"""Collected before it is written."""
SEGMENT_BYTES_MAX = 2**31 - 1
"""An index has so many positions. Batches that compress worse than before may need more than they had."""


class CleanedSegment(NamedTuple):
    base_offset: int
    next_offset: int
    size: int


class CleanedSegmentWriter:
    def __init__(self, disk: Disk, pace: Pace, job: CleanJob, base_offset: int) -> None:
        self._disk = disk
        self._pace = pace
        self._job = job
        self._done: list[CleanedSegment] = []
        self._segment = self._begin(base_offset)
        self._parts: list[Buffer] = []
        self._size = 0
        """Of the segment, with what is still to be written."""
        self._written = 0

    def add(self, batch: Buffer, header: BatchHeader, aborted: AbortedTxn | None) -> None:
        segment, size = self._segment, len(batch)
        if self._size and (
            self._size + size > SEGMENT_BYTES_MAX
            or segment.indexes_full
            or header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
        ):
            self._close()
            segment = self._segment = self._begin(segment.next_offset)
        segment.note_batch(self._size, size, header.last_offset, header.max_timestamp)
        self._parts.append(batch)
        self._size += size
        if self._size - self._written >= WRITE_BYTES:
            self._write()
        if aborted is not None:
            segment.txn_index.add(aborted)

    def finish(self) -> list[CleanedSegment]:
        self._close()
        return self._done

    def discard(self) -> None:
        """Nothing of it is wanted."""
        self._segment.remove()
        self._segment.close()
        for output in self._done:
            for suffix in names.SEGMENT_SUFFIXES:
                name = names.of_offset(output.base_offset, suffix) + names.CLEANED_SUFFIX
                self._disk.remove(f"{self._job.directory}/{name}")

    def _begin(self, base_offset: int) -> Segment:
        job = self._job
        segment = Segment(
            self._disk,
            job.directory,
            base_offset,
            index_interval_bytes=job.index_interval_bytes,
            index_bytes_max=job.segment_index_bytes,
            created_ms=job.now_ms,
            suffix=names.CLEANED_SUFFIX,
        )
        segment.begin_indexes()
        self._size = self._written = 0
        return segment

    def _write(self) -> None:
        data = b"".join(self._parts)
        self._parts = []
        self._segment.file.append(data)
        self._written = self._size
        self._pace(len(data))

    def _close(self) -> None:
        self._write()
        segment = self._segment
        segment.seal()
        segment.sync_blocking()
        self._done.append(CleanedSegment(segment.base_offset, segment.next_offset, segment.size))
        segment.close()
