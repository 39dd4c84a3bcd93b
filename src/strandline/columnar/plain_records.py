"""Encoded records out of Arrow rows in plain Python: slow, obvious, and always there.

Always true: `compiled_records` gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from strandline.columnar.cells import Encoded, Numbers, Partitions, Rows
from strandline.columnar.spans import header_spans_of
from strandline.records.header import RECORDS_AT
from strandline.records.partitioner import partition_for
from strandline.records.record import Headers, encode_record


class PlainRecords:
    def __init__(self, rows: Rows, numbers: Numbers, bytes_max: int) -> None:
        header_spans_of(rows.headers, len(rows.value))  # raises what is wrong with them
        self._rows = rows
        self._numbers = numbers
        self._bytes_max = bytes_max

    def __iter__(self) -> Iterator[Encoded]:
        rows, bytes_max = self._rows, self._bytes_max
        data = bytearray(RECORDS_AT)
        count = base_timestamp = max_timestamp = 0
        for number in self._numbers.tolist():
            timestamp = int(rows.timestamp_ms[number])
            key = None if rows.key is None else _bytes(rows.key[number])
            value = _bytes(rows.value[number])
            headers = () if rows.headers is None else _headers(rows.headers[number])
            if count:
                record = encode_record(count, timestamp - base_timestamp, key, value, headers)
                if len(data) + len(record) > bytes_max:
                    yield Encoded(data, count, base_timestamp, max_timestamp)
                    data, count = bytearray(RECORDS_AT), 0
            if not count:
                base_timestamp = max_timestamp = timestamp
                record = encode_record(0, 0, key, value, headers)
            data += record
            count += 1
            max_timestamp = max(max_timestamp, timestamp)
        if count:
            yield Encoded(data, count, base_timestamp, max_timestamp)


def plain_partitions_of(keys: pa.Array, partitions_count: int) -> Partitions:
    found = ((-1 if key is None else partition_for(key, partitions_count)) for key in map(_bytes, keys))
    return np.fromiter(found, np.int32, len(keys))


def _bytes(cell: pa.Scalar) -> bytes | None:
    value = cell.as_py()
    return value.encode() if isinstance(value, str) else value


def _headers(cell: pa.Scalar) -> Headers:
    return [(header["key"].as_py(), _bytes(header["value"])) for header in cell.values] if cell.is_valid else ()
