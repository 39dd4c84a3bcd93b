"""One segment: a stretch of the log in a file of its own, with its indexes.

Always true: batches lie back to back with rising offsets, all of them at or above `base_offset` and within 2^31 of it;
`next_offset` is one past the last. Only the last segment of a log is written. An index is a hint: an entry counts only if the
batch that it names is there, so a rotten one costs time and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from strandline.log import damage, names
from strandline.log.errors import CorruptBatch, CorruptLog, NotCached
from strandline.log.indexes import OffsetIndex, TimeIndex
from strandline.log.txn_index import TxnIndex
from strandline.log.verification import CheckedRegions
from strandline.ports import Buffer, Disk, File
from strandline.records.header import HEADER, LOG_OVERHEAD, RECORDS_AT, BatchHeader, crc_valid

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
        suffix: str = "",
        may_have_gaps: bool = False,
        create: bool = True,
    ) -> None:
        """`suffix` is for files that are to take the place of others. Without `create`, FileNotFoundError if it is not there."""
        self._disk = disk
        self._suffix = suffix
        self.directory = directory
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        self.index_bytes_max = index_bytes_max
        self.created_ms = created_ms
        self.may_have_gaps = may_have_gaps
        """Whether compaction may have taken batches out of it."""
        self.first_timestamp = -1
        """The greatest timestamp of the first batch: a segment's age is counted from it. -1 while there is none."""
        self.indexes_full = False
        self.file = disk.open(self._path(names.LOG_SUFFIX), create=create)
        self.checked = CheckedRegions(self.file.size)
        self.offset_index = OffsetIndex(disk, self._path(names.INDEX_SUFFIX), base_offset, index_bytes_max)
        self.time_index = TimeIndex(disk, self._path(names.TIME_INDEX_SUFFIX), base_offset, index_bytes_max)
        self.txn_index = TxnIndex(disk, self._path(names.TXN_INDEX_SUFFIX))
        self.max_timestamp = -1
        self.offset_of_max_timestamp = base_offset
        self._bytes_since_index = 0

    def _path(self, suffix: str) -> str:
        return f"{self.directory}/{names.of_offset(self.base_offset, suffix)}{self._suffix}"

    @property
    def size(self) -> int:
        return self.file.size

    @property
    def offset_limit(self) -> int:
        """One past the last offset that the indexes can name."""
        return self.base_offset + RELATIVE_OFFSET_MAX + 1

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

    @property
    def index_entries_left(self) -> int:
        """So many batches can come, whatever their sizes, before an index is full."""
        offsets, times = self.offset_index, self.time_index
        return min(offsets.count_max - offsets.count, times.count_max - times.count)

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
        """Cut everything from the batch that holds `offset` on, or from a damaged stretch before which nothing can be found."""
        try:
            found = self.locate(offset, blocking=True)
            position = self.size if found is None else found[0]
        except CorruptBatch as damaged:
            position, offset = damaged.position, damaged.first_offset
        self.file.truncate(position)
        self.checked.cut(position)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.reopen()
        try:
            self.load_end()
        except (CorruptLog, CorruptBatch):
            end = self.index_batches(self.offset_limit)
            self.file.truncate(end)
            self.checked.cut(end)

    def index_batches(self, limit_offset: int) -> int:
        """Make the offset and time indexes anew, passing over damage; where the last sound batch ends. Blocks."""
        self.offset_index.begin()
        self.time_index.begin()
        self.max_timestamp, self.offset_of_max_timestamp, self.first_timestamp = -1, self.base_offset, -1
        self._bytes_since_index, self.next_offset, end = 0, self.base_offset, 0
        for position, header in self.batches(limit_offset=limit_offset, skip_damage=True):
            if crc_valid(self.file.read_blocking(position, header.size_bytes)):
                self.note_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)
                end = position + header.size_bytes
        return end

    # Reading

    def locate(self, offset: int, *, start: int | None = None, blocking: bool = False) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is at least `offset`, not before `start`; None if there is none.

        CorruptBatch if it may be in a damaged stretch.
        """
        position, chunk = self._floor(offset, blocking) if start is None else (start, b"")
        end, expected_offset = self.file.size, self.base_offset
        while position < end:
            chunk = chunk or self._read(position, SCAN_CHUNK_BYTES, blocking)
            at, available, bytes_left = 0, len(chunk) - RECORDS_AT, end - position
            is_sound = available >= 0
            while at <= available:
                base_offset, length, last_offset_delta = _WALK.unpack_from(chunk, at)
                if not RECORDS_AT <= length + LOG_OVERHEAD <= bytes_left - at or base_offset < expected_offset:
                    is_sound = False
                    break
                last_offset = base_offset + last_offset_delta
                if last_offset >= offset:
                    return position + at, length + LOG_OVERHEAD
                expected_offset = last_offset + 1
                at += length + LOG_OVERHEAD
            chunk = b""
            position += at
            if not is_sound:
                damaged = self.damage_at(position, "a batch can't be what was written there", blocking=blocking)
                if offset < damaged.end_offset:
                    raise damaged
                position, expected_offset = damaged.end_position, damaged.end_offset
        return None

    def _floor(self, offset: int, blocking: bool) -> tuple[int, bytes]:
        """Where to start looking for `offset`, by the last index entry that is right, and the bytes there."""
        i = self.offset_index.floor(offset - self.base_offset)
        while i >= 0:
            last_offset, position = self.offset_index.entry(i)
            if 0 <= position <= self.file.size - RECORDS_AT:
                chunk = self._read(position, SCAN_CHUNK_BYTES, blocking)
                base_offset, _, last_offset_delta = _WALK.unpack_from(chunk)
                if base_offset + last_offset_delta == last_offset <= offset:
                    return position, chunk
            i -= 1
        return 0, b""

    def floor(self, offset: int, *, blocking: bool = False) -> int:
        """The position of a batch at or before the one that holds `offset`."""
        return self._floor(offset, blocking)[0]

    def locate_time(self, timestamp: int) -> int:
        """The position of a batch before which none has a timestamp of `timestamp` or more, by the last entry that is right."""
        for i in range(self.time_index.floor(timestamp - 1), -1, -1):
            greatest, offset = self.time_index.entry(i)
            found = self.locate(offset)
            if found is not None and self._is_indexed(greatest, offset, found[0], blocking=False):
                return found[0]
        return 0

    def _is_indexed(self, timestamp: int, offset: int, position: int, *, blocking: bool) -> bool:
        """Whether the batch at `position` is the one that a time index entry speaks of."""
        header = BatchHeader._make(HEADER.unpack(self._read(position, RECORDS_AT, blocking)))
        return header.max_timestamp == timestamp and header.base_offset <= offset <= header.last_offset

    def damage_at(
        self, position: int, reason: str, *, limit_offset: int | None = None, blocking: bool = False
    ) -> CorruptBatch:
        """What can be said of the damaged stretch in which a reader came to a stop at `position`."""
        limit_offset = self.next_offset if limit_offset is None else limit_offset

        def read(at: int, size: int) -> bytes:
            return self._read(at, size, blocking)

        search = damage.BatchSearch(
            read,
            self.size,
            limit_offset,
            end_is_known=limit_offset != self.offset_limit,
            may_have_gaps=self.may_have_gaps,
        )
        position, first_offset = self._first_unsound(search, position)
        end = search.next_sound(position, first_offset)
        return CorruptBatch(self.directory, self.base_offset, position, end.position, first_offset, end.offset, reason)

    def _first_unsound(self, search: damage.BatchSearch, position: int) -> tuple[int, int]:
        """Where damage that was noticed at `position` begins, and at which offset: a wrong length leads astray."""
        for i in range(self.offset_index.before(position), -2, -1):
            start = at = self.offset_index.entry(i)[1] if i >= 0 else 0
            next_offset = self.base_offset
            while 0 <= at < position:
                header = search.sound_at(at, next_offset)
                if header is not None:
                    at, next_offset = at + header.size_bytes, header.last_offset + 1
                    continue
                end = search.next_sound(at, next_offset)
                if end.position > position or (at == start and i >= 0):
                    break
                at, next_offset = end  # another stretch, which ends before
            # Nothing sound at an index entry may be the entry's fault.
            if at <= position and (at > start or i < 0):
                return at, next_offset
        return position, self.base_offset

    def _read(self, position: int, size: int, blocking: bool) -> bytes:
        if blocking:
            return self.file.read_blocking(position, size)
        data = self.file.read(position, size)
        if data is None:
            # What was checked is not what the device will give us. Nor need what follows be: it is read ahead, without a miss.
            self.checked.forget(self.file.size)
            raise NotCached(self.file, position, size)
        return data

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the log file, checked or not; NotCached if that would wait for the device."""
        return self._read(position, size, False)

    def batches(
        self, position: int = 0, *, limit_offset: int | None = None, blocking: bool = True, skip_damage: bool = False
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Headers and positions of whole batches from `position` to the end, without looking at their records.

        Where a header can't be right: CorruptBatch, or with `skip_damage` the next one that can.
        """
        end, expected_offset = self.file.size, self.base_offset
        limit = self.next_offset if limit_offset is None else limit_offset
        while position < end:
            chunk = self._read(position, SCAN_CHUNK_BYTES, blocking)
            at, problem = 0, f"{end - position} bytes are left" if end - position < RECORDS_AT else None
            while at + RECORDS_AT <= len(chunk) and problem is None:
                header = BatchHeader._make(HEADER.unpack_from(chunk, at))
                problem = damage.header_problem(header, end - position - at, expected_offset, limit)
                if problem is None:
                    yield position + at, header
                    at += header.size_bytes
                    expected_offset = header.last_offset + 1
            position += at
            if problem is not None:
                damaged = self.damage_at(position, problem, limit_offset=limit, blocking=blocking)
                if not skip_damage:
                    raise damaged
                position, expected_offset = damaged.end_position, damaged.end_offset

    def load_end(self) -> None:
        """Find `next_offset` and the greatest timestamp, with the indexes' help. CorruptLog if they can't be right. Blocks."""
        entries, limit_offset = self.offset_index.count, self.offset_limit
        indexed_offset, start = self.offset_index.entry(entries - 1) if entries else (-1, 0)
        self.next_offset = self.base_offset
        self._bytes_since_index = self.file.size - start
        self.indexes_full = self.offset_index.full or self.time_index.full
        _, first = next(self.batches(limit_offset=limit_offset), (0, None))
        self.first_timestamp = -1 if first is None else first.max_timestamp
        tail = list(self.batches(start, limit_offset=limit_offset))
        if entries and (not tail or tail[0][1].last_offset != indexed_offset):
            raise CorruptLog(f"{self.offset_index.path} ends with offset {indexed_offset}, which is not at {start}")
        if tail:
            self.next_offset = tail[-1][1].last_offset + 1
        self.max_timestamp, self.offset_of_max_timestamp = self.time_index.last
        if self.time_index.count:
            found = self.locate(self.offset_of_max_timestamp, blocking=True)
            if found is None or not self._is_indexed(*self.time_index.last, found[0], blocking=True):
                raise CorruptLog(f"{self.time_index.path} ends with {self.time_index.last}, and no batch has that")
        for _, header in tail:
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.offset_of_max_timestamp = header.max_timestamp, header.last_offset

    def check_aborted(self) -> None:
        """CorruptLog if the transaction index speaks of a transaction that does not end here. Blocks.

        Each entry is compared with its marker. Where markers are near each other the next one is looked for from the last one on.
        """
        chunk, chunk_at, position = b"", 0, 0
        for aborted in self.txn_index:
            found = _walk_to(aborted.last_offset, chunk, position - chunk_at) if chunk else None
            if found is None:
                located = self.locate(aborted.last_offset, blocking=True)
                if located is None:
                    raise CorruptLog(f"{self.txn_index.path} has {aborted}, which is not in the log")
                chunk_at, found = located[0], 0
                chunk = self.file.read_blocking(chunk_at, SCAN_CHUNK_BYTES)
            position = chunk_at + found
            header = BatchHeader._make(HEADER.unpack_from(chunk, found))
            if (
                (header.base_offset, header.producer_id) != (aborted.last_offset, aborted.producer_id)
                or not header.is_control
                or not 0 <= aborted.first_offset < aborted.last_offset
            ):
                raise CorruptLog(f"{self.txn_index.path} has {aborted}, which is not in the log")

    # Leaving

    def adopt(self, repaired: Segment) -> list[File | OffsetIndex | TimeIndex]:
        """Let the files of a segment that has the same offsets take the place of ours; what is to be closed then."""
        replaced: list[File | OffsetIndex | TimeIndex] = [self.file, self.offset_index, self.time_index]
        for suffix in (names.INDEX_SUFFIX, names.TIME_INDEX_SUFFIX, names.LOG_SUFFIX):
            self._disk.rename(repaired._path(suffix), self._path(suffix))
        self.file, self.offset_index, self.time_index = repaired.file, repaired.offset_index, repaired.time_index
        self.offset_index.path = self._path(names.INDEX_SUFFIX)
        self.time_index.path = self._path(names.TIME_INDEX_SUFFIX)
        self.first_timestamp = repaired.first_timestamp
        self.max_timestamp, self.offset_of_max_timestamp = repaired.max_timestamp, repaired.offset_of_max_timestamp
        self.checked.forget(self.size)
        return replaced

    def change_suffix(self, suffix: str) -> None:
        """Rename the files, one after the other."""
        before = self.paths
        self._suffix = suffix
        for old, new in zip(before, self.paths, strict=True):
            if self._disk.exists(old):
                self._disk.rename(old, new)
        self.offset_index.path = self._path(names.INDEX_SUFFIX)
        self.time_index.path = self._path(names.TIME_INDEX_SUFFIX)
        self.txn_index.path = self._path(names.TXN_INDEX_SUFFIX)

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


def _walk_to(offset: int, chunk: bytes, at: int) -> int | None:
    """Where in `chunk` the batch is that holds `offset`, at or after `at`; None if it is not in there, or damage may be."""
    while 0 <= at <= len(chunk) - RECORDS_AT:
        base_offset, length, last_offset_delta = _WALK.unpack_from(chunk, at)
        if base_offset + last_offset_delta >= offset:
            return at
        if length + LOG_OVERHEAD < RECORDS_AT:
            return None
        at += length + LOG_OVERHEAD
    return None
