"""Ways to break a request: in its bits, its sizes and counts, its length, its version, or by mixing it with another.

Always true: the same seed breaks the same requests in the same way.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
HEADER_BYTES = 10
ODD_INT32 = (-1, -2, 0, 1, 127, 128, 1 << 16, 1 << 24, (1 << 31) - 1, -(1 << 31))
ODD_VARINTS = (
    b"\0",
    b"\x01",
    b"\x7f",
    b"\xff\x01",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\xff" * 6,
    b"\x80" * 5,
)


def flip_bits(payload: bytearray, other: bytes, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 2, 8))):
        payload[chance.randrange(len(payload))] ^= 1 << chance.randrange(8)


def set_bytes(payload: bytearray, other: bytes, chance: random.Random) -> None:
    payload[chance.randrange(len(payload))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))


def cut(payload: bytearray, other: bytes, chance: random.Random) -> None:
    del payload[chance.randrange(len(payload)) :]


def set_count(payload: bytearray, other: bytes, chance: random.Random) -> None:
    """What is a size or a count in versions that are not flexible."""
    if len(payload) > HEADER_BYTES + 4:
        _INT32.pack_into(payload, chance.randrange(HEADER_BYTES, len(payload) - 3), chance.choice(ODD_INT32))


def set_varint(payload: bytearray, other: bytes, chance: random.Random) -> None:
    """The same in flexible versions."""
    if len(payload) > HEADER_BYTES:
        at = chance.randrange(HEADER_BYTES, len(payload))
        payload[at : at + chance.choice((0, 1, 1))] = chance.choice(ODD_VARINTS)


def splice(payload: bytearray, other: bytes, chance: random.Random) -> None:
    at = chance.randrange(len(payload))
    payload[at:] = other[chance.randrange(len(other)) :]


def repeat(payload: bytearray, other: bytes, chance: random.Random) -> None:
    at = chance.randrange(len(payload))
    end = min(len(payload), at + chance.choice((1, 4, 16, 64)))
    payload[at:at] = payload[at:end] * chance.choice((1, 2, 50))


def append_tail(payload: bytearray, other: bytes, chance: random.Random) -> None:
    payload += chance.randbytes(chance.choice((1, 3, 100)))


def flood_tags(payload: bytearray, other: bytes, chance: random.Random) -> None:
    """Many tagged fields where the last section of them is expected, or anywhere else."""
    count = chance.choice((3, 200, 5000))
    tags = b"".join(bytes((0x80 | tag & 0x7F, tag >> 7, 0)) for tag in range(1, count + 1))
    at = len(payload) - 1 if chance.random() < 0.5 else chance.randrange(len(payload))
    payload[at : at + 1] = bytes((0x80 | count & 0x7F, count >> 7)) + tags


def swap_version(payload: bytearray, other: bytes, chance: random.Random) -> None:
    if len(payload) >= 4:
        _INT16.pack_into(payload, 2, chance.choice((-1, 0, 1, 3, 9, 12, 13, 18, 99, 32767)))


def swap_api(payload: bytearray, other: bytes, chance: random.Random) -> None:
    if len(payload) >= 2:
        _INT16.pack_into(payload, 0, chance.choice((-1, 0, 1, 2, 3, 18, 19, 92, 93, 500, 32767)))


BODY: tuple[Callable[[bytearray, bytes, random.Random], None], ...] = (
    flip_bits,
    set_bytes,
    cut,
    set_count,
    set_varint,
    splice,
    repeat,
    append_tail,
    flood_tags,
    swap_version,
    swap_api,
)


def mutate(payload: bytes, other: bytes, chance: random.Random) -> bytes:
    """The request as it will be sent, broken in one to three ways; one in ten stays whole."""
    broken = bytearray(payload)
    if chance.random() < 0.9:
        for _ in range(chance.choice((1, 1, 2, 3))):
            if broken:
                chance.choice(BODY)(broken, other, chance)
    return bytes(broken)


def frame(payload: bytes, chance: random.Random) -> tuple[bytes, bool]:
    """With its size in front, and whether that size is true."""
    if chance.random() < 0.95:
        return _INT32.pack(len(payload)) + payload, True
    return _INT32.pack(
        chance.choice((*ODD_INT32, len(payload) - 1, len(payload) + 1, len(payload) // 2))
    ) + payload, False
