"""Whether the bytes that one connection receives, or sends, go on moving: a request that holds room, replies that are
not read.

Always true: it is asked every now and then, with all bytes that ever moved. A transfer that moves the required minimum
within each timeout is never stalled, and one that does not is, at the first question after it (SEC-L3, SEC-L4).
"""

from __future__ import annotations

BYTES_PER_S_MIN = 64 * 1024
"""What holds memory that others wait for has to move at least as fast as this."""


class TransferProgress:
    __slots__ = ("_since", "_since_bytes")

    def __init__(self) -> None:
        self._since: float | None = None
        self._since_bytes = 0

    def is_stalled(self, moved_bytes: int, bytes_min: float, now: float, timeout_s: float) -> bool:
        """Less than `bytes_min` moved within the timeout."""
        if self._since is None or moved_bytes - self._since_bytes >= bytes_min:
            self._since, self._since_bytes = now, moved_bytes
            return False
        return now - self._since >= timeout_s

    def reset(self) -> None:
        """Nothing is there to be moved, or it is not the peer that keeps us waiting."""
        self._since = None
