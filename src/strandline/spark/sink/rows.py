"""One Arrow batch of a task, as parts of records.

Always true: what comes out can be encoded: every header has a key, and every timestamp is one that a log can hold. Columns
are taken as they are, without a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from strandline.columnar.encoding import Rows
from strandline.spark.sink.errors import ColumnError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from strandline.spark.sink.columns import SinkColumns

US_PER_MS = 1000


class SinkRows(NamedTuple):
    """Rows, with the columns that name their topic and partition."""

    rows: Rows
    topic: pa.Array | None
    partition: pa.Array | None


def table_of(batch: pa.RecordBatch, columns: SinkColumns, now_ms: int) -> SinkRows:
    def column(index: int | None) -> pa.Array | None:
        return None if index is None else batch.column(index)

    headers = column(columns.headers)
    if headers is not None:
        headers = _checked_headers(headers)
    timestamp_ms = _timestamps(column(columns.timestamp), batch.num_rows, now_ms)
    rows = Rows(column(columns.key), batch.column(columns.value), headers, timestamp_ms)
    return SinkRows(rows, column(columns.topic), column(columns.partition))


def _checked_headers(headers: pa.Array) -> pa.Array | None:
    elements = headers.flatten()  # only those of rows that have some
    if len(elements) == 0:
        return None
    if elements.null_count or elements.field(0).null_count:
        raise ColumnError("column 'headers' has a header that is null or has no key; a header's key is a string")
    return headers


def _timestamps(column: pa.Array | None, count: int, now_ms: int) -> NDArray[np.int64]:
    """Milliseconds, cut down to them as a consumer would see them. A row without a time is written now."""
    if column is None:
        return np.full(count, now_ms, dtype=np.int64)
    microseconds = column.cast(pa.int64()).fill_null(now_ms * US_PER_MS).to_numpy()
    timestamp_ms: NDArray[np.int64] = np.floor_divide(microseconds, US_PER_MS)
    if count and int(timestamp_ms.min()) < 0:
        worst = np.datetime64(int(timestamp_ms.min()), "ms")
        raise ColumnError(f"column 'timestamp' has {worst}; a record's timestamp is not before 1970-01-01")
    return timestamp_ms
