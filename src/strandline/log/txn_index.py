"""The aborted transactions of a segment, for readers of committed records.

Always true: entries are in the order in which the transactions were aborted, in the segment of the marker (TXN-P11), and none is
lost while the process has no descriptor left to write it with: it waits in memory, and is written before the next one and before
the index is synced. The file exists only once a transaction was aborted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from strandline.log import names
from strandline.log.errors import CorruptLog, NotCached
from strandline.ports import Disk, File, is_out_of_handles

ENTRY = struct.Struct(">hqqqq")
VERSION = 0
_PIECE_BYTES = 120 * ENTRY.size
"""Read at once: most searches end soon after they began."""
_WARMED_BYTES = 1024 * 1024
"""Brought into memory at once, around what was not there."""


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._file: File | None = disk.open(path) if disk.exists(path) else None
        self._unwritten: list[AbortedTxn] = []
        """No descriptor was left for them. There are no more than the segment has markers: a new one takes a descriptor too."""

    def add(self, aborted: AbortedTxn) -> None:
        """The marker is in the log already, and will not come again: without a descriptor the entry waits."""
        self._unwritten.append(aborted)
        try:
            self._write()
        except OSError as error:
            if not is_out_of_handles(error):
                raise

    def _write(self) -> None:
        """Write what waits; OSError if that is not possible."""
        if self._unwritten:
            if self._file is None:
                self._file = self._disk.open(self.path, create=True)
            self._file.append(b"".join(ENTRY.pack(VERSION, *aborted) for aborted in self._unwritten))
            self._unwritten = []

    def since(self, offset: int, *, blocking: bool = True) -> Iterator[AbortedTxn]:
        """The transactions that were aborted at or after `offset`: of a million before it some twenty are looked at.

        Unless it may block, NotCached if that would wait for the device.
        """
        file = self._file
        if file is not None and file.size:
            first, end = 0, self._count(file)
            while first < end:
                middle = (first + end) // 2
                if self._last_offset(file, middle, blocking) < offset:
                    first = middle + 1
                else:
                    end = middle
            yield from self._entries(file, first * ENTRY.size, blocking)
        for aborted in self._unwritten:
            if aborted.last_offset >= offset:
                yield aborted

    def ends_after(self, offset: int, *, blocking: bool = True) -> bool:
        """Some transaction was aborted at or after `offset`."""
        if self._unwritten:
            return self._unwritten[-1].last_offset >= offset
        file = self._file
        if file is None or file.size < ENTRY.size:
            return False
        return self._last_offset(file, file.size // ENTRY.size - 1, blocking) >= offset

    def _count(self, file: File) -> int:
        if file.size % ENTRY.size:
            raise CorruptLog(f"{self.path} has {file.size} bytes, which is not a multiple of {ENTRY.size}")
        return file.size // ENTRY.size

    def _last_offset(self, file: File, place: int, blocking: bool) -> int:
        return int(ENTRY.unpack(self._read(file, place * ENTRY.size, ENTRY.size, blocking))[3])

    def __iter__(self) -> Iterator[AbortedTxn]:
        return self.since(-1)

    def _entries(self, file: File, position: int, blocking: bool) -> Iterator[AbortedTxn]:
        end = self._count(file) * ENTRY.size
        while position < end:
            data = self._read(file, position, min(_PIECE_BYTES, end - position), blocking)
            for version, *fields in ENTRY.iter_unpack(data):
                if version != VERSION:
                    raise CorruptLog(f"{self.path} has an entry of version {version}, we read version {VERSION}")
                yield AbortedTxn(*fields)
            position += len(data)

    def _read(self, file: File, position: int, size: int, blocking: bool) -> bytes:
        data = file.read_blocking(position, size) if blocking else file.read(position, size)
        if data is None:
            # The next steps of a search are near, or in the file's other half.
            start = max(position + size - _WARMED_BYTES // 2, 0)
            raise NotCached(file, start, _WARMED_BYTES)
        return data

    def written_beside(self, entries: Sequence[AbortedTxn]) -> TxnIndex:
        """An index with these entries, on the device under a name of its own: to take this one's place. Blocks."""
        beside = TxnIndex(self._disk, self.path + names.REPAIR_SUFFIX)
        beside.begin()  # an earlier attempt may have failed
        file = beside._file = beside._file or self._disk.open(beside.path, create=True)
        file.append(b"".join(ENTRY.pack(VERSION, *aborted) for aborted in entries))
        file.sync_blocking()
        return beside

    def adopt(self, beside: TxnIndex) -> list[File]:
        """Let the file of another one take the place of ours; what is to be closed then."""
        replaced = [] if self._file is None else [self._file]
        self._disk.rename(beside.path, self.path)
        self._file, self._unwritten = beside._file, beside._unwritten
        return replaced

    def remove(self) -> None:
        self.close()
        self._disk.remove(self.path)

    def truncate_to(self, offset: int) -> None:
        """Forget what was aborted at or after `offset`."""
        if self._file is not None:
            kept = sum(1 for aborted in self._entries(self._file, 0, True) if aborted.last_offset < offset)
            self._file.truncate(kept * ENTRY.size)
        self._unwritten = [aborted for aborted in self._unwritten if aborted.last_offset < offset]

    def begin(self) -> None:
        if self._file is not None:
            self._file.truncate(0)
        self._unwritten = []

    def sync_blocking(self) -> None:
        self._write()
        if self._file is not None:
            self._file.sync_blocking()

    def has_file(self, file: File) -> bool:
        return self._file is file

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
