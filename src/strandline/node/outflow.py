"""Replies of one connection on their way to its peer, and how much of them the peer has not read.

Always true: what is ready leaves with one write, in order; unread replies are counted in the node's reply budget after
every so many bytes, when they drain, and when the connection ends (SEC-L3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.node.reply_budget import ReplyBudget
from strandline.node.reply_queue import ReplyQueue
from strandline.node.transfer_progress import BYTES_PER_S_MIN, TransferProgress

WRITE_BUFFER_HIGH_BYTES = 4 * 1024 * 1024
"""With more unread than this, or half of what a connection may hold, no further request is handled."""
JOIN_BYTES_MAX = 16 * 1024
"""Replies up to this size are joined into one write."""
COUNTED_EVERY_BYTES = 64 * 1024
"""Unread replies are counted anew after so many bytes were written."""
FETCH_BYTES_MIN = 64 * 1024
"""What a Fetch may read however much is unread; its first batch may be larger."""
EXHAUSTED_STALL_S = 3.0
"""While the node's reply budget is exhausted, a peer has to read at the least rate over this long. The system takes
replies in large pieces: over a shorter time a peer that reads well would seem to read nothing."""


class Outflow:
    def __init__(self, queue: ReplyQueue, budget: ReplyBudget, bytes_max: int, clock: Callable[[], float]) -> None:
        """`bytes_max`: how much the peer may leave unread."""
        self._queue = queue
        self._budget = budget
        self._bytes_max = bytes_max
        self._high_bytes = min(WRITE_BUFFER_HIGH_BYTES, bytes_max // 2)
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._written_bytes = 0
        self._counted_bytes = self._uncounted_bytes = 0
        """Unread replies as they were last counted, and what came since."""
        self._drain = TransferProgress()
        self._must_drain = False

    def open(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=self._high_bytes)

    def close(self) -> None:
        """The connection is gone, and what it had ready with it."""
        self._transport = None
        self._queue.take()
        self.count()

    def send(self) -> None:
        """Write what is ready."""
        if not self._queue.ready or self._transport is None:
            return
        buffers, size_bytes = self._queue.take()
        if len(buffers) == 1:
            sent_bytes = len(buffers[0])
            self._transport.write(buffers[0])
        elif size_bytes <= JOIN_BYTES_MAX:
            joined = b"".join(buffers)
            sent_bytes = len(joined)
            self._transport.write(joined)
        else:
            sent_bytes = sum(map(len, buffers))
            self._transport.writelines(buffers)
        self._written_bytes += sent_bytes
        self.note(sent_bytes)

    def note(self, size_bytes: int) -> None:
        """So much more may be unread."""
        self._uncounted_bytes += size_bytes
        if self._uncounted_bytes >= COUNTED_EVERY_BYTES:
            self.count()

    def count(self) -> None:
        unread_bytes, self._uncounted_bytes = self.unread_bytes(), 0
        if unread_bytes or self._counted_bytes:
            self._counted_bytes = unread_bytes
            self._budget.count(self, unread_bytes, self._clock())

    def unread_bytes(self) -> int:
        """Replies that are there and that the system has not taken yet."""
        held_bytes = self._queue.held_bytes + self._queue.ready_bytes
        return held_bytes if self._transport is None else held_bytes + self._transport.get_write_buffer_size()

    def fetch_room(self) -> int:
        """What a Fetch may read now: less while the peer has not read what it was sent."""
        if self._budget.is_exhausted:
            return FETCH_BYTES_MIN
        return max(self._bytes_max - self.unread_bytes(), FETCH_BYTES_MIN)

    def throttle(self) -> None:
        """All replies of the node together are too many: have writing paused until all that was written here is
        read."""
        if self._transport is not None and self._transport.get_write_buffer_size():
            self._must_drain = True
            self._transport.set_write_buffer_limits(high=0)  # it pauses us at once

    def resumed(self) -> None:
        """Writing was paused and goes on."""
        if self._must_drain and self._transport is not None:
            self._must_drain = False
            self._transport.set_write_buffer_limits(high=self._high_bytes)
        self.count()

    def is_stalled(self, now: float, timeout_s: float) -> bool:
        """The peer reads nothing of what it was sent, or too little while others need the memory; asked every now and
        then."""
        if self._transport is None:
            return False
        unsent_bytes = self._transport.get_write_buffer_size()
        self.count()
        if not unsent_bytes:
            self._drain.reset()
            return False
        bytes_min = 1.0
        if self._budget.is_exhausted:
            timeout_s = min(timeout_s, EXHAUSTED_STALL_S)
            bytes_min = BYTES_PER_S_MIN * timeout_s
        return self._drain.is_stalled(self._written_bytes - unsent_bytes, bytes_min, now, timeout_s)
