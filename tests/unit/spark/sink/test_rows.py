"""From Arrow columns to parts of records: times, headers, and what no record can have."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from strandline.spark.sink.columns import SinkColumns
from strandline.spark.sink.errors import ColumnError
from strandline.spark.sink.rows import table_of

NOW_MS = 1_700_000_000_000
TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def table(**columns: pa.Array):
    names = list(columns)
    places = {name: names.index(name) if name in names else None for name in SinkColumns._fields}
    return table_of(pa.record_batch(columns), SinkColumns(**places), NOW_MS)


def test_columns_are_taken_as_they_are() -> None:
    value, key = pa.array([b"v", None]), pa.array(["k", None])
    topic, partition = pa.array(["t", "u"]), pa.array([1, None], pa.int32())
    made = table(topic=topic, key=key, value=value, partition=partition)
    assert (made.rows.value, made.rows.key, made.topic, made.partition) == (value, key, topic, partition)
    assert made.rows.headers is None
    assert made.rows.timestamp_ms.tolist() == [NOW_MS, NOW_MS]


def test_times_are_milliseconds_and_a_row_without_one_is_written_now() -> None:
    at = datetime(2026, 5, 4, 3, 2, 1, 999_999, tzinfo=UTC)
    made = table(value=pa.array([b"a", b"b"]), timestamp=pa.array([at, None], TIMESTAMP))
    assert made.rows.timestamp_ms.tolist() == [1_777_863_721_999, NOW_MS]
    assert made.rows.timestamp_ms.dtype == np.int64


def test_a_slice_of_a_batch_has_the_times_of_its_own_rows() -> None:
    times = pa.array([1_000, 2_000, 3_000], pa.int64()).cast(TIMESTAMP)
    batch = pa.record_batch({"value": pa.array([b"a", b"b", b"c"]), "timestamp": times}).slice(1, 2)
    made = table_of(batch, SinkColumns(0, None, None, None, None, 1), NOW_MS)
    assert made.rows.timestamp_ms.tolist() == [2, 3]


def test_a_time_before_1970_is_refused_by_its_column() -> None:
    times = pa.array([5_000_000, -1], pa.int64()).cast(TIMESTAMP)
    with pytest.raises(ColumnError, match=r"column 'timestamp' has 1969-12-31T23:59:59\.999; .* before 1970"):
        table(value=pa.array([b"a", b"b"]), timestamp=times)


def test_headers_stay_and_rows_may_have_none() -> None:
    headers = pa.array([None, [], [{"key": "h", "value": None}]], HEADERS)
    made = table(value=pa.array([b"a", b"b", b"c"]), headers=headers)
    assert made.rows.headers.equals(headers)


def test_headers_of_nobody_are_left_out() -> None:
    assert table(value=pa.array([b"a", b"b"]), headers=pa.array([None, []], HEADERS)).rows.headers is None


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"v"}])
def test_a_header_without_a_key_is_refused_by_its_column(header: dict[str, bytes | None] | None) -> None:
    headers = pa.array([[{"key": "h", "value": b"v"}, header]], HEADERS)
    with pytest.raises(ColumnError, match="column 'headers' has a header that is null or has no key"):
        table(value=pa.array([b"a"]), headers=headers)
