"""What one connection reads: its frames, the room that they take of the node's read budget, and whether they go on arriving.

Always true: what is counted as taken is what the connection's own buffer has; all of it is given back when the connection ends.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.node.frame_buffer import GROW_BYTES, FrameBuffer
from strandline.node.read_budget import ArrivalProgress, ReadBudget

GROWN_BYTES_KEPT_MAX = 4 * 1024 * 1024
"""A buffer that grew beyond this for one frame is given back right after it."""
READ_BYTES_PRESSED = 4 * 1024
"""What one read takes while the node's read budget is exhausted: it has to be kept if it is no whole request."""


class Intake:
    def __init__(self, landing: memoryview, budget: ReadBudget) -> None:
        self.frames = FrameBuffer(landing)
        self.waits_for_room = False
        self._budget = budget
        self._room_bytes = 0
        """Taken from the read budget."""
        self._received_bytes = 0
        self._arrival = ArrivalProgress()

    def buffer(self) -> memoryview:
        """Where to read to."""
        room = self.frames.room()
        return room[:READ_BYTES_PRESSED] if self._budget.is_exhausted and not self.frames.held_bytes else room

    def filled(self, count: int) -> None:
        self._received_bytes += count
        self.frames.filled(count)

    def settle(self) -> None:
        """The buffer in which reads land is the next connection's: keep what is left, and count it."""
        frames = self.frames
        if not frames.settle() and not self._room_bytes:
            return
        if not frames.held_bytes and frames.grown_bytes > GROWN_BYTES_KEPT_MAX:
            frames.shrink()
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
        """Make room for a frame that is larger than the buffer. If there is none, `ask_again` is called once there may be."""
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

    def rest(self) -> None:
        """Nothing happened for a while: give back what a large request took."""
        if self.frames.grown_bytes and not self.frames.held_bytes:
            self.frames.shrink()
            self._count()

    def clear(self) -> None:
        """Nothing that was read is wanted any more."""
        self.frames.clear()

    def close(self) -> None:
        """The connection is gone."""
        self.frames.clear()
        self.frames.shrink()
        self._budget.give_back(self, self._room_bytes)
        self._room_bytes = 0

    def is_stalled(self, now: float, timeout_s: float, *, is_reading: bool) -> bool:
        """Room is held for a request that does not go on arriving (SEC-L4); asked every now and then. `is_reading`: it is not we
        who do not read on."""
        # Whoever waits for room holds others up with what it has; if that is little, it is the others who hold it up.
        waits_with_little = self.waits_for_room and self._room_bytes < GROW_BYTES
        if not self._room_bytes or waits_with_little or not is_reading:
            self._arrival.reset()
            return False
        return self._arrival.is_stalled(self._received_bytes, now, timeout_s)
