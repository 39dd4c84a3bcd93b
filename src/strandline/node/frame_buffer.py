"""The bytes that a connection has read, as frames.

Always true: a frame is a view into this buffer, valid until the next read. A claimed size alone gets nobody memory: the buffer
grows in steps, when it is full of bytes that have arrived and its owner allows it.
"""

from __future__ import annotations

import struct

BUFFER_BYTES = 256 * 1024
GROW_BYTES = 1024 * 1024
"""A frame that claims to be large gets its room in steps, as its bytes arrive."""
SLACK_BYTES = 64 * 1024

_SIZE = struct.Struct(">i")


class FrameBuffer:
    __slots__ = ("_buffer", "_end", "_start", "_view")

    def __init__(self) -> None:
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0

    @property
    def held_bytes(self) -> int:
        return self._end - self._start

    @property
    def grown_bytes(self) -> int:
        """What it takes beyond the buffer that every connection has."""
        return len(self._buffer) - BUFFER_BYTES

    @property
    def is_full(self) -> bool:
        """Nothing more can be read before a frame is taken or the buffer grows."""
        return self._end - self._start == len(self._buffer)

    def room(self) -> memoryview:
        """Where to read to; empty only if the buffer is full."""
        if self._start == self._end:
            self._start = self._end = 0
        held = self._end - self._start
        needed = 4 + _SIZE.unpack_from(self._buffer, self._start)[0] if held >= 4 else 4
        if self._start and (self._end == len(self._buffer) or self._start + needed > len(self._buffer)):
            self._view[:held] = self._view[self._start : self._end]
            self._start, self._end = 0, held
        return self._view[self._end :]

    def step_bytes(self) -> int:
        """By how much the frame that fills the buffer makes it grow next."""
        needed: int = 4 + _SIZE.unpack_from(self._buffer, self._start)[0]
        size = len(self._buffer)
        return max(min(needed, max(2 * size, GROW_BYTES)), size) + SLACK_BYTES - size

    def grow(self, by_bytes: int) -> None:
        self._replace(len(self._buffer) + by_bytes)

    def shrink(self) -> None:
        """Back to what every connection has; only while nothing is held."""
        assert self._start == self._end, "a frame is in the buffer"
        self._replace(BUFFER_BYTES)

    def _replace(self, size: int) -> None:
        held = self._end - self._start
        buffer = bytearray(size)
        view = memoryview(buffer)
        view[:held] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, view
        self._start, self._end = 0, held

    def filled(self, count: int) -> None:
        """So many bytes were read into the room."""
        self._end += count

    def frame_size(self) -> int | None:
        """The size that the next frame claims, which may be nonsense; None while it is not known."""
        return _SIZE.unpack_from(self._buffer, self._start)[0] if self._end - self._start >= 4 else None

    def take(self, size: int) -> memoryview | None:
        """The next frame, if all of it is here."""
        at = self._start + 4
        if self._end - at < size:
            return None
        self._start = at + size
        return self._view[at : self._start]

    def clear(self) -> None:
        self._start = self._end = 0
