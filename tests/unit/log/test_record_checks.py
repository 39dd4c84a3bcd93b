"""How much of a request's records is checked on the event loop, and which of them are named when they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log import record_checks
from strandline.log.errors import RecordsBesideLoop
from strandline.log.record_checks import LOOP_BYTES_MAX, CheckedRecords, RecordWork, check_beside, check_records
from strandline.log.validation import validate
from strandline.records import walk
from strandline.records.batch import BatchBuilder, decode
from strandline.records.blame import RECORD_ERRORS_MAX
from strandline.records.compression import CompressionType
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import read_header, stamp_append_time

from .conftest import NOW, batch, topic

COMPRESSED = [codec for codec in CompressionType if codec != CompressionType.NONE]
HOUR_MS = 3_600_000


def on_loop(data: memoryview, work: RecordWork | None = None, **fields: Any) -> CheckedRecords:
    return check_records(data, read_header(data), topic(**fields), NOW, work or RecordWork())


def beside(data: memoryview, work: RecordWork | None = None, **fields: Any) -> CheckedRecords:
    return check_beside(data, topic(**fields), NOW, work or RecordWork())


def of_size(size: int, codec: CompressionType) -> memoryview:
    return batch("k" * size, codec=codec)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_is_larger_than_a_mebibyte_is_opened_beside_the_loop(codec: CompressionType) -> None:
    assert on_loop(of_size(LOOP_BYTES_MAX - 100, codec)) == CheckedRecords(None, NOW)
    large = of_size(LOOP_BYTES_MAX, codec)
    with pytest.raises(RecordsBesideLoop):
        on_loop(large)
    with pytest.raises(RecordsBesideLoop):
        validate(large, topic(), NOW)
    assert beside(large) == CheckedRecords(None, NOW)


def test_the_mebibyte_is_for_the_whole_request() -> None:
    work = RecordWork()
    for _ in range(3):
        on_loop(of_size(300_000, CompressionType.ZSTD), work)
    with pytest.raises(RecordsBesideLoop):
        on_loop(of_size(300_000, CompressionType.ZSTD), work)
    with pytest.raises(RecordsBesideLoop):  # nor is the rest of the request tried again
        on_loop(of_size(10, CompressionType.ZSTD), work)
    beside(of_size(300_000, CompressionType.ZSTD), work)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_request_has_a_total(codec: CompressionType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_checks, "REQUEST_BYTES_MAX", 1_000_000)
    work = RecordWork()
    for _ in range(3):
        beside(of_size(300_000, codec), work)
    with pytest.raises(InvalidRecord):
        beside(of_size(300_000, codec), work)
    beside(of_size(90_000, codec), work)
    work.bytes_left = 0
    with pytest.raises(InvalidRecord, match="send fewer at once"):
        beside(of_size(10, codec), work)


@pytest.mark.parametrize("target", list(CompressionType))
def test_only_a_little_is_recompressed_on_the_loop(target: CompressionType) -> None:
    name = "uncompressed" if target == CompressionType.NONE else str(target)
    source = CompressionType.GZIP if target != CompressionType.GZIP else CompressionType.ZSTD
    little = on_loop(of_size(50_000, source), compression_type=name).batch
    assert little is not None
    assert read_header(little).codec == target
    with pytest.raises(RecordsBesideLoop):
        on_loop(of_size(70_000, source), compression_type=name)
    large = beside(of_size(9_000_000, source), compression_type=name, max_message_bytes=10_000_000).batch
    assert large is not None
    [record] = decode(large)
    assert record.value == b"k" * 9_000_000


def test_records_without_end_are_walked_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "in_use", walk.PLAIN._replace(records_on_loop_max=20))
    twenty, one = batch(*["v"] * 20), batch("v")
    for fields in ({}, {"compact": True}, {"compression_type": "gzip"}):
        validate(twenty, topic(**fields), NOW)
        with pytest.raises(RecordsBesideLoop):
            validate(batch(*["v"] * 21), topic(**fields), NOW)
    work = RecordWork()
    validate(twenty, topic(), NOW, work)
    with pytest.raises(RecordsBesideLoop):
        validate(one, topic(), NOW, work)
    assert beside(batch(*["v"] * 21)) == CheckedRecords(None, NOW)


def test_many_records_are_named_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_checks, "BLAMED_ON_LOOP_MAX", 2)
    builder = BatchBuilder()
    for key in (b"a", None, b"c"):
        builder.append(key, b"v", timestamp=NOW)
    data = memoryview(builder.build())
    with pytest.raises(RecordsBesideLoop):
        validate(data, topic(compact=True), NOW)
    with pytest.raises(InvalidRecord) as refused:
        beside(data, compact=True)
    assert [index for index, _ in refused.value.record_errors] == [1]


# KIP-467


def refused(records: list[tuple[bytes | None, int]], codec: CompressionType, **fields: Any) -> CorruptRecord:
    builder = BatchBuilder()
    for key, timestamp in records:
        builder.append(key, b"v", timestamp=timestamp)
    with pytest.raises(CorruptRecord) as caught:
        validate(memoryview(builder.build(codec=codec)), topic(**fields), NOW)
    return caught.value


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("own", ["producer", "lz4"])
def test_records_without_keys_are_named(codec: CompressionType, own: str) -> None:
    error = refused([(b"a", NOW), (None, NOW), (b"", NOW), (None, NOW)], codec, compact=True, compression_type=own)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [(index, "key" in message) for index, message in error.record_errors] == [(1, True), (3, True)]


@pytest.mark.parametrize("codec", list(CompressionType))
def test_records_out_of_time_are_named(codec: CompressionType) -> None:
    late, early = NOW + HOUR_MS + 1, NOW - 5001
    times = [(b"k", time) for time in (NOW, late, NOW - 5000, early, -1, NOW + HOUR_MS)]
    bounds = {"message_timestamp_after_max_ms": HOUR_MS, "message_timestamp_before_max_ms": 5000}
    error = refused(times, codec, **bounds)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert f"{late} is not in {NOW - 5000} to {NOW + HOUR_MS}" in error.record_errors[0].message


def test_one_wrong_time_names_the_whole_answer_and_a_missing_key_its_record() -> None:
    error = refused(
        [(None, NOW + 2 * HOUR_MS), (b"k", NOW + 2 * HOUR_MS), (None, NOW)], CompressionType.NONE, compact=True
    )
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [(index, "key" in message) for index, message in error.record_errors] == [(0, True), (1, False), (2, True)]


def test_append_time_that_a_producer_claims_is_named_for_every_record() -> None:
    sent = bytearray(batch("a", "b"))
    stamp_append_time(sent, NOW)
    with pytest.raises(CorruptRecord) as caught:
        validate(memoryview(sent), topic(log_append_time=True), NOW)
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in caught.value.record_errors] == [0, 1]


def test_the_names_are_bounded() -> None:
    assert len(refused([(None, NOW)] * 1500, CompressionType.NONE, compact=True).record_errors) == RECORD_ERRORS_MAX


def test_what_cannot_be_read_names_no_record() -> None:
    sent = bytearray(batch("a", "b"))
    sent[-1] = 2  # a header that is not there
    data = memoryview(bytearray(sent))
    with pytest.raises(KafkaError) as caught:
        beside(data)
    assert isinstance(caught.value, InvalidRecord)
    assert not caught.value.record_errors
