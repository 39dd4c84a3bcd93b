"""From a stream of bytes to frames: four bytes of size, then as many bytes.

Always true: what a server claims costs nothing until its bytes arrive, and a frame larger than the bound, or of a negative
size, ends the connection (the lesson of CVE-2026-10142).
"""

from __future__ import annotations

import struct

from strandline.client.errors import ProtocolViolation

_SIZE = struct.Struct(">i")
CORRELATION_ID_BYTES = 4


class Frames:
    """Bytes that arrived and are not yet a whole frame, kept as they came and joined once."""

    __slots__ = ("_chunks", "_frame_bytes_max", "_held", "_needed")

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._chunks: list[bytes] = []
        self._held = 0
        self._needed = _SIZE.size
        """Bytes to hold before anything new can be known."""

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that these bytes complete, without their sizes."""
        self._chunks.append(data)
        self._held += len(data)
        if self._held < self._needed:
            return []
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        frames, position, end = [], 0, len(data)
        while True:
            self._needed = _SIZE.size
            if end - position < _SIZE.size:
                break
            size: int = _SIZE.unpack_from(data, position)[0]
            if not CORRELATION_ID_BYTES <= size <= self._frame_bytes_max:
                raise ProtocolViolation(
                    f"a reply claims {size} bytes, not {CORRELATION_ID_BYTES}-{self._frame_bytes_max}; is this a Kafka port?"
                )
            self._needed += size
            if end - position < self._needed:
                break
            frames.append(data[position + _SIZE.size : position + self._needed])
            position += self._needed
        rest = data[position:]
        self._chunks = [rest] if rest else []
        self._held = len(rest)
        return frames


def frame(*parts: bytes) -> bytes:
    """One frame of these parts."""
    return b"".join((_SIZE.pack(sum(map(len, parts))), *parts))
