"""Rows as a writer gets them from Arrow: keys, values, headers, timestamps.

Always true: rows that passed `check_rows` have columns of one length, of types that are bytes, timestamps that Kafka takes and
row numbers that exist: whoever works on them need not look again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strandline.records.header import NO_TIMESTAMP

TIMESTAMP_MAX_MS: Final = 1 << 62
"""So that the difference of two stays within 64 bits; it is 146 million years from now."""

Numbers = npt.NDArray[np.int64]
Partitions = npt.NDArray[np.int32]
"""Of rows, by their numbers."""
Picked = npt.NDArray[np.signedinteger]
"""The numbers of rows."""


class Rows(NamedTuple):
    """`key` and `value` are binary or string in any of Arrow's layouts; nulls are allowed."""

    key: pa.Array | None
    value: pa.Array
    headers: pa.Array | None
    """Lists of structs of a string key and a binary value; null and empty are the same."""
    timestamp_ms: Numbers


class Encoded(NamedTuple):
    """The records of one batch, with room for its header in front."""

    data: bytearray
    records_count: int
    base_timestamp: int
    max_timestamp: int


def check_rows(rows: Rows, picked: Picked | None) -> Numbers:
    """The row numbers to encode, or ValueError."""
    count = len(rows.value)
    for name, column in (("key", rows.key), ("value", rows.value)):
        if column is not None and not is_bytes(column.type):
            raise ValueError(f"A {name} is binary or a string, not {column.type}")
    if rows.headers is not None and not is_headers(rows.headers.type):
        raise ValueError(f"Headers are a list of structs of key and value, not {rows.headers.type}")
    for name, size in (
        ("key", count if rows.key is None else len(rows.key)),
        ("headers", count if rows.headers is None else len(rows.headers)),
        ("timestamp_ms", len(rows.timestamp_ms)),
    ):
        if size != count:
            raise ValueError(f"There are {count} values, but '{name}' has {size} rows")
    if picked is None:
        numbers: Numbers = np.arange(count, dtype=np.int64)
        timestamps = rows.timestamp_ms
    else:
        numbers = np.ascontiguousarray(picked, np.int64)
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < count:
            raise ValueError(f"A row number is not one of 0-{count - 1}")
        timestamps = rows.timestamp_ms[numbers]
    for timestamp in (int(timestamps.min()), int(timestamps.max())) if len(timestamps) else ():
        if not NO_TIMESTAMP <= timestamp <= TIMESTAMP_MAX_MS:
            raise ValueError(f"A timestamp is -1 (none) or 0-{TIMESTAMP_MAX_MS}, not {timestamp}")
    return numbers


def is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(kind)
        or types.is_string(kind)
        or types.is_large_binary(kind)
        or types.is_large_string(kind)
        or types.is_binary_view(kind)
        or types.is_string_view(kind)
    )


def is_headers(kind: pa.DataType) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = kind.value_type.fields
    return [field.name for field in fields] == ["key", "value"] and all(is_bytes(field.type) for field in fields)
