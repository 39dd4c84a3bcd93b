"""The aborted transactions whose markers are in a segment, for readers of committed records (TXN-P11).

Always true: entries are in the order in which the transactions were aborted. The file exists only once one was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from strandline.log.errors import CorruptLog
from strandline.ports import Disk, File

ENTRY = struct.Struct(">hqqqq")
VERSION = 0


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

    def add(self, aborted: AbortedTxn) -> None:
        if self._file is None:
            self._file = self._disk.open(self.path, create=True)
        self._file.append(ENTRY.pack(VERSION, *aborted))

    def since(self, offset: int) -> Iterator[AbortedTxn]:
        """The transactions that were aborted at or after `offset`: of a million before it some twenty are looked at."""
        file = self._file
        if file is None or not file.size:
            return iter(())
        if file.size % ENTRY.size:
            return iter(self)
        first, end = 0, file.size // ENTRY.size
        while first < end:
            middle = (first + end) // 2
            if self._last_offset(file, middle) < offset:
                first = middle + 1
            else:
                end = middle
        return self._entries(file, first * ENTRY.size)

    def ends_after(self, offset: int) -> bool:
        """Some transaction was aborted at or after `offset`."""
        file = self._file
        if file is None or file.size < ENTRY.size:
            return False
        return self._last_offset(file, file.size // ENTRY.size - 1) >= offset

    def _last_offset(self, file: File, place: int) -> int:
        entry = file.read_blocking(place * ENTRY.size, ENTRY.size)
        return int(ENTRY.unpack(entry)[3])

    def __iter__(self) -> Iterator[AbortedTxn]:
        if self._file is not None and self._file.size:
            yield from self._entries(self._file, 0)

    def _entries(self, file: File, start: int) -> Iterator[AbortedTxn]:
        data = file.read_blocking(start, file.size - start)
        if len(data) % ENTRY.size:
            raise CorruptLog(f"{self.path} has {len(data)} bytes, which is not a multiple of {ENTRY.size}")
        for version, *fields in ENTRY.iter_unpack(data):
            if version != VERSION:
                raise CorruptLog(f"{self.path} has an entry of version {version}, we read version {VERSION}")
            yield AbortedTxn(*fields)

    def truncate_to(self, offset: int) -> None:
        """Forget what was aborted at or after `offset`."""
        if self._file is not None:
            kept = sum(1 for aborted in self if aborted.last_offset < offset)
            self._file.truncate(kept * ENTRY.size)

    def begin(self) -> None:
        if self._file is not None:
            self._file.truncate(0)

    def sync_blocking(self) -> None:
        if self._file is not None:
            self._file.sync_blocking()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
