"""Variable-length integers: seven bits a byte, least significant first, signed ones zigzag-coded.

Always true: a varint takes at most 5 bytes and a varlong at most 10; bits beyond 32 or 64 are dropped, as Kafka drops them.
Readers take any buffer of bytes and a position, and return the value and the position after it.
"""

from __future__ import annotations

from typing import Final

from strandline.ports import Buffer
from strandline.records.errors import InvalidRecord

VARINT_BYTES_MAX: Final = 5
VARLONG_BYTES_MAX: Final = 10

_UINT32: Final = 0xFFFF_FFFF
_UINT64: Final = 0xFFFF_FFFF_FFFF_FFFF


def read_unsigned_varint(data: Buffer, position: int) -> tuple[int, int]:
    """A value of 0 .. 2^32-1 and the position after it."""
    raw, position = _read_raw(data, position, VARINT_BYTES_MAX)
    return raw & _UINT32, position


def read_varint(data: Buffer, position: int) -> tuple[int, int]:
    """A signed 32-bit value and the position after it."""
    raw, position = _read_raw(data, position, VARINT_BYTES_MAX)
    raw &= _UINT32
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """A signed 64-bit value and the position after it."""
    raw, position = _read_raw(data, position, VARLONG_BYTES_MAX)
    raw &= _UINT64
    return (raw >> 1) ^ -(raw & 1), position


def _read_raw(data: Buffer, position: int, bytes_max: int) -> tuple[int, int]:
    raw = shift = 0
    try:
        for at in range(position, position + bytes_max):
            byte = data[at]
            if byte < 0x80:
                return raw | byte << shift, at + 1
            raw |= (byte & 0x7F) << shift
            shift += 7
    except IndexError:
        raise InvalidRecord(f"The varint at position {position} runs past the end of the data") from None
    raise InvalidRecord(f"The varint at position {position} does not end within {bytes_max} bytes")


def encode_unsigned_varint(value: int) -> bytes:
    assert 0 <= value <= _UINT32, value
    return _encode_raw(value)


def encode_varint(value: int) -> bytes:
    assert -(1 << 31) <= value < 1 << 31, value
    return _encode_raw(value << 1 ^ value >> 31)


def encode_varlong(value: int) -> bytes:
    assert -(1 << 63) <= value < 1 << 63, value
    return _encode_raw(value << 1 ^ value >> 63)


def _encode_raw(raw: int) -> bytes:
    if raw < 0x80:
        return raw.to_bytes(1)
    encoded = bytearray()
    while raw >= 0x80:
        encoded.append(raw & 0x7F | 0x80)
        raw >>= 7
    encoded.append(raw)
    return bytes(encoded)
