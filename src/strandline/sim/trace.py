"""The history of a run as one hash: what happened, when, and to whom.

Always true: two runs with the same hash delivered the same bytes, fired the same timers and wrote the same bytes to disk
at the same virtual times; `watch` sees the entries themselves, to find where two runs part.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable

_ENTRY = struct.Struct("<4sdqI")
_FLUSH_BYTES = 1 << 16


class Trace:
    __slots__ = ("_digest", "_pending", "entries", "watch")

    def __init__(self) -> None:
        self._digest = hashlib.blake2b(digest_size=16)
        self._pending = bytearray()
        self.entries = 0
        self.watch: Callable[[bytes, float, int, bytes], None] | None = None

    def record(self, kind: bytes, now: float, who: int, data: bytes = b"") -> None:
        """`kind` is four letters, `who` a process, connection or disk number."""
        pending = self._pending
        pending += _ENTRY.pack(kind, now, who, len(data))
        pending += data
        self.entries += 1
        if len(pending) >= _FLUSH_BYTES:
            self._digest.update(pending)
            pending.clear()
        if self.watch is not None:
            self.watch(kind, now, who, data)

    def hexdigest(self) -> str:
        self._digest.update(self._pending)
        self._pending.clear()
        return self._digest.hexdigest()
