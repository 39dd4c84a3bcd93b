"""What may not enter a log, each with the code its producer is told."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import RecordsBesideLoop
from strandline.log.record_checks import RecordWork, check_beside
from strandline.log.validation import ValidBatch, validate
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    COUNT_AT,
    CRC_AT,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    RECORDS_AT,
    crc_valid,
    read_header,
    seal,
    stamp_append_time,
)

from .conftest import NOW, batch, sized, topic

DAY_MS = 86_400_000


def check(data: memoryview | bytes | bytearray, **fields: Any) -> ValidBatch:
    """As a request does it: what takes too long here is checked beside, and then tried again."""
    batch, config = memoryview(bytearray(data)), topic(**fields)
    try:
        return validate(batch, config, NOW)
    except RecordsBesideLoop:
        return validate(batch, config, NOW, None, check_beside(batch, config, NOW, RecordWork()))


def refusal(data: memoryview | bytes | bytearray, **fields: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        check(data, **fields)
    return error.value.code


def edited(position: int, layout: str, value: int, *, sealed: bool = True) -> bytearray:
    """A batch of three records with one header field changed."""
    data = bytearray(batch("a", "b", "c"))
    struct.pack_into(layout, data, position, value)
    if sealed:
        seal(data)
    return data


def test_a_good_batch_is_taken_as_it_is() -> None:
    data = batch("a", "b", "c", timestamps=(NOW, NOW + 9, NOW + 3), producer_id=5, producer_epoch=2, base_sequence=7)
    valid = validate(data, topic(), NOW)
    assert valid == ValidBatch(data, 2, NOW + 9, 5, 2, 7, False, -1)
    assert valid.batch is data


REFUSED: list[tuple[str, Callable[[], bytes | bytearray], ErrorCode]] = [
    ("no batch", lambda: b"", ErrorCode.INVALID_RECORD),
    ("a piece of a header", lambda: bytes(batch("a"))[:60], ErrorCode.CORRUPT_MESSAGE),
    ("two batches", lambda: bytes(batch("a")) + bytes(batch("b")), ErrorCode.INVALID_RECORD),
    ("bytes behind the batch", lambda: bytes(batch("a")) + b"x", ErrorCode.INVALID_RECORD),
    ("a batch cut short", lambda: bytes(batch("a"))[:-1], ErrorCode.CORRUPT_MESSAGE),
    ("length too small", lambda: edited(LENGTH_AT, ">i", 5), ErrorCode.CORRUPT_MESSAGE),
    ("length negative", lambda: edited(LENGTH_AT, ">i", -1), ErrorCode.CORRUPT_MESSAGE),
    ("magic 0", lambda: edited(MAGIC_AT, ">b", 0), ErrorCode.INVALID_RECORD),
    ("magic 1", lambda: edited(MAGIC_AT, ">b", 1), ErrorCode.INVALID_RECORD),
    ("magic 3", lambda: edited(MAGIC_AT, ">b", 3), ErrorCode.INVALID_RECORD),
    ("wrong checksum", lambda: edited(CRC_AT, ">I", 1, sealed=False), ErrorCode.CORRUPT_MESSAGE),
    ("a base offset", lambda: edited(BASE_OFFSET_AT, ">q", 1), ErrorCode.INVALID_RECORD),
    ("count 0", lambda: edited(COUNT_AT, ">i", 0), ErrorCode.INVALID_RECORD),
    ("count -1", lambda: edited(COUNT_AT, ">i", -1), ErrorCode.INVALID_RECORD),
    ("count too small", lambda: edited(COUNT_AT, ">i", 2), ErrorCode.INVALID_RECORD),
    ("count too large", lambda: edited(COUNT_AT, ">i", 4), ErrorCode.INVALID_RECORD),
    ("offset delta -1", lambda: edited(LAST_OFFSET_DELTA_AT, ">i", -1), ErrorCode.INVALID_RECORD),
    ("a control batch", lambda: bytearray(batch("a", control=True)), ErrorCode.INVALID_RECORD),
    (
        "of a transaction, without a producer",
        lambda: bytearray(batch("a", transactional=True)),
        ErrorCode.INVALID_RECORD,
    ),
    ("a producer without a sequence", lambda: bytearray(batch("a", producer_id=5)), ErrorCode.INVALID_RECORD),
    (
        "a producer without an epoch",
        lambda: bytearray(batch("a", producer_id=5, base_sequence=0)),
        ErrorCode.INVALID_RECORD,
    ),
    ("codec 5", lambda: edited(ATTRIBUTES_AT, ">h", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ("codec 7", lambda: edited(ATTRIBUTES_AT, ">h", 7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
]


@pytest.mark.parametrize(("make", "code"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(make: Callable[[], bytes], code: ErrorCode) -> None:
    assert refusal(make()) is code


@pytest.mark.parametrize("position", range(ATTRIBUTES_AT, len(batch("a", "b", "c"))))
def test_a_flipped_bit_in_what_the_checksum_covers_is_corruption(position: int) -> None:
    data = bytearray(batch("a", "b", "c"))
    data[position] ^= 1
    assert refusal(data) is ErrorCode.CORRUPT_MESSAGE


def test_sizes_are_exact() -> None:
    check(sized(500), max_message_bytes=500, segment_bytes=500)
    assert refusal(sized(501), max_message_bytes=500) is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(sized(501), segment_bytes=500) is ErrorCode.RECORD_LIST_TOO_LARGE


def test_timestamps_have_bounds_on_both_sides() -> None:
    late, early = NOW + 3_600_000, NOW - DAY_MS
    check(batch("a", timestamps=(late,)), message_timestamp_after_max_ms=3_600_000)
    check(batch("a", timestamps=(early,)), message_timestamp_before_max_ms=DAY_MS)
    check(batch("a", timestamps=(0,)))
    check(batch("a", timestamps=(-1,)), message_timestamp_before_max_ms=DAY_MS)
    check(batch("a", "b", timestamps=(early, -1)), message_timestamp_before_max_ms=DAY_MS)
    for within in ((NOW, early - 1, NOW), (NOW, NOW, early - 1)):
        assert refusal(batch("a", "b", "c", timestamps=within), message_timestamp_before_max_ms=DAY_MS) is (
            ErrorCode.INVALID_TIMESTAMP
        )
    assert refusal(batch("a", timestamps=(late + 1,)), message_timestamp_after_max_ms=3_600_000) is (
        ErrorCode.INVALID_TIMESTAMP
    )
    assert refusal(batch("a", timestamps=(early - 1,)), message_timestamp_before_max_ms=DAY_MS) is (
        ErrorCode.INVALID_TIMESTAMP
    )


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_log_append_time_replaces_the_producers(codec: CompressionType) -> None:
    far = (1, NOW + 10**12)
    valid = check(batch("a", "b", timestamps=far, codec=codec), log_append_time=True)
    assert (valid.append_time, valid.max_timestamp) == (NOW, NOW)
    assert crc_valid(valid.batch)
    assert read_header(valid.batch).is_log_append_time
    assert [record.timestamp for record in decode(valid.batch)] == [NOW, NOW]


def test_a_topic_with_its_own_codec_recompresses_and_keeps_all_else() -> None:
    sent = batch("a" * 500, "b" * 500, codec=CompressionType.GZIP, producer_id=1, producer_epoch=0, base_sequence=3)
    valid = check(sent, compression_type="lz4")
    header = read_header(valid.batch)
    assert header.codec == CompressionType.LZ4
    assert (header.producer_id, header.base_sequence, header.records_count) == (1, 3, 2)
    assert list(decode(valid.batch)) == list(decode(sent))


def test_a_batch_in_the_topics_codec_is_left_alone() -> None:
    sent = batch("a", codec=CompressionType.ZSTD)
    assert bytes(check(sent, compression_type="zstd").batch) == bytes(sent)
    assert read_header(check(sent, compression_type="uncompressed").batch).codec == CompressionType.NONE


def test_recompression_may_not_grow_a_batch_beyond_the_limit() -> None:
    small = batch("a" * 5000, codec=CompressionType.GZIP)
    assert len(small) < 1000
    assert refusal(small, compression_type="uncompressed", max_message_bytes=1000) is ErrorCode.MESSAGE_TOO_LARGE


def test_a_segment_holds_the_batch_as_it_is_written() -> None:
    small = batch("a" * 5000, codec=CompressionType.GZIP)
    check(small, segment_bytes=1000)
    assert refusal(small, compression_type="uncompressed", segment_bytes=1000) is ErrorCode.RECORD_LIST_TOO_LARGE
    plain = batch("a" * 5000)
    assert refusal(plain, segment_bytes=1000) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert len(check(plain, compression_type="gzip", segment_bytes=1000).batch) < 1000


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.SNAPPY])
def test_a_compacted_topic_needs_keys(codec: CompressionType) -> None:
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=NOW)
    builder.append(None, b"v", timestamp=NOW)
    sent = builder.build(codec=codec)
    check(sent)
    assert refusal(sent, compact=True) is ErrorCode.INVALID_RECORD
    check(batch("a", codec=codec), compact=True)


TOPICS: list[dict[str, Any]] = [{}, {"compact": True}, {"compression_type": "gzip"}, {"log_append_time": True}]


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("fields", TOPICS, ids=str)
def test_every_batch_is_walked(codec: CompressionType, fields: dict[str, Any]) -> None:
    """SEC-L9: 65 bytes that claimed a thousand records stuck every consumer of their partition."""
    sent = bytearray(batch("a", "b", codec=codec))
    check(sent, **fields)
    for count in (1, 3, 1000):
        struct.pack_into(">i", sent, COUNT_AT, count)
        struct.pack_into(">i", sent, LAST_OFFSET_DELTA_AT, count - 1)
        seal(sent)
        assert refusal(sent, **fields) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec != CompressionType.NONE])
@pytest.mark.parametrize("fields", TOPICS, ids=str)
def test_garbage_for_a_compressed_stream_is_refused(codec: CompressionType, fields: dict[str, Any]) -> None:
    assert refusal(edited(ATTRIBUTES_AT, ">h", codec), **fields) is ErrorCode.INVALID_RECORD


@cache
def much() -> BatchBuilder:
    builder = BatchBuilder()
    builder.append(b"k", bytes(270_000_000), timestamp=NOW)
    return builder


@cache
def bomb_of(codec: CompressionType) -> bytes:
    return bytes(much().build(codec=codec))


@pytest.mark.parametrize("codec", [codec for codec in CompressionType if codec != CompressionType.NONE])
@pytest.mark.parametrize("fields", TOPICS, ids=str)
def test_a_compression_bomb_is_refused(codec: CompressionType, fields: dict[str, Any]) -> None:
    """Of those that are small enough to be sent at all: a batch may hold 1024 times its size, and 16 MiB."""
    bomb = bomb_of(codec)
    assert refusal(bomb, **fields) is (
        ErrorCode.INVALID_RECORD if len(bomb) <= 1_048_588 else ErrorCode.MESSAGE_TOO_LARGE
    )


def test_the_records_tell_the_maximum_timestamp() -> None:
    for claimed in (-1, 5, NOW + 10**15):
        sent = bytearray(batch("a", "b", "c", timestamps=(NOW, NOW + 7, NOW + 3)))
        struct.pack_into(">q", sent, MAX_TIMESTAMP_AT, claimed)
        seal(sent)
        valid = check(sent)
        assert valid.max_timestamp == read_header(valid.batch).max_timestamp == NOW + 7
        assert crc_valid(valid.batch)


def test_a_producer_cannot_claim_append_time() -> None:
    sent = bytearray(batch("a", "b"))
    stamp_append_time(sent, NOW - 5)
    assert refusal(sent, log_append_time=True) is ErrorCode.INVALID_TIMESTAMP
    valid = check(sent)
    assert not read_header(valid.batch).is_log_append_time
    assert [record.timestamp for record in decode(valid.batch)] == [NOW, NOW]


def test_records_that_cannot_be_read_are_refused_before_they_are_recompressed() -> None:
    sent = bytearray(batch("abcdefgh"))
    sent[RECORDS_AT] ^= 0x7F  # the length of the first record
    seal(sent)
    assert refusal(memoryview(sent), compression_type="gzip") is ErrorCode.INVALID_RECORD
