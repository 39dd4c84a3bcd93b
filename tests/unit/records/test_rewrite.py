from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch

from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, decode, payload_of
from strandline.records.compression import CompressionType
from strandline.records.header import ensure_valid
from strandline.records.record import Record
from strandline.records.rewrite import recompressed, retain


def original(records: list[Record], codec: CompressionType = CompressionType.NONE) -> bytearray:
    builder = BatchBuilder()
    for record in records:
        builder.append(record.key, record.value, record.headers, record.timestamp)
    return builder.build(
        base_offset=0,
        leader_epoch=4,
        producer_id=8,
        producer_epoch=1,
        base_sequence=2**31 - 2,
        codec=codec,
        transactional=True,
    )


def recompress(batch: bytearray, codec: CompressionType, level: int | None = None) -> bytearray:
    header = ensure_valid(batch)
    return recompressed(header, payload_of(header, batch, 4 << 20), codec, level)


@pytest.mark.parametrize("before", list(CompressionType))
@pytest.mark.parametrize("after", list(CompressionType))
def test_recompressing_changes_the_codec_only(
    before: CompressionType, after: CompressionType, varied: list[Record]
) -> None:
    batch = original(varied, before)
    changed = recompress(batch, after)
    was, now = ensure_valid(batch), ensure_valid(changed)
    assert now.codec == after
    assert now._replace(length=0, crc=0, attributes=0) == was._replace(length=0, crc=0, attributes=0)
    assert now.attributes & ~layout.CODEC_MASK == was.attributes & ~layout.CODEC_MASK
    assert list(decode(changed)) == varied
    assert recompress(changed, CompressionType.NONE) == original(varied)


def test_recompressing_keeps_append_time() -> None:
    batch = original([Record(0, 5, b"k", b"v")])
    layout.stamp_append_time(batch, 99)
    changed = recompress(batch, CompressionType.ZSTD, 19)
    assert [record.timestamp for record in decode(changed)] == [99]


@pytest.mark.parametrize("codec", list(CompressionType))
def test_retained_records_keep_their_offsets_and_the_batch_its_range(
    codec: CompressionType, varied: list[Record]
) -> None:
    batch = original(varied, codec)
    was = ensure_valid(batch)
    left = [record for record in varied if record.offset in (1, 2, 5)]
    kept = retain(was, left)
    now = ensure_valid(kept)
    assert list(decode(kept)) == left
    assert (now.base_offset, now.last_offset, now.last_sequence) == (
        was.base_offset,
        was.last_offset,
        was.last_sequence,
    )
    assert (now.records_count, now.max_timestamp, now.codec) == (3, left[0].timestamp, codec)
    assert (now.producer_id, now.is_transactional, now.delete_horizon_ms) == (8, True, None)


def test_a_delete_horizon_replaces_the_base_timestamp_but_no_record_s() -> None:
    records = [Record(0, 100, b"a", b"1"), Record(1, 103, b"b", None)]
    first = retain(ensure_valid(original(records)), records, delete_horizon_ms=1_000_000)
    header = ensure_valid(first)
    assert (header.delete_horizon_ms, header.base_timestamp, header.max_timestamp) == (1_000_000, 1_000_000, 103)
    assert list(decode(first)) == records
    assert [record.timestamp for record in AiokafkaBatch(first)] == [100, 103]
    again = retain(header, records[1:], delete_horizon_ms=2_000_000)
    assert ensure_valid(again).delete_horizon_ms == 1_000_000
    assert list(decode(again)) == records[1:]


def test_append_time_survives_compaction() -> None:
    batch = original([Record(0, 100, b"a", b"1"), Record(1, 103, b"b", None)])
    layout.stamp_append_time(batch, 500)
    records = list(decode(batch))
    kept = retain(ensure_valid(batch), records[:1], delete_horizon_ms=900)
    assert ensure_valid(kept).max_timestamp == 500
    assert list(decode(kept)) == records[:1]


def test_an_emptied_batch_keeps_the_producer_s_last_sequence(varied: list[Record]) -> None:
    was = ensure_valid(original(varied, CompressionType.SNAPPY))
    emptied = retain(was, [])
    now = ensure_valid(emptied)
    assert len(emptied) == layout.RECORDS_AT
    assert (now.records_count, now.codec, now.base_timestamp) == (0, CompressionType.NONE, -1)
    assert (now.last_offset, now.last_sequence, now.max_timestamp) == (
        was.last_offset,
        was.last_sequence,
        was.max_timestamp,
    )
    assert list(decode(emptied)) == []
