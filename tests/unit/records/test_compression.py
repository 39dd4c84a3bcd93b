# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import gzip
import random
import struct

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.errors import ErrorCode
from strandline.records.compression import XERIAL_MAGIC, CompressionType, compress, decompress
from strandline.records.errors import CorruptRecord, InvalidRecord

CODECS = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD]
TEXT = b" ".join(b"%d" % random.Random(1).randrange(5000) for _ in range(20_000))
WORDS = random.Random(2).choices([random.Random(3 + n).randbytes(6) for n in range(300)], k=20_000)
MIXED = b"".join(WORDS)


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("data", [b"x", TEXT, MIXED, random.Random(0).randbytes(200_000), bytes(1 << 20)])
def test_round_trip_up_to_exactly_the_bound(codec: CompressionType, data: bytes) -> None:
    packed = compress(codec, data)
    for form in (packed, bytearray(packed), memoryview(packed)):
        assert decompress(codec, form, len(data)) == data
    with pytest.raises(InvalidRecord):
        decompress(codec, packed, len(data) - 1)


@settings(max_examples=40)
@given(st.binary(min_size=1), st.sampled_from(CODECS))
def test_any_bytes_round_trip(data: bytes, codec: CompressionType) -> None:
    assert decompress(codec, compress(codec, bytearray(data)), 1 << 20) == data


@pytest.mark.parametrize("codec", CODECS)
def test_a_small_batch_that_grows_a_lot_is_still_read(codec: CompressionType) -> None:
    """The first guess at its size is too small, and so is the second."""
    data = bytes(8 << 20)
    assert decompress(codec, compress(codec, data), 64 << 20) == data


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused(codec: CompressionType) -> None:
    bomb = compress(codec, bytes(32 << 20))
    with pytest.raises(InvalidRecord) as caught:
        decompress(codec, bomb, 1 << 20)
    assert caught.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("form", ["empty", "garbage", "cut short", "one byte", "foreign"])
def test_garbage(codec: CompressionType, form: str) -> None:
    packed = compress(codec, TEXT)
    data = {
        "empty": b"",
        "garbage": b"\xf7garbage" * 9,
        "cut short": packed[: len(packed) // 2],
        "one byte": packed[:1],
        "foreign": compress(CODECS[CODECS.index(codec) - 1], TEXT),
    }[form]
    with pytest.raises(InvalidRecord):
        decompress(codec, data, 1 << 20)


@settings(max_examples=200)
@given(st.data(), st.sampled_from(CODECS))
def test_wrong_bytes_never_raise_anything_else(data: st.DataObject, codec: CompressionType) -> None:
    packed = bytearray(compress(codec, TEXT[:2000]))
    for _ in range(data.draw(st.integers(1, 3))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert len(decompress(codec, packed, 100_000)) <= 100_000
    except InvalidRecord:
        pass


@given(st.binary(max_size=100), st.sampled_from(CODECS))
def test_random_bytes_never_raise_anything_else(data: bytes, codec: CompressionType) -> None:
    try:
        assert len(decompress(codec, data, 4096)) <= 4096
    except InvalidRecord:
        pass


def test_lz4_frames_have_independent_blocks() -> None:
    packed = compress(CompressionType.LZ4, bytes(300_000))
    assert packed[:4] == bytes.fromhex("04224d18")
    version, independent = packed[4] >> 6, packed[4] >> 5 & 1
    assert (version, independent) == (1, 1)
    assert packed[4] & 0b1101 == 0  # no content size, no content checksum, no dictionary


def test_lz4_frames_with_linked_blocks_are_read_too() -> None:
    assert decompress(CompressionType.LZ4, bytes(cramjam.lz4.compress(MIXED)), len(MIXED)) == MIXED


def test_gzip_of_another_hand() -> None:
    assert decompress(CompressionType.GZIP, gzip.compress(TEXT), len(TEXT)) == TEXT
    assert gzip.decompress(compress(CompressionType.GZIP, TEXT)) == TEXT


def test_zstd_from_a_stream_names_no_size_and_is_read() -> None:
    compressor = cramjam.zstd.Compressor(3)
    compressor.compress(TEXT)
    assert decompress(CompressionType.ZSTD, bytes(compressor.finish()), len(TEXT)) == TEXT


def test_snappy_has_xerial_framing_in_chunks_of_32_kb() -> None:
    packed = compress(CompressionType.SNAPPY, MIXED)
    assert packed.startswith(XERIAL_MAGIC + struct.pack(">ii", 1, 1))
    position, sizes = 16, []
    while position < len(packed):
        (length,) = struct.unpack_from(">i", packed, position)
        sizes.append(cramjam.snappy.decompress_raw_len(packed[position + 4 : position + 4 + length]))
        position += 4 + length
    assert sizes == [32768] * (len(MIXED) // 32768) + [len(MIXED) % 32768]


def test_snappy_without_framing_and_joined_streams() -> None:
    assert decompress(CompressionType.SNAPPY, bytes(cramjam.snappy.compress_raw(MIXED)), len(MIXED)) == MIXED
    packed = compress(CompressionType.SNAPPY, TEXT)
    assert decompress(CompressionType.SNAPPY, packed + packed, 2 * len(TEXT)) == TEXT + TEXT


XERIAL = XERIAL_MAGIC + struct.pack(">ii", 1, 1)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\xff\xff\xff\xff\x0f", "4294967295 bytes decompressed"),
        (b"\xff\xff\xff\xff\x7f", "Not snappy"),
        (b"\x80\x80\x20" + b"\x00" * 5, "cannot hold"),
        (XERIAL + b"\x00\x00", "within the length"),
        (XERIAL + struct.pack(">i", 2**31 - 1) + b"x", "claims 2147483647"),
        (XERIAL + struct.pack(">i", -5) + b"x", "claims -5"),
        (XERIAL + struct.pack(">i", 0), "claims 0"),
        (XERIAL + struct.pack(">i", 5) + b"\xff\xff\xff\xff\x0f", "4294967295 bytes decompressed"),
    ],
)
def test_snappy_claims_are_checked_before_anything_is_allocated(data: bytes, complaint: str) -> None:
    with pytest.raises(InvalidRecord, match=complaint):
        decompress(CompressionType.SNAPPY, data, 1 << 20)


def test_snappy_chunks_are_bounded_together() -> None:
    chunk = bytes(cramjam.snappy.compress_raw(bytes(1000)))
    data = XERIAL + (struct.pack(">i", len(chunk)) + chunk) * 11
    with pytest.raises(InvalidRecord, match="11000 bytes"):
        decompress(CompressionType.SNAPPY, data, 10_999)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (CompressionType.GZIP, [-1, *range(1, 10)]),
        (CompressionType.LZ4, range(1, 18)),
        (CompressionType.ZSTD, [-131072, -5, *range(1, 23)]),
    ],
)
def test_every_level_of_kafka_is_taken(codec: CompressionType, levels: range) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, MIXED[:5000], level), 5000) == MIXED[:5000]


def test_levels_matter() -> None:
    sizes = {level: len(compress(CompressionType.ZSTD, MIXED, level)) for level in (-5, 3, 19)}
    assert sizes[-5] > sizes[3] > sizes[19]
    assert len(compress(CompressionType.GZIP, MIXED, 1)) > len(compress(CompressionType.GZIP, MIXED, 9))
    assert compress(CompressionType.GZIP, MIXED) == compress(CompressionType.GZIP, MIXED, -1)


def test_lz4_s_default_level_is_the_fast_one_as_in_java() -> None:
    assert compress(CompressionType.LZ4, MIXED) == compress(CompressionType.LZ4, MIXED, 9)
    assert len(compress(CompressionType.LZ4, MIXED, 9)) > len(compress(CompressionType.LZ4, MIXED, 10))


def test_names_and_numbers() -> None:
    assert [str(codec) for codec in CompressionType] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert all(
        CompressionType.parse(str(codec)) is CompressionType.of(codec.value) is codec for codec in CompressionType
    )
    for name in ("brotli", "GZIP", ""):
        with pytest.raises(ValueError, match="is not one of none, gzip"):
            CompressionType.parse(name)
    for number in (5, 6, 7):
        with pytest.raises(CorruptRecord) as caught:
            CompressionType.of(number)
        assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
