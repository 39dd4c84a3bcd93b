"""The sparse indexes of a segment: offset to position, and timestamp to offset.

Always true: entries only grow; an offset entry names the *last* offset of a batch and the position where that batch starts;
a time entry (t, o) means that no batch up to o has a timestamp above t. Entries of the active segment live in memory and
are written out when it is closed: a segment that was not closed cleanly gets them rebuilt from its log.
"""

from __future__ import annotations

import struct

from strandline.log.errors import CorruptLog
from strandline.ports import Disk, File

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")


class _Entries:
    """Fixed-size entries of one index file: in memory while the segment is active, read from the file once it is closed."""

    def __init__(self, disk: Disk, path: str, entry: struct.Struct, bytes_max: int) -> None:
        self.path = path
        self._disk = disk
        self._entry = entry
        self._file: File | None = None
        self._recent: bytearray | None = None
        self._written = 0
        self.count_max = bytes_max // entry.size
        self.count = 0

    def begin(self) -> None:
        """Start empty, whatever the file held."""
        self._open(create=True).truncate(0)
        self._recent, self._written, self.count = bytearray(), 0, 0

    def load(self) -> None:
        """Trust the file as it is, up to its last whole entry."""
        size = self._open(create=False).size
        if size % self._entry.size:
            raise CorruptLog(f"{self.path} has {size} bytes, which is not a multiple of {self._entry.size}")
        self.count = size // self._entry.size
        self._recent = None
        self._written = size

    def reopen(self) -> None:
        """Make a loaded index writable again."""
        if self._recent is None:
            self._recent = bytearray(self._open(create=True).read_blocking(0, self._written))

    def _open(self, *, create: bool) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path, create=create)
        return self._file

    def get(self, i: int) -> tuple[int, int]:
        size = self._entry.size
        if self._recent is not None:
            return self._entry.unpack_from(self._recent, i * size)
        return self._entry.unpack(self._open(create=False).read_blocking(i * size, size))

    def append(self, first: int, second: int) -> None:
        assert self._recent is not None, f"{self.path} is closed"
        self._recent += self._entry.pack(first, second)
        self.count += 1

    def cut(self, count: int) -> None:
        self.reopen()
        assert self._recent is not None
        size = count * self._entry.size
        if size < self._written:
            self._open(create=True).truncate(size)
            self._written = size
        del self._recent[size:]
        self.count = count

    def floor(self, target: int) -> int:
        """Index of the last entry whose first field is at most `target`, or -1."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.get(middle)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1

    @property
    def full(self) -> bool:
        return self.count >= self.count_max

    def seal(self) -> None:
        """Write everything and stop holding it in memory."""
        if self._recent is not None and len(self._recent) > self._written:
            with memoryview(self._recent) as view:
                self._open(create=True).append(view[self._written :])
            self._written = len(self._recent)
        self._recent = None

    def sync_blocking(self) -> None:
        self._open(create=True).sync_blocking()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class OffsetIndex(_Entries):
    """Where in the log file to start looking for an offset."""

    def __init__(self, disk: Disk, path: str, base_offset: int, bytes_max: int) -> None:
        super().__init__(disk, path, OFFSET_ENTRY, bytes_max)
        self.base_offset = base_offset

    def add(self, last_offset: int, position: int) -> None:
        self.append(last_offset - self.base_offset, position)

    def entry(self, i: int) -> tuple[int, int]:
        """The last offset of a batch, and where it starts."""
        relative, position = self.get(i)
        return self.base_offset + relative, position

    def before(self, position: int) -> int:
        """Index of the last entry that stands before `position`, or -1."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.get(middle)[1] < position:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        self.cut(self.floor(offset - 1 - self.base_offset) + 1)

    def check(self, log_size: int) -> None:
        if self.count:
            relative, position = self.get(self.count - 1)
            if relative < 0 or not 0 <= position < max(log_size, 1):
                raise CorruptLog(
                    f"{self.path} ends with offset {relative}, position {position}, but the log has {log_size} bytes"
                )
            if self.count > 1 and self.get(self.count // 2)[0] > relative:
                raise CorruptLog(f"{self.path} is not in order")


class TimeIndex(_Entries):
    """From which offset on to look for a timestamp."""

    def __init__(self, disk: Disk, path: str, base_offset: int, bytes_max: int) -> None:
        super().__init__(disk, path, TIME_ENTRY, bytes_max)
        self.count_max -= 1  # one place is kept for the entry that closes the segment
        self.base_offset = base_offset
        self.last_timestamp = -1

    def begin(self) -> None:
        super().begin()
        self.last_timestamp = -1

    def load(self) -> None:
        super().load()
        self.last_timestamp = self.last[0]

    @property
    def last(self) -> tuple[int, int]:
        """The greatest timestamp indexed and its offset; (-1, base offset) when there is none."""
        if not self.count:
            return -1, self.base_offset
        return self.entry(self.count - 1)

    def add_if_later(self, timestamp: int, offset: int) -> None:
        if timestamp > self.last_timestamp:
            self.append(timestamp, offset - self.base_offset)
            self.last_timestamp = timestamp

    def entry(self, i: int) -> tuple[int, int]:
        """A timestamp, and the offset up to which no batch has a greater one."""
        timestamp, relative = self.get(i)
        return timestamp, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.get(middle)[1] < offset - self.base_offset:
                low = middle + 1
            else:
                high = middle
        self.cut(low)
        self.last_timestamp = self.last[0]

    def check(self) -> None:
        if self.count:
            timestamp, relative = self.get(self.count - 1)
            if relative < 0 or timestamp < self.get(0)[0]:
                raise CorruptLog(f"{self.path} ends with timestamp {timestamp}, offset {relative}")
