"""The columns that a record becomes, under the names and types of Spark's Kafka connector.

Always true: `arrow_schema` is what Spark itself expects for these columns, so that a batch of it passes without a cast.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from strandline.columnar.kernels.calls import HEADER_BYTES
from strandline.records.record import Record

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS: Final = "headers"

HEADER_TYPE: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
TYPES: Final[dict[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    HEADERS: pa.list_(pa.field("element", HEADER_TYPE)),
}
"""By name. The element of a list is called as Spark calls it."""

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

ROWS_MAX: Final = 1 << 20
BYTES_MAX: Final = 1 << 30
"""Offsets within a column have 32 bits."""
_HELD_BYTES_RATIO: Final = 32

MICROSECONDS_MAX: Final = (1 << 63) - 1
MILLISECONDS_MAX: Final = MICROSECONDS_MAX // 1000


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    """These columns in this order; a name that is none of ours is a ValueError."""
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise ValueError(f"There is no column '{unknown[0]}', only {', '.join(TYPES)}")
    return pa.schema([(name, TYPES[name]) for name in names])


def clamp_milliseconds(timestamp_ms: int) -> int:
    """The nearest timestamp that microseconds in 64 bits can tell: producers may write any, and rows must stay readable."""
    return max(-MILLISECONDS_MAX, min(timestamp_ms, MILLISECONDS_MAX))


class Layout:
    """What the RecordBatches of one partition look like: which columns, and how much of them at a time."""

    def __init__(self, topic: str, partition: int, columns: Sequence[str], rows_max: int, bytes_max: int) -> None:
        if not 0 < rows_max <= ROWS_MAX or not 0 < bytes_max <= BYTES_MAX:
            raise ValueError(
                f"A RecordBatch has 1-{ROWS_MAX} rows and 1-{BYTES_MAX} bytes, not {rows_max}, {bytes_max}"
            )
        self.schema = arrow_schema(columns)
        self.rows_max = rows_max
        self.bytes_max = bytes_max
        self.held_bytes_max = _HELD_BYTES_RATIO * bytes_max
        """Of decompressed batches that rows are taken from: without a column for what is large in them, many would be held."""
        self.has_key = "key" in columns
        self.has_value = "value" in columns
        self.has_headers = HEADERS in columns
        self._constants = {
            kind: {
                name: _repeated(value, TYPES[name], rows_max)
                for name, value in (("topic", topic), ("partition", partition), ("timestampType", kind))
                if name in columns
            }
            for kind in (CREATE_TIME, LOG_APPEND_TIME)
        }

    def constants(self, timestamp_type: int) -> dict[str, pa.Array]:
        """The columns that are the same in every row, `rows_max` long: made once, and sliced for each RecordBatch."""
        return self._constants[timestamp_type]

    def size_bytes(self, record: Record) -> int:
        """What a record counts against `bytes_max`: keys, values and headers, as far as there is a column for them."""
        size_bytes = 0
        if self.has_key and record.key is not None:
            size_bytes += len(record.key)
        if self.has_value and record.value is not None:
            size_bytes += len(record.value)
        if self.has_headers:
            size_bytes += sum(HEADER_BYTES + len(key.encode()) + len(value or b"") for key, value in record.headers)
        return size_bytes


@lru_cache(maxsize=64)
def _repeated(value: object, kind: pa.DataType, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, kind), count)
