"""The aborted transactions of a segment, for readers of committed records.

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

    def __iter__(self) -> Iterator[AbortedTxn]:
        if self._file is None or not self._file.size:
            return
        data = self._file.read_blocking(0, self._file.size)
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
