"""The bytes that a connection has read, as frames.

All reads go to a buffer that many connections share, because the event loop reads one of them at a time and most reads
hold whole frames. What is left of a read once its frames were handled moves into a buffer of the connection's own
(`settle`). If that is little, the next read goes to the shared buffer again, behind a copy of it: otherwise every other
read would bring the rest of one frame alone, and one reply.

Always true: a frame is a view into one of these buffers, valid until the next read. A connection that holds no bytes
has no buffer of its own, unless it grew for a frame beyond the shared one and more such frames may follow. A claimed
size alone gets no memory: the buffer grows in steps, when it is full of bytes that have arrived and its owner allows
it. So an idle connection costs next to nothing (SEC-L6).
"""

from __future__ import annotations

import struct

BUFFER_BYTES = 256 * 1024
"""The shared read buffer."""
OWN_BYTES_MIN = 4 * 1024
"""The least that a connection takes for the start of a frame; it does not count as taken."""
OWN_FACTOR = 4
"""The first buffer of a connection's own has this many times the bytes it is made for, if the frame is that large."""
SPARE_BYTES = 1024
"""Room beside requests that have to wait: while there is some, the connection reads on, and notices that the peer is
gone."""
GROW_BYTES = 1024 * 1024
"""A frame that claims to be large gets its room in steps, as its bytes arrive."""
SLACK_BYTES = 64 * 1024
COPIED_BACK_BYTES_MAX = 32 * 1024
"""The start of a frame up to this size is copied before the next read; of more, the rest is read to where it is."""

_SIZE = struct.Struct(">i")


class FrameBuffer:
    __slots__ = ("_awaited_bytes", "_end", "_is_copied_back", "_shared", "_start", "_view")

    def __init__(self, shared_read_buffer: memoryview | None = None) -> None:
        """Without a buffer to share with others, one of its own."""
        self._shared = shared_read_buffer if shared_read_buffer is not None else memoryview(bytearray(BUFFER_BYTES))
        self._view = self._shared
        self._start = self._end = 0
        self._awaited_bytes = 0
        """Of the frame that was asked for and is not all here, with its size."""
        self._is_copied_back = False
        """What is held also lies at the start of the shared buffer, until another connection reads."""

    @property
    def held_bytes(self) -> int:
        return self._end - self._start

    @property
    def taken_bytes(self) -> int:
        """What counts of the connection's own buffer."""
        return 0 if self._view is self._shared else len(self._view) - OWN_BYTES_MIN

    def taken_bytes_after(self, step_bytes: int) -> int:
        """The same once it grew by so much."""
        return len(self._view) + step_bytes - OWN_BYTES_MIN

    @property
    def grown_bytes(self) -> int:
        """What it takes beyond the size of the shared read buffer."""
        return max(0, len(self._view) - len(self._shared))

    @property
    def is_full(self) -> bool:
        """Nothing more can be read before a frame is taken or the buffer grows."""
        return self._end - self._start == len(self._view)

    def room(self) -> memoryview:
        """Where to read to; empty only if the buffer is full. Nothing has changed if nothing is read."""
        self._is_copied_back = False
        if self._start == self._end:
            self._start = self._end = 0
            return self._view
        held = self._end - self._start
        if held <= COPIED_BACK_BYTES_MAX and len(self._view) < len(self._shared):
            self._shared[:held] = self._view[self._start : self._end]
            self._is_copied_back = True
            return self._shared[held:]
        needed = 4 + _SIZE.unpack_from(self._view, self._start)[0] if held >= 4 else 4
        if self._start and (self._end == len(self._view) or self._start + needed > len(self._view)):
            self._view[:held] = self._view[self._start : self._end]
            self._start, self._end = 0, held
        return self._view[self._end :]

    def settle(self) -> bool:
        """The read was handled, and the next one may be another connection's: what is left moves out of the shared
        buffer. Whether there is a buffer of the connection's own, or was."""
        held = self._end - self._start
        if not held:
            self._start = self._end = 0
            if self._view is self._shared:
                return False
            if len(self._view) <= len(self._shared):
                self._view = self._shared
        elif self._view is self._shared:
            self._replace(self._fitting_bytes())
        return True

    def _fitting_bytes(self) -> int:
        """The size of a buffer for what is held: for its end too, as far as that may be expected soon."""
        held = self._end - self._start
        needed = 4 + _SIZE.unpack_from(self._view, self._start)[0] if held >= 4 else 0
        wanted = max(held + SPARE_BYTES, OWN_BYTES_MIN, min(needed, OWN_FACTOR * held))
        return max(held, min(wanted, len(self._shared)))

    def step_bytes(self) -> int:
        """By how much the frame that fills the buffer makes it grow next."""
        needed: int = 4 + _SIZE.unpack_from(self._view, self._start)[0]
        size = len(self._view)
        if size < len(self._shared):
            return min(max(needed, OWN_FACTOR * size // 2), OWN_FACTOR * size, len(self._shared)) - size
        return max(min(needed, max(2 * size, GROW_BYTES)), size) + SLACK_BYTES - size

    def grow(self, by_bytes: int) -> None:
        self._replace(len(self._view) + by_bytes)

    @property
    def has_served(self) -> bool:
        """Whether the buffer has the size of frames that were taken: nothing is held, or not from its start on."""
        return self._start > 0 or not self._end

    def trim(self) -> None:
        """No more room than for what is held: the shared read buffer if that is nothing."""
        held = self._end - self._start
        if not held:
            self._view = self._shared
            self._start = self._end = 0
        elif (size := max(self._fitting_bytes(), held + SPARE_BYTES)) < len(self._view):
            self._replace(size)

    def _replace(self, size: int) -> None:
        held = self._end - self._start
        view = memoryview(bytearray(size))
        view[:held] = self._view[self._start : self._end]
        self._view = view
        self._start, self._end = 0, held

    def filled(self, count: int) -> None:
        """So many bytes were read into the room."""
        if self._is_copied_back:
            self._is_copied_back = False
            self._end -= self._start
            self._start = 0
            self._view = self._shared
        self._end += count

    def frame_size(self) -> int | None:
        """The size that the next frame claims, which may be nonsense; None while it is not known."""
        return _SIZE.unpack_from(self._view, self._start)[0] if self._end - self._start >= 4 else None

    def take(self, size: int) -> memoryview | None:
        """The next frame, if all of it is here."""
        at = self._start + 4
        if self._end - at < size:
            self._awaited_bytes = 4 + size
            return None
        self._awaited_bytes = 0
        self._start = at + size
        return self._view[at : self._start]

    @property
    def only_grows(self) -> bool:
        """Whether the last read brought more of the frame that was asked for, not its end, and there is room for more:
        then there is nothing to handle or to settle."""
        return (
            self._end - self._start < self._awaited_bytes
            and self._end < len(self._view)
            and self._view is not self._shared
        )

    def clear(self) -> None:
        self._start = self._end = self._awaited_bytes = 0
