from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import default_records as kafka_python_records

from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.control import ControlRecordType, control_key, end_txn_marker, read_control_type
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import ensure_valid, read_header
from strandline.records.record import Record

ALL = list(CompressionType)
# kafka-python finds a library of its own only for gzip here; aiokafka has all four, in C and in Python.
JUDGES = [
    *(
        (kafka_python_records.DefaultRecordBatchBuilder, kafka_python_records.DefaultRecordBatch, codec)
        for codec in ALL[:2]
    ),
    *((aiokafka_records.DefaultRecordBatchBuilder, aiokafka_records.DefaultRecordBatch, codec) for codec in ALL),
    *((aiokafka_records._DefaultRecordBatchBuilderPy, aiokafka_records._DefaultRecordBatchPy, codec) for codec in ALL),
]


def built(records: Iterable[Record], **fields: Any) -> bytearray:
    builder = BatchBuilder()
    for record in records:
        builder.append(record.key, record.value, record.headers, record.timestamp)
    return builder.build(**fields)


def seen_by(reader: Callable[[bytearray], Any], batch: bytearray) -> list[Record]:
    judged = reader(batch)
    assert judged.validate_crc()
    return [Record(r.offset, r.timestamp, r.key, r.value, tuple(tuple(h) for h in r.headers)) for r in judged]


@pytest.mark.parametrize("codec", ALL)
def test_round_trip(codec: CompressionType, varied: list[Record]) -> None:
    batch = built(varied, codec=codec)
    for buffer in (batch, bytes(batch), memoryview(batch)):
        assert list(decode(buffer)) == varied
    assert (read_header(batch).codec, read_header(batch).records_count) == (codec, len(varied))
    assert read_header(batch).max_timestamp == max(record.timestamp for record in varied)


@pytest.mark.parametrize(("_builder", "reader", "codec"), JUDGES)
def test_others_read_what_we_write(_builder: Any, reader: Any, codec: CompressionType, varied: list[Record]) -> None:
    batch = built(varied, codec=codec)
    assert seen_by(reader, batch) == varied
    layout.stamp_append_time(batch, 77)
    assert seen_by(reader, batch) == [record._replace(timestamp=77) for record in varied]


@pytest.mark.parametrize(("builder", "_reader", "codec"), JUDGES)
def test_we_read_what_others_write(builder: Any, _reader: Any, codec: CompressionType, varied: list[Record]) -> None:
    judge = builder(2, int(codec), True, 12, 3, 40, 10 << 20)
    for record in varied:
        judge.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    batch = bytes(judge.build())
    assert list(decode(batch)) == varied
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.is_transactional) == (
        12,
        3,
        40,
        True,
    )


def test_uncompressed_bytes_are_the_same_as_theirs(varied: list[Record]) -> None:
    judge = aiokafka_records.DefaultRecordBatchBuilder(2, 0, False, 12, 3, 40, 10 << 20)
    for record in varied:
        judge.append(record.offset, record.timestamp, record.key, record.value, list(record.headers))
    theirs = bytearray(judge.build())
    layout.assign(theirs, 0, layout.NO_PARTITION_LEADER_EPOCH)
    assert built(varied, producer_id=12, producer_epoch=3, base_sequence=40) == theirs


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=20),
            st.none() | st.binary(max_size=200),
            st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
            st.integers(-1, 2**50),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(ALL),
    st.integers(0, 2**62),
)
def test_any_batch_round_trip(fields: list[Any], codec: CompressionType, base_offset: int) -> None:
    builder = BatchBuilder()
    for index, field in enumerate(fields):
        assert builder.append(*field) == index
    batch = builder.build(codec=codec, base_offset=base_offset)
    if codec is CompressionType.NONE:
        assert builder.size_bytes == len(batch)
    assert list(decode(batch)) == [
        Record(base_offset + index, timestamp, key, value, tuple(headers))
        for index, (key, value, headers, timestamp) in enumerate(fields)
    ]


def test_a_builder_can_build_again_under_another_sequence() -> None:
    builder = BatchBuilder()
    builder.append(b"k", b"v")
    first, second = (builder.build(producer_id=1, producer_epoch=0, base_sequence=sequence) for sequence in (4, 9))
    assert [read_header(batch).base_sequence for batch in (first, second)] == [4, 9]
    assert list(decode(first)) == list(decode(second))


def test_a_builder_refuses_a_negative_timestamp() -> None:
    with pytest.raises(ValueError, match="-2"):
        BatchBuilder().append(None, None, timestamp=-2)


def test_a_transaction_marker() -> None:
    builder = BatchBuilder()
    builder.append(control_key(ControlRecordType.COMMIT), end_txn_marker(6), timestamp=5)
    batch = builder.build(producer_id=3, producer_epoch=1, transactional=True, control=True)
    header = ensure_valid(batch)
    assert header.is_control
    assert header.is_transactional
    assert header.last_sequence == -1
    (record,) = decode(batch)
    assert read_control_type(record.key) is ControlRecordType.COMMIT
    assert aiokafka_records.DefaultRecordBatch(batch).is_control_batch


def test_decode_checks_the_crc_first_unless_told_not_to(varied: list[Record]) -> None:
    batch = built(varied)
    batch[-2] ^= 1
    with pytest.raises(CorruptRecord, match="CRC"):
        decode(batch)
    assert len(list(decode(batch, check_crc=False))) == len(varied)


@pytest.mark.parametrize("codec", ALL[1:])
def test_decode_is_bounded(codec: CompressionType, varied: list[Record]) -> None:
    batch = built(varied, codec=codec)
    with pytest.raises(InvalidRecord):
        decode(batch, max_bytes=1 << 20)


def test_an_emptied_batch_decodes_to_nothing_even_with_a_codec() -> None:
    batch = built([Record(0, 1, None, None)])[: layout.RECORDS_AT]
    for attributes in (0, CompressionType.ZSTD):
        header = read_header(batch)._replace(length=layout.RECORDS_AT - 12, attributes=attributes, records_count=0)
        layout.HEADER.pack_into(batch, 0, *header)
        layout.seal(batch)
        assert list(decode(batch)) == []
