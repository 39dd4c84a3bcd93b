"""Arrow rows out of open batches in plain Python: slow, obvious, and always there.

Always true: `compiled_rows` gives the same rows in the same RecordBatches (but for header keys that are not UTF-8: their size is
counted here as they are shown, and there as they were sent, so that one may begin a RecordBatch earlier than the other).
A row is never split from its columns, a RecordBatch has one timestamp type and at least one row, and it stays within its bounds
unless a single row is beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from strandline.columnar.batches import FetchedBatches, OpenBatch
from strandline.columnar.columns import CREATE_TIME, HEADERS, LOG_APPEND_TIME, Layout, clamp_milliseconds
from strandline.records.errors import CorruptRecord
from strandline.records.record import Record, read_records


class PlainRows:
    def __init__(self, layout: Layout, batches: FetchedBatches) -> None:
        self._layout = layout
        self._batches = batches
        self._records: list[Record] = []
        self._size_bytes = 0
        self._held_bytes = 0
        self._timestamp_type = CREATE_TIME

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        layout, start, end = self._layout, self._batches.start, self._batches.end
        try:
            for batch in self._batches:
                timestamp_type = LOG_APPEND_TIME if batch.header.is_log_append_time else CREATE_TIME
                if self._records and timestamp_type != self._timestamp_type:
                    yield self._cut()
                self._timestamp_type = timestamp_type
                for record in self._records_of(batch):
                    if not start <= record.offset < end:
                        continue
                    size_bytes = layout.size_bytes(record)
                    is_full = len(self._records) == layout.rows_max or self._size_bytes + size_bytes > layout.bytes_max
                    if self._records and is_full:
                        yield self._cut()
                    self._records.append(record)
                    self._size_bytes += size_bytes
                self._held_bytes += batch.held_bytes
                if self._records and self._held_bytes > layout.held_bytes_max:
                    yield self._cut()
        except CorruptRecord:
            if self._records:
                yield self._cut()
            raise
        if self._records:
            yield self._cut()

    def _records_of(self, batch: OpenBatch) -> Iterator[Record]:
        try:
            yield from read_records(bytes(memoryview(batch.data)[batch.position : batch.end]), 0, batch.header)
        except CorruptRecord as error:
            raise self._batches.source.blame(batch.header.base_offset, error) from error

    def _cut(self) -> pa.RecordBatch:
        records, self._records = self._records, []
        self._size_bytes = self._held_bytes = 0
        schema, constants = self._layout.schema, self._layout.constants(self._timestamp_type)
        columns = [
            constants[name].slice(0, len(records))
            if name in constants
            else pa.array([_cell(name, record) for record in records], schema.field(name).type)
            for name in schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cell(name: str, record: Record) -> object:
    if name == HEADERS:
        return [{"key": key, "value": value} for key, value in record.headers] or None
    if name == "timestamp":
        return clamp_milliseconds(record.timestamp) * 1000
    return getattr(record, name)
