"""The history of a run as one hash: what happened, when, and to whom.

Always true: two runs with the same hash delivered the same bytes, fired the same timers, did the same to their disks and
clocks, and ran as many callbacks, all at the same virtual times; `watch` sees the entries themselves, to find where two
runs part.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

_ENTRY = struct.Struct("<4sdqI")
_FLUSH_PARTS = 1024


class Trace:
    __slots__ = ("_digest", "_parts", "watch")

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self._parts: list[bytes] = []
        self.watch: Callable[[bytes, float, int, bytes], None] | None = None

    def record(self, kind: bytes, now: float, who: int, data: bytes = b"") -> None:
        """`kind` is four letters at most, `who` a process, pipe or disk number."""
        parts = self._parts
        parts.append(_ENTRY.pack(kind, now, who, len(data)))
        if data:
            parts.append(data)
        if len(parts) >= _FLUSH_PARTS:
            self._flush()
        if self.watch is not None:
            self.watch(kind, now, who, data)

    def hexdigest(self) -> str:
        self._flush()
        return self._digest.hexdigest()

    def _flush(self) -> None:
        self._digest.update(b"".join(self._parts))
        self._parts.clear()
