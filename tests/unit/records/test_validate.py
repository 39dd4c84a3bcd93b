from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, join
from strandline.records.compression import CompressionType
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import read_header
from strandline.records.record import Record, encode_record
from strandline.records.validate import RECORD_ERRORS_MAX, ValidatedRecords, validate_records


def batch_of(records: list[tuple[bytes | None, int]], codec: CompressionType = CompressionType.NONE) -> bytearray:
    builder = BatchBuilder()
    for key, timestamp in records:
        builder.append(key, b"value", timestamp=timestamp)
    return builder.build(base_offset=100, codec=codec)


def with_records(records: list[Record], **fields: int) -> bytearray:
    """A batch whose header says what `fields` say, whatever the records are."""
    payload = b"".join(encode_record(record.offset, record.timestamp, record.key, record.value) for record in records)
    header = read_header(batch_of([(b"k", 0)]))._replace(
        base_offset=0, records_count=len(records), last_offset_delta=len(records) - 1
    )
    return join(header._replace(**fields), payload)


def check(batch: bytearray, require_keys: bool = False, max_decompressed_bytes: int = 1 << 20) -> ValidatedRecords:
    return validate_records(batch, require_keys=require_keys, max_decompressed_bytes=max_decompressed_bytes)


@pytest.mark.parametrize("codec", list(CompressionType))
def test_timestamps_found_inside(codec: CompressionType) -> None:
    batch = batch_of([(b"a", 50), (b"b", 20), (b"c", -1), (b"d", 90), (b"e", 90)], codec)
    assert check(batch, require_keys=True) == ValidatedRecords(20, 90, 3)


def test_no_timestamp_at_all() -> None:
    assert check(batch_of([(b"a", -1), (b"b", -1)])) == ValidatedRecords(-1, -1, 0)


def test_append_time_is_all_there_is() -> None:
    batch = batch_of([(b"a", 50), (b"b", 60)])
    layout.stamp_append_time(batch, 70)
    assert check(batch) == ValidatedRecords(70, 70, 0)


def test_a_compacted_topic_names_each_record_without_a_key() -> None:
    batch = batch_of([(b"a", 1), (None, 1), (b"", 1), (None, 1)])
    check(batch)
    with pytest.raises(InvalidRecord) as caught:
        check(batch, require_keys=True)
    assert caught.value.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in caught.value.record_errors] == [1, 3]


def test_the_blame_is_bounded() -> None:
    with pytest.raises(InvalidRecord) as caught:
        check(batch_of([(None, 1)] * 500), require_keys=True)
    assert len(caught.value.record_errors) == RECORD_ERRORS_MAX


@pytest.mark.parametrize("deltas", [[0, 2], [1, 2], [1, 0], [0, 0], [0, -1]])
def test_offset_deltas_out_of_order(deltas: list[int]) -> None:
    with pytest.raises(InvalidRecord, match="Offset delta"):
        check(with_records([Record(delta, 0, b"k", b"v") for delta in deltas]))


@pytest.mark.parametrize("last_offset_delta", [0, 2, -1])
def test_a_last_offset_delta_that_is_not_the_last(last_offset_delta: int) -> None:
    batch = with_records([Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")], last_offset_delta=last_offset_delta)
    with pytest.raises(InvalidRecord, match="last offset delta"):
        check(batch)


@pytest.mark.parametrize("count", [1, 3, -1])
def test_a_count_that_is_not_there(count: int) -> None:
    with pytest.raises(InvalidRecord):
        check(with_records([Record(0, 0, b"k", b"v"), Record(1, 0, b"k", b"v")], records_count=count))


def test_a_compressed_batch_is_opened_within_the_bound() -> None:
    batch = batch_of([(bytes(1 << 20), 1)], CompressionType.ZSTD)
    check(batch, max_decompressed_bytes=(1 << 20) + 50)
    with pytest.raises(InvalidRecord):
        check(batch, max_decompressed_bytes=1 << 20)


def test_an_unknown_codec() -> None:
    with pytest.raises(CorruptRecord) as caught:
        check(with_records([Record(0, 0, b"k", b"v")], attributes=6))
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
