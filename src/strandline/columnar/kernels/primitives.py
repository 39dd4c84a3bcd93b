"""What kernels are made of: bytes copied, varints read and written.

Always true: a reader never looks at or beyond its limit. Where no varint ends before the limit it answers with a position beyond
it, from which every further reader does the same; so positions need to be checked only once, when all is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from strandline.columnar.kernels.calls import Pointer

numba = import_module("numba")
extending = import_module("numba.extending")
cgutils = import_module("numba.core.cgutils")
numpy = import_module("numpy")

types = numba.types
BYTES, NUMBER = types.CPointer(types.uint8), types.int64


def _copy(
    _context: object, target: object, target_at: object, source: object, source_at: object, size: object
) -> tuple[object, Callable[..., None]]:
    """As many bytes from one place to another, as fast as the machine can."""

    def generate(_context: object, builder: Any, _signature: object, arguments: Iterable[object]) -> None:
        to, to_at, origin, origin_at, count = arguments
        cgutils.raw_memcpy(builder, builder.gep(to, [to_at]), builder.gep(origin, [origin_at]), count, 1)

    return types.void(BYTES, NUMBER, BYTES, NUMBER, NUMBER), generate


def _read_int(data: Pointer, position: int, size: int) -> int:
    """A signed value of so many bytes, the largest first; they must be there."""
    value: int = numpy.int64(numpy.int8(data[position]))
    for at in range(position + 1, position + size):
        value = value << 8 | numpy.int64(data[at])
    return value


def _read_varint(data: Pointer, position: int, limit: int) -> tuple[int, int]:
    """A signed 32-bit value and the position after it."""
    if position < limit:
        byte = numpy.int64(data[position])
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
    raw = numpy.int64(0)
    shift = 0
    while position < limit and shift < 35:
        byte = numpy.int64(data[position])
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFF_FFFF
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return numpy.int64(0), limit + 1


def _read_varlong(data: Pointer, position: int, limit: int) -> tuple[int, int]:
    """A signed 64-bit value and the position after it."""
    raw = numpy.uint64(0)
    shift = numpy.uint64(0)
    while position < limit and shift < numpy.uint64(70):
        byte = numpy.uint64(data[position])
        position += 1
        raw |= (byte & numpy.uint64(0x7F)) << shift
        if byte < numpy.uint64(0x80):
            return numpy.int64(raw >> numpy.uint64(1)) ^ -numpy.int64(raw & numpy.uint64(1)), position
        shift += numpy.uint64(7)
    return numpy.int64(0), limit + 1


def _varint_bytes(value: int) -> int:
    """How many bytes a signed value takes."""
    raw = numpy.uint64((value << 1) ^ (value >> 63))
    size = 1
    while raw >= numpy.uint64(0x80):
        raw >>= numpy.uint64(7)
        size += 1
    return size


def _write_varint(data: Pointer, position: int, value: int) -> int:
    """Write a signed value and return the position after it."""
    raw = numpy.uint64((value << 1) ^ (value >> 63))
    while raw >= numpy.uint64(0x80):
        data[position] = numpy.uint8((raw & numpy.uint64(0x7F)) | numpy.uint64(0x80))
        raw >>= numpy.uint64(7)
        position += 1
    data[position] = numpy.uint8(raw)
    return position + 1


_compile = numba.njit(nogil=True, error_model="numpy")
copy = extending.intrinsic(_copy)
read_int = _compile(_read_int)
read_varint = _compile(_read_varint)
read_varlong = _compile(_read_varlong)
_in_line = numba.njit(nogil=True, error_model="numpy", inline="always")
read_varint_inline = _in_line(_read_varint)
read_varlong_inline = _in_line(_read_varlong)
"""For a kernel that must stand alone: a call is something a linker would have to resolve."""
varint_bytes = _compile(_varint_bytes)
write_varint = _compile(_write_varint)
