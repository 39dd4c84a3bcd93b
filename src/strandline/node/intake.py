"""What one connection reads: its frames, the room that they take of the node's read budget, and whether they go on
arriving.

Always true: what is counted as taken is what the connection's own buffer has; all of it is given back when the
connection ends.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.node.frame_buffer import GROW_BYTES, FrameBuffer
from strandline.node.read_budget import ReadBudget
from strandline.node.transfer_progress import BYTES_PER_S_MIN, TransferProgress

GROWN_BYTES_KEPT_MAX = 4 * 1024 * 1024
"""A buffer that grew beyond this for one frame is given back right after it."""
READ_BYTES_EXHAUSTED = 4 * 1024
"""What one read takes while the node's read budget is exhausted: it has to be kept if it is no whole request."""


class Intake:
    def __init__(self, shared_read_buffer: memoryview, budget: ReadBudget) -> None:
        self.frames = FrameBuffer(shared_read_buffer)
        self.waits_for_room = False
        self._budget = budget
        self._room_bytes = 0
        """Taken from the read budget."""
        self._received_bytes = 0
        self._arrival = TransferProgress()

    def buffer(self) -> memoryview:
        """Where to read to."""
        room = self.frames.room()
        return room[:READ_BYTES_EXHAUSTED] if self._budget.is_exhausted and not self.frames.held_bytes else room

    def filled(self, count: int) -> None:
        self._received_bytes += count
        self.frames.filled(count)

    def settle(self) -> None:
        """The shared read buffer is the next connection's: keep what is left, and count it."""
        frames = self.frames
        if not frames.settle() and not self._room_bytes:
            return
        if frames.grown_bytes and frames.has_served:
            too_large = not frames.held_bytes and frames.grown_bytes > GROWN_BYTES_KEPT_MAX
            if too_large or self._budget.is_wanted_back(self):
                frames.trim()
        self._count()

    def _count(self) -> None:
        more_bytes = self.frames.taken_bytes - self._room_bytes
        if more_bytes:
            self._room_bytes += more_bytes
            if more_bytes > 0:
                self._budget.take(more_bytes)
            else:
                self._budget.give_back(self, -more_bytes)

    def grow(self, ask_again: Callable[[], None]) -> bool:
        """Make room for a frame that is larger than the buffer. If there is none, `ask_again` is called once there may
        be."""
        frames = self.frames
        step_bytes = frames.step_bytes()
        more_bytes = frames.taken_bytes_after(step_bytes) - self._room_bytes
        if self._budget.try_take(self, more_bytes):
            self._room_bytes += more_bytes
            frames.grow(step_bytes)
            return True
        self.waits_for_room = True
        self._budget.when_freed(self, ask_again)
        return False

    def trim(self, *, is_idle: bool) -> None:
        """Give back what earlier requests took, if nothing happened for a while or others need it; asked every now and
        then."""
        frames = self.frames
        if frames.grown_bytes and frames.has_served and (is_idle or self._budget.is_wanted_back(self)):
            frames.trim()
            self._count()

    def close(self) -> None:
        """The connection is gone."""
        self.frames.clear()
        self.frames.trim()
        self._budget.give_back(self, self._room_bytes)
        self._room_bytes = 0

    def is_stalled(self, now: float, timeout_s: float, *, is_reading: bool) -> bool:
        """Room is held for a request that does not go on arriving (SEC-L4); asked every now and then. `is_reading`: we
        read on, unless it waits for room."""
        is_arriving = self._room_bytes > 0 and self.frames.held_bytes > 0
        # A connection that does not read, by our choice or because it waits for room, holds others up with what it has.
        # If that is little, or no other waits, it is not at fault.
        is_held_up = not is_reading or self.waits_for_room
        if not is_arriving or (is_held_up and (self._room_bytes < GROW_BYTES or not self._budget.waiting)):
            self._arrival.reset()
            return False
        return self._arrival.is_stalled(self._received_bytes, BYTES_PER_S_MIN * timeout_s, now, timeout_s)
