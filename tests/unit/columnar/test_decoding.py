"""The decoder beside the obvious one: a consumer that looks at one record at a time."""

# mypy: disable-error-code="arg-type"

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from strandline.client.core.completed_fetch import CompletedFetch
from strandline.columnar.columns import COLUMNS, arrow_schema
from strandline.columnar.decoding import Decoder
from strandline.records.errors import CorruptRecord
from tests.unit.columnar.logs import ALL_COLUMNS, NOW, WAYS, Log, Outcome, counted, logs, outcome, read

MICROSECONDS_MAX = ((1 << 63) - 1) // 1000 * 1000


def obvious(log: Log) -> list[dict[str, Any]]:
    """By our consumer, which knows nothing of columns."""
    fetched = CompletedFetch("t", 3, log.start, log.data, log.aborted, check_crcs=True, decompressed_bytes_max=1 << 24)
    records = fetched.take(1 << 30)
    assert fetched.error is None
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": min(record.timestamp * 1000, MICROSECONDS_MAX),
            "timestampType": record.timestamp_type,
            "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        }
        for record in records
        if record.offset < log.end
    ]


@settings(max_examples=100, deadline=None)
@given(logs())
def test_the_same_rows_as_one_record_at_a_time(log: Log) -> None:
    wanted = obvious(log)
    found = [read(way, *log) for way in WAYS]
    assert found[0] == found[1]
    assert found[0].rows == wanted
    assert found[0].error is None


@settings(max_examples=60, deadline=None)
@given(logs())
def test_small_bounds_cut_at_the_same_rows(log: Log) -> None:
    plain, compiled = (read(way, *log, rows_max=3, bytes_max=200) for way in WAYS)
    assert plain == compiled
    assert plain.rows == obvious(log)
    assert max(plain.counts, default=0) <= 3


def decode(data: bytes, start: int = 0, end: int = 1 << 62, **more: Any) -> Outcome:
    return outcome(Decoder("t", 3, ALL_COLUMNS, **more).decode(data, start, end, None))


def test_a_decoder_for_one_fetch_after_another() -> None:
    decoder = Decoder("t", 3, ("offset",))
    for base_offset in (0, 50):
        found = outcome(decoder.decode(counted(base_offset, 3), base_offset + 1, 1000, None))
        assert [row["offset"] for row in found.rows] == [base_offset + 1, base_offset + 2]


def test_all_that_is_before_a_corrupt_batch_comes_first() -> None:
    data = bytearray(counted(0, 3) + counted(3, 2) + counted(5, 2))
    data[-2] ^= 1  # within the last value
    found = decode(bytes(data))
    assert [row["offset"] for row in found.rows] == [0, 1, 2, 3, 4]
    assert found.error is not None
    assert "t-3: the batch at offset 5 cannot be read" in found.error
    assert len(decode(bytes(data), check_crcs=False).rows) == 7


def test_columns_as_asked_for_in_that_order() -> None:
    names = ["timestampType", "value", "offset"]
    (found,) = Decoder("t", 3, names).decode(counted(7, 2), 0, 100, None)
    assert found.schema == arrow_schema(names)
    assert found.to_pydict() == {"timestampType": [0, 0], "value": [b"7", b"8"], "offset": [7, 8]}


def test_the_schema_is_that_of_the_columns() -> None:
    (found,) = Decoder("t", 3, COLUMNS).decode(counted(0, 1), 0, 100, None)
    assert found.schema == arrow_schema(COLUMNS)
    assert found.column("timestamp").cast(pa.int64()).to_pylist() == [NOW * 1000]


def test_nothing_complete_is_nothing_to_show() -> None:
    for data in (b"", b"\0" * 11, counted(0, 1)[:-1]):
        assert decode(data) == Outcome([], [], None)


def test_any_buffer_will_do() -> None:
    data = counted(0, 3)
    for buffer in (data, bytearray(data), memoryview(data), memoryview(bytearray(b"x" + data))[1:]):
        assert sum(batch.num_rows for batch in Decoder("t", 3, COLUMNS).decode(buffer, 0, 100, None)) == 3


def test_rows_outlive_the_bytes_they_came_from() -> None:
    data = bytearray(counted(0, 2))
    (found,) = Decoder("t", 3, ("value",)).decode(data, 0, 100, None)
    data[:] = bytes(len(data))
    assert found.to_pydict() == {"value": [b"0", b"1"]}


def test_bounds_that_cannot_be() -> None:
    for bounds in ({"rows_max": 0}, {"bytes_max": 0}, {"bytes_max": 1 << 31}):
        with pytest.raises(ValueError):
            Decoder("t", 0, COLUMNS, **bounds)


def test_a_corrupt_record_is_an_error_of_the_records() -> None:
    with pytest.raises(CorruptRecord):
        list(Decoder("t", 0, COLUMNS).decode(b"\0" * 61, 0, 10, None))
