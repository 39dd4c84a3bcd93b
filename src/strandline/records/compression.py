"""The codecs of the records inside a batch: gzip, snappy, lz4 and zstd.

Always true: decompressing fills at most the caller's bound, whatever the data claims, and whatever is wrong with the data
is an InvalidRecord. (zstd also keeps its window: no larger than what it has written, nor than 128 MB.)
What we write, Java reads: lz4 frames have independent blocks, snappy has xerial's framing.
"""

from __future__ import annotations

import enum
import mmap
import struct
from types import ModuleType
from typing import Final

import cramjam

from strandline.errors import ErrorCode
from strandline.ports import Buffer
from strandline.records.errors import CorruptRecord, InvalidRecord


class CompressionType(enum.IntEnum):
    """By the number that the lowest three attribute bits carry."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, codec: int) -> CompressionType:
        try:
            return cls(codec)
        except ValueError:
            raise CorruptRecord(f"There is no codec {codec}", ErrorCode.UNSUPPORTED_COMPRESSION_TYPE) from None

    @classmethod
    def parse(cls, name: str) -> CompressionType:
        """From its lower-case name in a configuration; ValueError if there is none of that name."""
        if name != name.lower() or name.upper() not in cls.__members__:
            raise ValueError(f"'{name}' is not one of {', '.join(str(codec) for codec in cls)}")
        return cls[name.upper()]

    def __str__(self) -> str:
        return self.name.lower()


DEFAULT_LEVELS: Final = {CompressionType.GZIP: -1, CompressionType.LZ4: 9, CompressionType.ZSTD: 3}
_LZ4_PIECE_BYTES: Final = 4 * 1024 * 1024
"""So much is copied at a time: a copy of everything would hold up the other threads."""
_LZ4_FASTEST, _LZ4_HIGH_MIN, _LZ4_HIGH_MAX = 0, 3, 12

DECOMPRESSED_BYTES_MAX: Final = 256 * 1024 * 1024
"""The bound for those who have no better one, such as a tool that reads a trusted log."""
_FIRST_GUESS_RATIO: Final = 8
_GUESS_BYTES_MIN: Final = 4096
_CLEARED_BYTES_MAX: Final = 1024 * 1024
"""Larger room is not cleared beforehand: no other thread runs while Python does that, and for 256 MiB it takes half a second."""
_FREED_BYTES: Final = 4 * 1024 * 1024


def compress(codec: CompressionType, data: Buffer, level: int | None = None) -> bytes:
    """`level` is that of compression.{gzip,lz4,zstd}.level; None is Kafka's default. Snappy has none."""
    match codec:
        case CompressionType.NONE:
            return bytes(data)
        case CompressionType.GZIP:
            return bytes(cramjam.gzip.compress(data, level=None if level in (None, -1) else level))
        case CompressionType.SNAPPY:
            return _compress_xerial(data)
        case CompressionType.LZ4:
            # Linked blocks are cramjam's default, and Java refuses them.
            compressor = cramjam.lz4.Compressor(level=_lz4_level(level), content_checksum=False, block_linked=False)
            view = memoryview(data)
            for start in range(0, len(view), _LZ4_PIECE_BYTES):
                compressor.compress(bytes(view[start : start + _LZ4_PIECE_BYTES]))  # it takes nothing else
            return bytes(compressor.finish())
        case CompressionType.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=DEFAULT_LEVELS[codec] if level is None else level))


def _lz4_level(level: int | None) -> int:
    """Kafka's default, 9, stands for the fast compressor and every other level for the high one, whose range here is 3-12."""
    if level is None or level == DEFAULT_LEVELS[CompressionType.LZ4]:
        return _LZ4_FASTEST
    return min(max(level, _LZ4_HIGH_MIN), _LZ4_HIGH_MAX)


def decompress(codec: CompressionType, data: Buffer, max_bytes: int) -> bytearray | memoryview:
    """The data in full, or InvalidRecord if it is broken or would be longer than `max_bytes`.

    Whoever is done with much of it should say so with `give_back`.
    """
    match codec:
        case CompressionType.NONE:
            _check_size(len(data), max_bytes)
            return bytearray(data)
        case CompressionType.GZIP:
            return _decompress_stream(cramjam.gzip, codec, data, max_bytes)
        case CompressionType.SNAPPY:
            return _decompress_snappy(data, max_bytes)
        case CompressionType.LZ4:
            return _decompress_stream(cramjam.lz4, codec, data, max_bytes)
        case CompressionType.ZSTD:
            return _decompress_stream(cramjam.zstd, codec, data, max_bytes)


def _check_size(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise InvalidRecord(f"Records would take {size} bytes decompressed, and {max_bytes} are allowed")


def _decompress_stream(
    library: ModuleType, codec: CompressionType, data: Buffer, max_bytes: int
) -> bytearray | memoryview:
    """Into a buffer of a size we choose, which cramjam never exceeds; too small a guess is tried again with a larger one.

    A full buffer and broken data raise the same exception, so the last attempt, with all that is allowed, decides.
    """
    room = min(_GUESS_BYTES_MIN + _FIRST_GUESS_RATIO * len(data), max_bytes)
    while True:
        output = bytearray(room) if room <= _CLEARED_BYTES_MAX else memoryview(mmap.mmap(-1, room))
        try:
            size = library.decompress_into(data, output)
        except cramjam.DecompressionError as error:
            give_back(output)
            if room < max_bytes:
                room = min(room * _FIRST_GUESS_RATIO, max_bytes)
                continue
            raise InvalidRecord(f"Not {codec} data that fits in {max_bytes} bytes: {error}") from None
        if isinstance(output, memoryview):
            return output[:size]
        del output[size:]
        return output


def give_back(output: Buffer) -> None:
    """Free what `decompress` returned and nobody uses any more, a few pages at a time: all at once would hold up other threads."""
    if isinstance(output, memoryview) and isinstance(output.obj, mmap.mmap):
        for start in range(0, len(output.obj), _FREED_BYTES):
            output.obj.madvise(mmap.MADV_DONTNEED, start, min(_FREED_BYTES, len(output.obj) - start))


XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = struct.Struct(">8sii")
_XERIAL_VERSION: Final = 1
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_CHUNK_LENGTH: Final = struct.Struct(">i")
_SNAPPY_RATIO_MAX: Final = 22
"""A copy of up to 64 bytes takes at least three: no snappy data is larger than this, decompressed."""


def _compress_xerial(data: Buffer) -> bytes:
    parts: list[bytes] = [_XERIAL_HEADER.pack(XERIAL_MAGIC, _XERIAL_VERSION, _XERIAL_VERSION)]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        chunk = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += _CHUNK_LENGTH.pack(len(chunk)), chunk
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_bytes: int) -> bytearray:
    """xerial's framing, which Java writes, or one raw block, which others do."""
    view = memoryview(data)
    output = bytearray()
    if not _has_xerial_magic(view, 0):
        _append_snappy_block(output, view, max_bytes)
        return output
    position = _XERIAL_HEADER.size
    while position < len(view):
        if _has_xerial_magic(view, position):  # streams may be joined, header and all
            position += _XERIAL_HEADER.size
            continue
        if len(view) - position < _CHUNK_LENGTH.size:
            raise InvalidRecord("The snappy data ends within the length of a chunk")
        (length,) = _CHUNK_LENGTH.unpack_from(view, position)
        position += _CHUNK_LENGTH.size
        if not 0 < length <= len(view) - position:
            raise InvalidRecord(f"A snappy chunk claims {length} bytes, but {len(view) - position} are left")
        _append_snappy_block(output, view[position : position + length], max_bytes)
        position += length
    return output


def _has_xerial_magic(view: memoryview, position: int) -> bool:
    return bytes(view[position : position + len(XERIAL_MAGIC)]) == XERIAL_MAGIC


def _append_snappy_block(output: bytearray, block: memoryview, max_bytes: int) -> None:
    """Decompress one raw block to the end of `output`, having checked what it claims before giving it room."""
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        start = len(output)
        _check_size(start + size, max_bytes)
        if size > _SNAPPY_RATIO_MAX * len(block):
            raise InvalidRecord(f"A snappy block of {len(block)} bytes cannot hold the {size} it claims")
        output.extend(bytes(size))
        with memoryview(output) as whole, whole[start:] as room:
            cramjam.snappy.decompress_raw_into(block, room)
    except cramjam.DecompressionError as error:
        raise InvalidRecord(f"Not snappy data: {error}") from None
