"""One segment: a stretch of the log in a file of its own, with its indexes.

Always true: batches lie back to back with rising offsets, all of them at or above `base_offset` and within 2^31 of it;
`next_offset` is one past the last. Only the last segment of a log is written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from strandline.log import names
from strandline.log.errors import CorruptLog, NotCached
from strandline.log.indexes import OffsetIndex, TimeIndex
from strandline.log.txn_index import TxnIndex
from strandline.ports import Buffer, Disk
from strandline.records.header import HEADER, LOG_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader

RELATIVE_OFFSET_MAX = 2**31 - 1
SCAN_CHUNK_BYTES = 16 * 1024
"""How much to read at once while looking for a batch: more than the usual distance between two index entries."""

_WALK = struct.Struct(">qi11xi")
"""Of a batch header: base offset, length, last offset delta."""


class Segment:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        index_interval_bytes: int,
        index_bytes_max: int,
        created_ms: int,
    ) -> None:
        self._disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        self.created_ms = created_ms
        self.first_timestamp = -1
        """The greatest timestamp of the first batch: a segment's age is counted from it. -1 while there is none."""
        self.indexes_full = False
        self.file = disk.open(self._path(names.LOG_SUFFIX), create=True)
        self.offset_index = OffsetIndex(disk, self._path(names.INDEX_SUFFIX), base_offset, index_bytes_max)
        self.time_index = TimeIndex(disk, self._path(names.TIME_INDEX_SUFFIX), base_offset, index_bytes_max)
        self.txn_index = TxnIndex(disk, self._path(names.TXN_INDEX_SUFFIX))
        self.max_timestamp = -1
        self.offset_of_max_timestamp = base_offset
        self._bytes_since_index = 0

    def _path(self, suffix: str) -> str:
        return f"{self.directory}/{names.of_offset(self.base_offset, suffix)}"

    @property
    def size(self) -> int:
        return self.file.size

    # Writing

    def begin_indexes(self) -> None:
        """Empty indexes, for a new segment or one whose indexes will be rebuilt."""
        self.offset_index.begin()
        self.time_index.begin()
        self.txn_index.begin()
        self.max_timestamp, self.offset_of_max_timestamp, self.first_timestamp = -1, self.base_offset, -1
        self._bytes_since_index = 0
        self.indexes_full = False

    def append(self, data: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Write one batch."""
        position = self.file.size
        self.file.append(data)
        self.note_batch(position, len(data), last_offset, max_timestamp)

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """A batch stands at `position`: index it if the last entry is far enough away."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.offset_of_max_timestamp = max_timestamp, last_offset
        if not position:
            self.first_timestamp = max_timestamp
        if self._bytes_since_index > self.index_interval_bytes:
            self.offset_index.add(last_offset, position)
            self.time_index.add_if_later(self.max_timestamp, self.offset_of_max_timestamp)
            self.indexes_full = self.offset_index.full or self.time_index.full
            self._bytes_since_index = 0
        self._bytes_since_index += size
        self.next_offset = last_offset + 1

    def holds(self, last_offset: int) -> bool:
        return last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    def seal(self) -> None:
        """No more batches will come: the greatest timestamp goes into the time index, and memory is given back."""
        self.time_index.add_if_later(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.seal()
        self.time_index.seal()

    def reopen(self) -> None:
        """Become the active segment again, after a restart or a truncation."""
        self.offset_index.reopen()
        self.time_index.reopen()

    def sync_blocking(self) -> None:
        """Log and indexes of a sealed segment on the device."""
        self.file.sync_blocking()
        for index in (self.offset_index, self.time_index, self.txn_index):
            index.sync_blocking()

    def truncate_to(self, offset: int) -> None:
        """Cut everything from the batch that holds `offset` on."""
        found = self.locate(offset, blocking=True)
        if found is not None:
            self.file.truncate(found[0])
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.reopen()
        self.load_end()

    # Reading

    def locate(self, offset: int, *, blocking: bool = False) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is at least `offset`; None if there is none."""
        position = self.offset_index.lookup(offset)
        end = self.file.size
        while position < end:
            chunk = self._read(position, SCAN_CHUNK_BYTES, blocking)
            at, available = 0, len(chunk) - RECORDS_AT
            while at <= available:
                base_offset, length, last_offset_delta = _WALK.unpack_from(chunk, at)
                if not RECORDS_AT <= length + LOG_OVERHEAD <= end - position - at:
                    raise CorruptLog(f"{self.file.path} has a batch of length {length} at {position + at}")
                if base_offset + last_offset_delta >= offset:
                    return position + at, length + LOG_OVERHEAD
                at += length + LOG_OVERHEAD
            if not at:
                raise CorruptLog(f"{self.file.path} has an incomplete batch at {position}")
            position += at
        return None

    def _read(self, position: int, size: int, blocking: bool) -> bytes:
        if blocking:
            return self.file.read_blocking(position, size)
        data = self.file.read(position, size)
        if data is None:
            raise NotCached(self.file, position, size)
        return data

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the log file; NotCached if that would wait for the device."""
        return self._read(position, size, False)

    def batches(self, position: int = 0, *, blocking: bool = True) -> Iterator[tuple[int, BatchHeader]]:
        """Headers and positions of whole batches from `position` to the end, without looking at their records."""
        end = self.file.size
        while position + RECORDS_AT <= end:
            chunk = self._read(position, SCAN_CHUNK_BYTES, blocking)
            at = 0
            while at + RECORDS_AT <= len(chunk):
                header = BatchHeader._make(HEADER.unpack_from(chunk, at))
                length_fits = RECORDS_AT <= header.size_bytes <= end - position - at
                if header.magic != MAGIC or not length_fits:
                    raise CorruptLog(
                        f"{self.file.path} has a batch of magic {header.magic} and length {header.length} at {position + at}"
                    )
                yield position + at, header
                at += header.size_bytes
            position += at

    def load_end(self) -> None:
        """Find `next_offset` and the greatest timestamp, trusting the indexes. Blocks."""
        self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last
        entries = self.offset_index.count
        start = self.offset_index.get(entries - 1)[1] if entries else 0
        self.next_offset = self.base_offset
        self._bytes_since_index = self.file.size - start
        self.indexes_full = self.offset_index.full or self.time_index.full
        _, first = next(self.batches(), (0, None))
        self.first_timestamp = -1 if first is None else first.max_timestamp
        for _, header in self.batches(start):
            self.next_offset = header.last_offset + 1
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.offset_of_max_timestamp = header.max_timestamp, header.last_offset

    # Leaving

    @property
    def paths(self) -> list[str]:
        return [self._path(suffix) for suffix in names.SEGMENT_SUFFIXES]

    def mark_deleted(self) -> list[str]:
        """Rename the files so that a restart removes them; the names to remove later."""
        doomed = []
        for path in self.paths:
            if self._disk.exists(path):
                self._disk.rename(path, path + names.DELETED_SUFFIX)
                doomed.append(path + names.DELETED_SUFFIX)
        return doomed

    def remove(self) -> None:
        for path in self.paths:
            self._disk.remove(path)

    def close(self) -> None:
        self.file.close()
        self.offset_index.close()
        self.time_index.close()
        self.txn_index.close()
