from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import ErrorCode
from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.header import BatchHeader, assign, crc_valid, ensure_valid, iterate, read_header


def batch_of(count: int = 3, **fields: int | bool | CompressionType) -> bytearray:
    builder = BatchBuilder()
    for index in range(count):
        builder.append(b"k%d" % index, b"v", timestamp=1000 + index)
    return builder.build(**fields)  # type: ignore[arg-type]


def test_fields_and_what_follows_from_them() -> None:
    batch = batch_of(
        base_offset=40,
        leader_epoch=7,
        producer_id=9,
        producer_epoch=2,
        base_sequence=5,
        codec=CompressionType.LZ4,
        transactional=True,
    )
    header = read_header(b"????" + batch, 4)
    assert header.size_bytes == len(batch) == header.length + 12
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 42, 43)
    assert (header.base_sequence, header.last_sequence) == (5, 7)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1002)
    assert (header.partition_leader_epoch, header.producer_id, header.producer_epoch) == (7, 9, 2)
    assert header.codec == CompressionType.LZ4
    assert header.is_transactional
    assert header.has_producer_id
    assert not header.is_control
    assert not header.is_log_append_time
    assert header.delete_horizon_ms is None


def test_every_named_position_is_where_the_struct_puts_it() -> None:
    fields = [field for field in vars(layout) if field.endswith("_AT") and field != "RECORDS_AT"]
    positions = sorted(getattr(layout, field) for field in fields)
    assert len(positions) == len(BatchHeader._fields)
    for index, position in enumerate(positions):
        header = [0] * len(positions)
        header[index] = 1
        raw = layout.HEADER.pack(*header)
        end = positions[index + 1] if index + 1 < len(positions) else layout.RECORDS_AT
        assert raw[position:end] == (1).to_bytes(end - position)


@pytest.mark.parametrize(
    ("base", "count", "last"), [(-1, 3, -1), (0, 1, 0), (2**31 - 1, 1, 2**31 - 1), (2**31 - 1, 2, 0), (2**31 - 2, 3, 0)]
)
def test_sequences_wrap_after_the_largest(base: int, count: int, last: int) -> None:
    assert read_header(batch_of(count, base_sequence=base, producer_id=1, producer_epoch=0)).last_sequence == last


def test_assign_leaves_the_crc_alone() -> None:
    frame = bytearray(b"frame") + batch_of()
    batch = memoryview(frame)[5:]
    before = read_header(batch)
    assign(batch, 123_456_789_012, 11)
    after = ensure_valid(batch)
    assert after == before._replace(base_offset=123_456_789_012, partition_leader_epoch=11)
    assert frame[:5] == b"frame"


def test_append_time_is_every_record_s_timestamp() -> None:
    batch = batch_of()
    layout.stamp_append_time(memoryview(batch), 5000)
    header = ensure_valid(batch)
    assert header.is_log_append_time
    assert header.max_timestamp == 5000
    assert header.base_timestamp == 1000
    assert [record.timestamp for record in decode(batch)] == [5000] * 3


def test_create_time_corrects_only_the_maximum() -> None:
    batch = batch_of()
    layout.stamp_append_time(batch, 5000)
    layout.stamp_create_time(batch, 1002)
    assert batch == batch_of()


def test_a_stamp_that_changes_nothing_does_not_hide_damage() -> None:
    batch = batch_of()
    batch[-1] ^= 1
    layout.stamp_create_time(batch, 1002)
    assert not crc_valid(batch)


@given(st.data())
def test_any_flipped_bit_under_the_crc_is_noticed(data: st.DataObject) -> None:
    batch = batch_of()
    bit = data.draw(st.integers(layout.CRC_AT * 8, len(batch) * 8 - 1))
    batch[bit // 8] ^= 1 << bit % 8
    assert not crc_valid(batch)
    with pytest.raises(CorruptRecord, match="CRC") as caught:
        ensure_valid(batch)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert caught.value.retriable


def test_a_batch_with_a_wrong_length() -> None:
    with pytest.raises(CorruptRecord, match="claims"):
        ensure_valid(batch_of() + b"\x00")
    with pytest.raises(CorruptRecord, match="claims"):
        ensure_valid(batch_of()[:-1])


def test_a_header_cut_short() -> None:
    with pytest.raises(CorruptRecord, match="61 bytes"):
        read_header(batch_of()[:60])
    assert not crc_valid(batch_of()[:60])


def test_iterate_over_batches_and_a_cut_tail() -> None:
    batches = [bytes(batch_of(count, base_offset=count * 10)) for count in (1, 2, 3)]
    whole = b"".join(batches)
    starts = [0, len(batches[0]), len(batches[0]) + len(batches[1])]
    for end in range(len(whole) + 1):
        complete = [start for start, batch in zip(starts, batches, strict=True) if start + len(batch) <= end]
        assert [position for position, _ in iterate(whole[:end])] == complete
    assert [header.base_offset for _, header in iterate(memoryview(whole), starts[1])] == [20, 30]


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_length_that_cannot_be(length: int) -> None:
    batch = batch_of()
    batch[8:12] = length.to_bytes(4, signed=True)
    with pytest.raises(CorruptRecord, match="less than a header"):
        list(iterate(batch))


@pytest.mark.parametrize(
    ("magic", "error"), [(0, InvalidRecord), (1, InvalidRecord), (3, CorruptRecord), (255, CorruptRecord)]
)
def test_another_magic(magic: int, error: type[CorruptRecord]) -> None:
    batch = batch_of()
    batch[layout.MAGIC_AT] = magic
    for read in (read_header, lambda buffer: list(iterate(buffer)), lambda buffer: list(iterate(buffer[:17]))):
        with pytest.raises(CorruptRecord) as caught:
            read(batch)
        assert type(caught.value) is error
