"""The newest reads of followers, kept for the next one: the followers of a partition all read the same bytes, one after the other.

Always true: what is kept is at most SHARED_BYTES_MAX; a read is given only for the log, the stretch and the end that it was made
for, and not after the log was cut: an offset then means another record.
"""

from __future__ import annotations

from collections import OrderedDict

from strandline.log.log import Log
from strandline.ports import Buffer

SHARED_BYTES_MAX = 4 * 1024 * 1024
"""As many as a few partitions have in flight. A larger single read is not kept."""

_Key = tuple[Log, int, int, int, int, bool]


class SharedReads:
    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, Buffer] = OrderedDict()
        self._bytes = 0

    def read(self, log: Log, offset: int, max_bytes: int, *, min_one: bool) -> Buffer:
        """As `log.read` up to the log end."""
        end = log.log_end_offset
        key = (log, offset, max_bytes, end, log.truncations, min_one)
        kept = self._kept.get(key)
        if kept is not None:
            return kept
        data = log.read(offset, max_bytes, end, min_one=min_one)
        if data and _held_bytes(data) <= SHARED_BYTES_MAX:
            self._keep(key, data)
        return data

    def _keep(self, key: _Key, data: Buffer) -> None:
        self._kept[key] = data
        self._bytes += _held_bytes(data)
        while self._bytes > SHARED_BYTES_MAX:
            self._bytes -= _held_bytes(self._kept.popitem(last=False)[1])


def _held_bytes(data: Buffer) -> int:
    """A view keeps all of the read in memory of which it is a part."""
    return len(data.obj) if isinstance(data, memoryview) else len(data)  # type: ignore[arg-type]
