"""How much of a request's records is checked on the event loop, and which of them are named when they are refused."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

import pytest

from strandline.errors import ErrorCode, KafkaError
from strandline.log import record_checks
from strandline.log.errors import RecordsBesideLoop
from strandline.log.record_checks import (
    ERRORS_MAX,
    LOOP_BYTES_MAX,
    CheckedRecords,
    RecordWork,
    check_beside,
    check_records,
)
from strandline.log.validation import validate
from strandline.records import walk
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import read_header, stamp_append_time

from .conftest import NOW, batch, topic

COMPRESSED = [codec for codec in CompressionType if codec != CompressionType.NONE]
HOUR_MS = 3_600_000


def on_loop(data: memoryview, work: RecordWork | None = None, **fields: Any) -> CheckedRecords:
    config = topic(**fields)
    return CheckedRecords(*check_records(data, read_header(data), config, NOW, work), config)


def beside(data: memoryview, work: RecordWork | None = None, **fields: Any) -> CheckedRecords:
    return check_beside(data, topic(**fields), NOW, work or RecordWork())


def of_size(size: int, codec: CompressionType) -> memoryview:
    return batch("k" * size, codec=codec)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_is_larger_than_a_mebibyte_is_opened_beside_the_loop(codec: CompressionType) -> None:
    assert on_loop(of_size(LOOP_BYTES_MAX - 100, codec)) == CheckedRecords(None, NOW, topic())
    large = of_size(LOOP_BYTES_MAX, codec)
    with pytest.raises(RecordsBesideLoop):
        on_loop(large)
    with pytest.raises(RecordsBesideLoop):
        validate(large, topic(), NOW)
    assert beside(large) == CheckedRecords(None, NOW, topic())


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
    assert beside(batch(*["v"] * 21)) == CheckedRecords(None, NOW, topic())


def test_many_records_are_named_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_checks, "BLAMED_ON_LOOP_MAX", 2)
    data = keyed((b"a", NOW), (None, NOW), (b"c", NOW))
    with pytest.raises(RecordsBesideLoop):
        validate(data, topic(compact=True), NOW)
    with pytest.raises(InvalidRecord) as refused:
        beside(data, compact=True)
    assert [index for index, _ in refused.value.record_errors] == [1]


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_the_batches_of_a_request_share_what_is_named_on_the_loop(
    codec: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 batches of 1000 records took three and a half seconds in one turn."""
    monkeypatch.setattr(record_checks, "BLAMED_ON_LOOP_MAX", 7)
    data, work = keyed(*[(None, NOW)] * 3, codec=codec), RecordWork()
    for _ in range(2):
        with pytest.raises(InvalidRecord):
            validate(data, topic(compact=True), NOW, work)
    with pytest.raises(RecordsBesideLoop):
        validate(data, topic(compact=True), NOW, work)
    with pytest.raises(RecordsBesideLoop):  # nor is the rest of the request tried again
        validate(keyed((None, NOW), codec=codec), topic(compact=True), NOW, work)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_the_batches_of_a_request_share_the_names(codec: CompressionType) -> None:
    """Ten thousand batches of a thousand records each made a reply of 774 MiB."""
    data, work = keyed(*[(b"k", NOW + 2 * HOUR_MS)] * 400, codec=codec), RecordWork()
    named = []
    for _ in range(5):
        with pytest.raises(CorruptRecord) as caught:
            validate(data, topic(), NOW, work)
        assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
        named.append(len(caught.value.record_errors))
    assert named == [400, 400, ERRORS_MAX - 800, 0, 0]
    assert "not named" in caught.value.message


def test_how_many_records_a_request_has_looked_at_is_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last of many millions may be the one to blame."""
    monkeypatch.setattr(record_checks, "BLAMED_MAX", 10)
    work = RecordWork()
    for late, named in ((5, [5]), (2, [2]), (2, []), (0, [])):
        data = keyed(*[(b"k", NOW)] * late, (b"k", NOW + 2 * HOUR_MS))
        with pytest.raises(CorruptRecord) as caught:
            beside(data, work)
        assert caught.value.code is ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in caught.value.record_errors] == named


# What was checked beside the loop, under a configuration that was altered meanwhile


CHECKED_DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"compact": True}),
        ({}, {"message_timestamp_before_max_ms": CHECKED_DAY_MS}),
        ({"compression_type": "gzip"}, {"compression_type": "gzip", "compact": True}),
        ({"compression_type": "uncompressed"}, {"compression_type": "uncompressed", "max_message_bytes": 1000}),
    ],
    ids=str,
)
def test_a_check_is_not_believed_under_another_configuration(before: dict[str, Any], after: dict[str, Any]) -> None:
    builder = BatchBuilder()
    builder.append(None, bytes(5000), timestamp=NOW - 2 * CHECKED_DAY_MS)
    data = memoryview(builder.build(codec=CompressionType.ZSTD))
    checked = check_beside(data, topic(**before), NOW, RecordWork())
    validate(data, topic(**before), NOW, RecordWork(), checked)
    with pytest.raises(KafkaError):
        validate(data, topic(**after), NOW, RecordWork(), checked)
    busy = RecordWork()
    busy.leave_loop()
    with pytest.raises(RecordsBesideLoop):
        validate(data, topic(**after), NOW, busy, checked)


def test_a_batch_is_recompressed_with_the_codec_that_the_topic_has_now() -> None:
    data = of_size(5000, CompressionType.GZIP)
    checked = beside(data, compression_type="zstd")
    for name in ("zstd", "lz4"):
        valid = validate(data, topic(compression_type=name), NOW, RecordWork(), checked)
        assert str(CompressionType(read_header(valid.batch).codec)) == name


# What there is no memory for


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")], ids=repr)
@pytest.mark.parametrize("where", ["decompress", "recompressed"])
def test_no_memory_is_no_fault_of_the_batch_nor_of_the_disk(
    error: Exception, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> bytearray:
        raise error

    monkeypatch.setattr(record_checks, where, refuse)
    for check in (on_loop, beside):
        with pytest.raises(KafkaError, match="memory") as caught:
            check(of_size(100, CompressionType.GZIP), compression_type="zstd")
        assert caught.value.retriable
        assert caught.value.code is not ErrorCode.KAFKA_STORAGE_ERROR


# KIP-467


def keyed(*records: tuple[bytes | None, int], codec: CompressionType = CompressionType.NONE) -> memoryview:
    """A batch of records with these keys and timestamps."""
    builder = BatchBuilder()
    for key, timestamp in records:
        builder.append(key, b"v", timestamp=timestamp)
    return memoryview(builder.build(codec=codec))


def refused(records: Sequence[tuple[bytes | None, int]], codec: CompressionType, **fields: Any) -> CorruptRecord:
    with pytest.raises(CorruptRecord) as caught:
        validate(keyed(*records, codec=codec), topic(**fields), NOW)
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
    assert len(refused([(None, NOW)] * 1500, CompressionType.NONE, compact=True).record_errors) == ERRORS_MAX


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.ZSTD])
def test_the_code_does_not_depend_on_how_many_are_named(codec: CompressionType) -> None:
    late = NOW + 2 * HOUR_MS
    keyless = [(None, NOW)] * ERRORS_MAX
    error = refused([*keyless, (b"k", late)], codec, compact=True)
    assert (error.code, len(error.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, ERRORS_MAX)
    error = refused([*keyless, (None, late)], codec, compact=True)
    assert (error.code, len(error.record_errors)) == (ErrorCode.INVALID_RECORD, ERRORS_MAX), "blamed for its key alone"


def test_what_cannot_be_read_names_no_record() -> None:
    sent = bytearray(batch("a", "b"))
    sent[-1] = 2  # a header that is not there
    data = memoryview(bytearray(sent))
    with pytest.raises(KafkaError) as caught:
        beside(data)
    assert isinstance(caught.value, InvalidRecord)
    assert not caught.value.record_errors
