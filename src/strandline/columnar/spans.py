"""Where the cells of an Arrow column are: one stretch of bytes, and for each row its start and size in it.

Always true: every span lies within the bytes; a null has the size -1. Arrow's binary and string types, in all of their layouts,
become this one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strandline.columnar.cells import Numbers

_NOTHING = pa.py_buffer(b"")


class Spans(NamedTuple):
    data: pa.Buffer
    starts: Numbers
    sizes: Numbers


class HeaderSpans(NamedTuple):
    """The headers of row i are `counts[i]` of all the keys and values, from `starts[i]` on."""

    starts: Numbers
    counts: Numbers
    keys: Spans
    values: Spans


def spans_of(column: pa.Array) -> Spans:
    kind = column.type
    if pa.types.is_binary_view(kind) or pa.types.is_string_view(kind):
        kind = pa.large_binary()
        column = pa.array(column.to_pylist(), kind)
    if not len(column):
        return no_spans(0)
    is_large = pa.types.is_large_binary(kind) or pa.types.is_large_string(kind)
    _, offsets, data = column.buffers()
    ends = _slice(offsets, np.int64 if is_large else np.int32, column)
    starts, sizes = ends[:-1], np.diff(ends)
    data = _NOTHING if data is None else data
    if int(sizes.min()) < 0 or int(starts[0]) < 0 or int(ends[-1]) > data.size:
        raise ValueError("The column's offsets lead out of its data")
    return Spans(data, starts, _without_nulls(sizes, column, -1))


def no_spans(count: int) -> Spans:
    """A column that is not there: all nulls."""
    return Spans(_NOTHING, np.zeros(count, np.int64), np.full(count, -1, np.int64))


def header_spans_of(column: pa.Array | None, count: int) -> HeaderSpans:
    if column is None or not count:
        return HeaderSpans(np.zeros(count, np.int64), np.zeros(count, np.int64), no_spans(0), no_spans(0))
    is_large = pa.types.is_large_list(column.type)
    ends = _slice(column.buffers()[1], np.int64 if is_large else np.int32, column)
    starts, counts = ends[:-1], np.diff(ends)
    headers = column.values
    if int(counts.min()) < 0 or int(starts[0]) < 0 or int(ends[-1]) > len(headers):
        raise ValueError("The offsets of the headers lead out of them")
    counts = _without_nulls(counts, column, 0)
    keys = headers.field(0)
    if (headers.null_count or keys.null_count) and _has_null(headers, keys, starts, counts):
        raise ValueError("A header and its key cannot be null")
    return HeaderSpans(starts, counts, spans_of(keys), spans_of(headers.field(1)))


def _has_null(headers: pa.Array, keys: pa.Array, starts: Numbers, counts: Numbers) -> bool:
    """In a header of some row: what lies between the rows, or under a null one, is nobody's."""
    nulls = _nulls(headers) | _nulls(keys)
    before = np.concatenate(([0], np.cumsum(nulls)))
    return bool((before[starts + counts] - before[starts]).any())


def _slice(offsets: pa.Buffer, kind: type[np.int32 | np.int64], column: pa.Array) -> Numbers:
    return np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1].astype(np.int64)


def _without_nulls(sizes: Numbers, column: pa.Array, size_of_null: int) -> Numbers:
    if column.null_count:
        sizes[_nulls(column)] = size_of_null
    return sizes


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.bool_)
