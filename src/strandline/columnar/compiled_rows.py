"""Arrow rows out of open batches, compiled: the same rows in the same RecordBatches as `plain_rows`, at many times the speed.

A kernel walks the batches of a stretch, checks every record and notes where its parts are; when a RecordBatch is full, other
kernels copy the parts to where Arrow wants them, each byte once.

Always true: the columns are made exactly as large as what was counted, and what a RecordBatch holds belongs to nobody else.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from strandline.columnar.batches import FetchedBatches, OpenBatch
from strandline.columnar.cells import Numbers
from strandline.columnar.columns import CREATE_TIME, HEADER_TYPE, HEADERS, LOG_APPEND_TIME, TYPES, Layout
from strandline.columnar.kernels import calls
from strandline.columnar.kernels.machine_code import Kernel
from strandline.columnar.stretches import Stretch, Stretches
from strandline.records.errors import CorruptRecord, InvalidRecord
from strandline.records.record import read_records

_INT64_BYTES = 8


class _Run(NamedTuple):
    """Rows from `first` to before `last`, whose parts lie in the same bytes."""

    data: pa.Buffer
    first: int
    last: int


class CompiledRows:
    def __init__(self, layout: Layout, batches: FetchedBatches, kernels: Mapping[str, Kernel]) -> None:
        self._layout = layout
        self._batches = batches
        self._stretches = Stretches(batches, kernels["scan_batches"])
        self._index_records = kernels["index_records"]
        self._gather = kernels["gather"]
        self._index_headers = kernels["index_headers"]
        self._fields = np.empty((calls.ROW_FIELDS, layout.rows_max), np.int64)
        self._fields_at = self._fields.ctypes.data
        self._state = (ctypes.c_int64 * calls.STATE_FIELDS)()
        self._state_at = ctypes.addressof(self._state)
        self._wanted = (
            calls.WANTS_KEY * layout.has_key
            | calls.WANTS_VALUE * layout.has_value
            | calls.WANTS_HEADERS * layout.has_headers
        )
        self._runs: list[_Run] = []
        self._held_bytes = 0
        self._timestamp_type = CREATE_TIME

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            for stretch in self._stretches:
                timestamp_type = LOG_APPEND_TIME if stretch.is_append_time else CREATE_TIME
                if self._state[calls.ROWS] and timestamp_type != self._timestamp_type:
                    yield self._cut()
                self._timestamp_type = timestamp_type
                yield from self._walk(stretch)
                self._held_bytes += stretch.held_bytes
                if self._state[calls.ROWS] and self._held_bytes > self._layout.held_bytes_max:
                    yield self._cut()
        except CorruptRecord:
            if self._state[calls.ROWS]:
                yield self._cut()
            raise
        if self._state[calls.ROWS]:
            yield self._cut()

    def _walk(self, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        layout, batches, state = self._layout, self._batches, self._state
        data, plan = stretch.data, stretch.plan
        state[calls.BATCH] = 0
        while True:
            first = state[calls.ROWS]
            status = self._index_records(
                *(data.address, plan.ctypes.data, len(plan), self._fields_at, layout.rows_max, layout.bytes_max),
                *(self._wanted, batches.start, batches.end, self._state_at),
            )
            if state[calls.ROWS] > first:
                self._runs.append(_Run(data, first, state[calls.ROWS]))
            if status == calls.DONE:
                return
            if status == calls.CORRUPT:
                raise self._blame(stretch.batch_at(state[calls.BATCH]))
            yield self._cut()

    def _blame(self, batch: OpenBatch) -> CorruptRecord:
        """The plain reader knows how to say what is wrong."""
        error: CorruptRecord = InvalidRecord("A record breaks the format")
        try:
            for _ in read_records(bytes(memoryview(batch.data)[batch.position : batch.end]), 0, batch.header):
                pass
        except CorruptRecord as found:
            error = found
        return self._batches.source.blame(batch.header.base_offset, error)

    def _cut(self) -> pa.RecordBatch:
        """What has been found so far; the next RecordBatch begins empty."""
        state, schema = self._state, self._layout.schema
        rows = state[calls.ROWS]
        made = {name: column.slice(0, rows) for name, column in self._layout.constants(self._timestamp_type).items()}
        for name in schema.names:
            if name == "offset":
                made[name] = _numbers(name, self._fields[0, :rows])
            elif name == "timestamp":
                made[name] = _numbers(name, self._fields[1, :rows])
            elif name == "key":
                made[name] = self._cells(2, rows, state[calls.KEY_BYTES], state[calls.KEY_NULLS])
            elif name == "value":
                made[name] = self._cells(4, rows, state[calls.VALUE_BYTES], state[calls.VALUE_NULLS])
            elif name == HEADERS:
                made[name] = self._headers(rows, state[calls.HEADERS_COUNT], state[calls.HEADERS_NULLS])
        batch = state[calls.BATCH]
        ctypes.memset(self._state_at, 0, ctypes.sizeof(state))
        state[calls.BATCH] = batch
        self._runs.clear()
        self._held_bytes = 0
        return pa.RecordBatch.from_arrays([made[name] for name in schema.names], schema=schema)

    def _cells(self, field: int, rows: int, size_bytes: int, nulls: int) -> pa.Array:
        starts_at = self._fields_at + field * self._layout.rows_max * _INT64_BYTES
        sizes_at = starts_at + self._layout.rows_max * _INT64_BYTES
        return self._gathered(pa.binary(), self._runs, starts_at, sizes_at, rows, size_bytes, nulls)

    def _gathered(
        self, kind: pa.DataType, runs: list[_Run], starts_at: int, sizes_at: int, rows: int, size_bytes: int, nulls: int
    ) -> pa.Array:
        ends, target = pa.allocate_buffer(4 * (rows + 1)), pa.allocate_buffer(size_bytes)
        validity = _validity(rows, nulls)
        validity_at = 0 if validity is None else validity.address
        used = 0
        for run in runs:
            used = self._gather(
                run.data.address,
                starts_at,
                sizes_at,
                run.first,
                run.last,
                target.address,
                size_bytes,
                used,
                ends.address,
                validity_at,
            )
        assert used == size_bytes, "what was counted is what is copied"
        return pa.Array.from_buffers(kind, rows, [validity, ends, target], nulls)

    def _headers(self, rows: int, count: int, nulls: int) -> pa.Array:
        ends, validity = pa.allocate_buffer(4 * (rows + 1)), _validity(rows, nulls)
        validity_at = 0 if validity is None else validity.address
        fields = np.empty((calls.HEADER_FIELDS, count), np.int64)
        counted = (ctypes.c_int64 * calls.STATE_FIELDS)()
        runs: list[_Run] = []
        found = 0
        for run in self._runs:
            before = found
            found = self._index_headers(
                run.data.address,
                self._fields_at,
                self._layout.rows_max,
                run.first,
                run.last,
                fields.ctypes.data,
                count,
                found,
                ends.address,
                validity_at,
                ctypes.addressof(counted),
            )
            runs.append(_Run(run.data, before, found))
        assert found == count, "what was counted is what is found"
        at = fields.ctypes.data
        ats = [at + field * count * _INT64_BYTES for field in range(calls.HEADER_FIELDS)]
        keys = self._gathered(pa.string(), runs, ats[0], ats[1], count, counted[calls.KEY_BYTES], 0)
        values = self._gathered(
            pa.binary(), runs, ats[2], ats[3], count, counted[calls.VALUE_BYTES], counted[calls.VALUE_NULLS]
        )
        headers = pa.Array.from_buffers(HEADER_TYPE, count, [None], 0, children=[_readable(keys), values])
        return pa.Array.from_buffers(TYPES[HEADERS], rows, [validity, ends], nulls, children=[headers])


def _numbers(name: str, values: Numbers) -> pa.Array:
    return pa.Array.from_buffers(TYPES[name], len(values), [None, pa.py_buffer(values.copy())], 0)


def _validity(rows: int, nulls: int) -> pa.Buffer | None:
    """A bit for each row, all of them set; none where there are no nulls."""
    return pa.py_buffer(bytearray(b"\xff" * ((rows + 7) // 8))) if nulls else None


def _readable(keys: pa.Array) -> pa.Array:
    """Arrow's strings are UTF-8. As Kafka does, we replace what is not, rather than lose the record."""
    try:
        keys.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array([key.decode(errors="replace") for key in keys.cast(pa.binary()).to_pylist()], pa.string())
    return keys
