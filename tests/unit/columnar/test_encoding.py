"""Rows to batches, read again by those who look at one record at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.columnar.cells import Encoded, check_rows
from strandline.columnar.columns import TYPES
from strandline.columnar.compiled_records import CompiledRecords, RowSpans, compiled_partitions_of
from strandline.columnar.encoding import Encoder, Rows, partitions_of
from strandline.columnar.loading import kernels
from strandline.columnar.plain_records import PlainRecords, plain_partitions_of
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import RECORDS_AT, read_header
from strandline.records.partitioner import partition_for
from strandline.records.ready import ReadyBatch, stamp
from strandline.records.record import Record
from tests.unit.columnar.logs import NOW, record_lists

BINARY_TYPES = [pa.binary(), pa.large_binary(), pa.binary_view()]
STRING_TYPES = [pa.string(), pa.large_string(), pa.string_view()]


def rows_of(records: list[Record], kind: pa.DataType | None = None, headers: pa.DataType | None = None) -> Rows:
    as_lists = [[{"key": key, "value": value} for key, value in record.headers] for record in records]
    return Rows(
        pa.array([record.key for record in records], kind or pa.binary()),
        pa.array([record.value for record in records], kind or pa.binary()),
        pa.array(as_lists, headers or TYPES["headers"]),
        np.array([record.timestamp for record in records], np.int64),
    )


def encoder(bytes_max: int = 1 << 20, codec: CompressionType = CompressionType.NONE) -> Encoder:
    return Encoder(compression=codec, level=None, batch_bytes_max=bytes_max)


def read(batches: list[ReadyBatch]) -> list[list[Record]]:
    """The records of each, as a consumer sees them after the batch was sent."""
    found = []
    for batch in batches:
        stamp(batch, 7, 1, 100)
        header = read_header(batch.data)
        assert (header.base_offset, header.producer_id, header.base_sequence) == (0, 7, 100)
        assert header.size_bytes == len(batch.data)
        assert header.records_count == header.last_offset_delta + 1 == batch.count
        records = list(decode(batch.data))
        assert header.max_timestamp == batch.timestamp_max == max(record.timestamp for record in records)
        assert header.base_timestamp == records[0].timestamp
        found.append(records)
    return found


def numbered(records: list[Record]) -> list[Record]:
    return [record._replace(offset=i) for i, record in enumerate(records)]


@pytest.mark.parametrize("codec", CompressionType)
def test_what_goes_in_comes_out(codec: CompressionType) -> None:
    records = [
        Record(0, NOW, b"key", b"value", ()),
        Record(0, NOW + 1, None, b"no key", ()),
        Record(0, NOW - 5, b"tombstone", None, ()),
        Record(0, -1, None, None, ()),
        Record(0, NOW, b"", b"", (("trace", b"1"), ("trace", b"2"), ("nothing", None), ("", b""), ("키", b"\xff"))),
        Record(0, 1 << 62, b"large", bytes(range(256)) * 1000, ()),
    ]
    (found,) = read(list(encoder(codec=codec).encode(rows_of(records), None)))
    assert found == numbered(records)


def both(rows: Rows, picked: np.ndarray[Any, Any] | None, bytes_max: int) -> list[Encoded]:
    compiled = kernels("writing")
    assert compiled is not None
    numbers = check_rows(rows, picked)
    plain = list(PlainRecords(rows, numbers, bytes_max))
    assert list(CompiledRecords(RowSpans(rows), numbers, bytes_max, compiled)) == plain
    return plain


@settings(max_examples=80, deadline=None)
@given(record_lists, st.data(), st.integers(1, 1500))
def test_the_same_bytes_both_ways(records: list[Record], data: st.DataObject, bytes_max: int) -> None:
    picked = data.draw(st.none() | st.lists(st.integers(0, len(records) - 1), max_size=20))
    rows = rows_of(records)
    encoded = both(rows, None if picked is None else np.array(picked, np.int32), bytes_max)
    wanted = records if picked is None else [records[number] for number in picked]
    batches = list(encoder(bytes_max).encode(rows, None if picked is None else np.array(picked, np.int64)))
    assert [len(batch.data) for batch in batches] == [len(each.data) for each in encoded]
    found = read(batches)
    assert [record._replace(offset=0) for records in found for record in records] == wanted
    for records in found:
        assert [record.offset for record in records] == list(range(len(records)))
    assert all(len(each.data) <= bytes_max or each.records_count == 1 for each in encoded)


@settings(max_examples=30, deadline=None)
@given(record_lists)
def test_the_same_bytes_as_the_builder(records: list[Record]) -> None:
    builder = BatchBuilder()
    for record in records:
        builder.append(record.key, record.value, record.headers, record.timestamp)
    (batch,) = encoder().encode(rows_of(records), None)
    stamp(batch, -1, -1, -1)
    assert batch.data == builder.build()


def test_a_batch_is_filled_to_its_bound() -> None:
    records = [Record(0, NOW, None, b"v" * 90) for _ in range(1000)]
    (each,) = (len(batch.data) - RECORDS_AT for batch in encoder().encode(rows_of(records[:1]), None))
    sizes = [batch.count for batch in encoder(RECORDS_AT + 10 * each).encode(rows_of(records), None)]
    assert sizes == [10] * 100
    sizes = [batch.count for batch in encoder(RECORDS_AT + 10 * each - 1).encode(rows_of(records), None)]
    assert sizes == [9] * 111 + [1]


def test_a_record_beyond_the_bound_goes_alone() -> None:
    records = [Record(0, NOW, None, b"v" * size) for size in (10, 10, 5000, 10)]
    assert [batch.count for batch in encoder(200).encode(rows_of(records), None)] == [2, 1, 1]


@pytest.mark.parametrize("kind", BINARY_TYPES + STRING_TYPES, ids=str)
def test_every_layout_of_bytes_and_slices_of_it(kind: pa.DataType) -> None:
    is_text = kind in STRING_TYPES
    cells = [None, "", "a", "läng" * 9, None, "z"]
    column = pa.array([cell if cell is None or is_text else cell.encode() for cell in cells], kind)
    wanted = [None if cell is None else cell.encode() for cell in cells]
    for first, last in ((0, 6), (1, 4), (3, 6), (4, 5), (2, 2)):
        part = column.slice(first, last - first)
        rows = Rows(part, part, None, np.zeros(last - first, np.int64))
        both(rows, None, 1000)
        found = [record for records in read(list(encoder().encode(rows, None))) for record in records]
        assert [(record.key, record.value) for record in found] == [(cell, cell) for cell in wanted[first:last]]
        assert partitions_of(part, 7).tolist() == plain_partitions_of(part, 7).tolist()


@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_slices_of_headers(make: Callable[[pa.DataType], pa.DataType]) -> None:
    kind = make(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    cells = [[("a", b"1")], None, [], [("b", None), ("c", b"")], [("d", b"4")]]
    column = pa.array(
        [None if cell is None else [dict(zip(("key", "value"), h, strict=True)) for h in cell] for cell in cells], kind
    )
    values = pa.array([b""] * 5)
    for first, last in ((0, 5), (1, 4), (3, 5)):
        count = last - first
        rows = Rows(None, values.slice(0, count), column.slice(first, count), np.zeros(count, np.int64))
        both(rows, None, 1000)
        (found,) = read(list(encoder().encode(rows, None)))
        assert [list(record.headers) for record in found] == [cell or [] for cell in cells[first:last]]


def test_headers_that_cannot_be_sent() -> None:
    kind = TYPES["headers"]
    for headers in ([None], [{"key": None, "value": b"1"}]):
        rows = Rows(None, pa.array([b"", b""]), pa.array([[], headers], kind), np.zeros(2, np.int64))
        with pytest.raises(ValueError, match="cannot be null"):
            encoder().encode(rows, None)
        without = Rows(None, rows.value.slice(0, 1), pa.array([[], headers], kind).slice(0, 1), np.zeros(1, np.int64))
        assert len(list(encoder().encode(without, None))) == 1


def test_no_rows_are_no_batches() -> None:
    rows = rows_of([])
    assert both(rows, None, 1000) == []
    assert list(encoder().encode(rows_of([Record(0, 0, None, None)]), np.array([], np.int64))) == []
    assert partitions_of(None, 3).tolist() == partitions_of(pa.array([], pa.binary()), 3).tolist() == []


NOTHING = np.zeros(1, np.int64)
ONE = pa.array([b"1"])


@pytest.mark.parametrize(
    ("rows", "picked", "match"),
    [
        (Rows(pa.array([1]), ONE, None, NOTHING), None, "A key is binary"),
        (Rows(None, pa.array([1.5]), None, NOTHING), None, "A value is binary"),
        (Rows(None, ONE, pa.array([["x"]]), NOTHING), None, "Headers are a list"),
        (Rows(pa.array([b"", b""]), ONE, None, NOTHING), None, "'key' has 2 rows"),
        (Rows(None, ONE, None, np.zeros(2, np.int64)), None, "'timestamp_ms' has 2 rows"),
        (Rows(None, ONE, None, NOTHING), [1], "not one of 0-0"),
        (Rows(None, ONE, None, NOTHING), [-1], "not one of 0-0"),
        (Rows(None, ONE, None, NOTHING - 2), None, "not -2"),
        (Rows(None, ONE, None, NOTHING + (1 << 62) + 1), None, "A timestamp is"),
    ],
)
def test_rows_that_cannot_be(rows: Rows, picked: list[int] | None, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        encoder().encode(rows, None if picked is None else np.array(picked))


def test_bounds_that_cannot_be() -> None:
    for bytes_max in (0, 1 << 31):
        with pytest.raises(ValueError):
            encoder(bytes_max)
    with pytest.raises(ValueError):
        partitions_of(ONE, 0)
    with pytest.raises(ValueError, match="A key is binary"):
        partitions_of(pa.array([1]), 1)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, 100) | st.just((1 << 31) - 1))
def test_keys_land_where_the_partitioner_puts_them(keys: list[bytes | None], partitions_count: int) -> None:
    compiled = kernels("writing")
    assert compiled is not None
    column = pa.array(keys, pa.binary())
    wanted = [-1 if key is None else partition_for(key, partitions_count) for key in keys]
    found = compiled_partitions_of(column, partitions_count, compiled)
    assert found.dtype == np.int32
    assert found.tolist() == plain_partitions_of(column, partitions_count).tolist() == wanted
