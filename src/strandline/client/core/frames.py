"""From a stream of bytes to frames: four bytes of size, then as many bytes.

A small frame is `bytes`, joined once from what came. A large one gets a place in memory, and a shell that can receives
the rest of it right there (`space`, `filled`): its bytes are then copied by the system alone, and the frame is a view
of its place. A place is used again once no view of it is left, so bytes are kept by keeping the view.

Always true: what a server claims costs nothing until its bytes arrive, and a frame larger than the bound, or of a
negative size, ends the connection (the lesson of CVE-2026-10142).
"""

from __future__ import annotations

import struct
import sys

from strandline.client.errors import ProtocolViolation
from strandline.ports import Buffer

_SIZE = struct.Struct(">i")
CORRELATION_ID_BYTES = 4
LARGE_BYTES = 1 << 16
"""Frames from here on get a place."""
PLACES_MAX = 2
"""Kept to be used again: one is looked at while the next frame arrives in the other."""
PLACE_BYTES_MAX = 1 << 24
"""A larger place is not kept: who asks for so much does not do it all the time."""


class Frames:
    """Bytes that arrived and are not yet a whole frame."""

    __slots__ = ("_chunks", "_filled", "_frame_bytes_max", "_held", "_needed", "_place", "_places", "_size")

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._chunks: list[bytes] = []
        self._held = 0
        self._needed = _SIZE.size
        """Bytes to hold before anything new can be known."""
        self._place: bytearray | None = None
        """Where a large frame is arriving; then there are no chunks."""
        self._filled = 0
        self._size = 0
        """Of the large frame: so many bytes of it are in its place, of so many in all."""
        self._places: list[bytearray] = []

    def feed(self, data: bytes) -> list[Buffer]:
        """The frames that these bytes complete, without their sizes."""
        frames: list[Buffer] = []
        if self._place is not None:
            taken = data[: self._size - self._filled]
            self._put(taken)
            if self._filled < self._size:
                return frames
            frames.append(self._finish())
            data = data[len(taken) :]
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return frames
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        position, end, size = 0, len(data), 0
        while True:
            self._needed = _SIZE.size
            if end - position < _SIZE.size:
                break
            size = self._size_at(data, position)
            self._needed += size
            if end - position < self._needed:
                break
            frames.append(data[position + _SIZE.size : position + self._needed])
            position += self._needed
        rest = data[position:]
        self._chunks = [rest] if rest else []
        self._held = len(rest)
        if self._needed >= LARGE_BYTES:
            self._begin(size, rest)
        return frames

    def _size_at(self, data: bytes, position: int) -> int:
        size: int = _SIZE.unpack_from(data, position)[0]
        if not CORRELATION_ID_BYTES <= size <= self._frame_bytes_max:
            raise ProtocolViolation(
                f"a reply claims {size} bytes, not {CORRELATION_ID_BYTES}-{self._frame_bytes_max}; is this a Kafka port?"
            )
        return size

    # A large frame in its place

    def space(self) -> memoryview | None:
        """Where the next bytes of a large frame belong; None if none is on its way. To be let go of before `filled`."""
        if self._place is None:
            return None
        if self._filled == len(self._place):
            self._grow(1)
        return memoryview(self._place)[self._filled : self._size]

    def filled(self, count: int) -> list[Buffer]:
        """So many bytes were written into the space: the frame, if it is whole now."""
        self._filled += count
        return [self._finish()] if self._filled == self._size else []

    def _begin(self, size: int, rest: bytes) -> None:
        self._place = self._free_place()
        self._size, self._filled = size, 0
        self._put(rest[_SIZE.size :])
        self._chunks, self._held, self._needed = [], 0, _SIZE.size

    def _put(self, data: bytes) -> None:
        assert self._place is not None
        self._grow(len(data))
        self._place[self._filled : self._filled + len(data)] = data
        self._filled += len(data)

    def _grow(self, count: int) -> None:
        """Room for so many more bytes at least: as much again as has arrived, but not more than the frame needs."""
        assert self._place is not None
        room = len(self._place) - self._filled
        if room < count:
            more = min(max(count, self._filled, LARGE_BYTES), self._size - self._filled) - room
            self._place += bytes(more)

    def _finish(self) -> memoryview:
        place, self._place = self._place, None
        assert place is not None
        if len(place) <= PLACE_BYTES_MAX:
            self._places = [*(kept for kept in self._places if kept is not place), place][-PLACES_MAX:]
        return memoryview(place)[: self._size].toreadonly()

    def _free_place(self) -> bytearray:
        for index in range(len(self._places)):
            if _holders(self._places, index) == _NOBODY_ELSE:
                return self._places[index]
        return bytearray()


def _holders(places: list[bytearray], index: int) -> int:
    """Every view of a place, and every slice of a view, holds on to it."""
    return sys.getrefcount(places[index])


_NOBODY_ELSE = _holders([bytearray()], 0)


def size_of(*parts: Buffer) -> bytes:
    """What stands before these parts in the stream to make them one frame."""
    return _SIZE.pack(sum(map(len, parts)))
