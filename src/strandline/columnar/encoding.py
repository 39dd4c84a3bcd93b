"""Arrow rows to record batches, and to the partitions their keys belong to.

Always true: rows keep their order; a batch has one row at least and stays within `batch_bytes_max` (counted before compression)
unless a single record is beyond it: the broker decides about that one. Keys land where the Java client puts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from strandline.columnar.cells import Encoded, Partitions, Picked, Rows, check_rows, is_bytes
from strandline.columnar.compiled_records import CompiledRecords, RowSpans, compiled_partitions_of
from strandline.columnar.loading import kernels
from strandline.columnar.plain_records import PlainRecords, plain_partitions_of
from strandline.records import header as layout
from strandline.records.compression import CompressionType, compress
from strandline.records.header import BatchHeader
from strandline.records.ready import ReadyBatch

__all__ = ["Encoder", "Rows", "partitions_of"]

BATCH_BYTES_MAX = 1 << 30


def partitions_of(keys: pa.Array | None, partitions_count: int) -> Partitions:
    """The partition of each key, -1 for a null one. Without keys there is nothing to say, and the answer is empty."""
    if partitions_count < 1:
        raise ValueError(f"A topic has at least one partition, not {partitions_count}")
    if keys is None:
        return np.empty(0, np.int32)
    if not is_bytes(keys.type):
        raise ValueError(f"A key is binary or a string, not {keys.type}")
    writing = kernels("writing")
    if writing is None:
        return plain_partitions_of(keys, partitions_count)
    return compiled_partitions_of(keys, partitions_count, writing)


class Encoder:
    def __init__(self, *, compression: CompressionType, level: int | None, batch_bytes_max: int) -> None:
        if not 0 < batch_bytes_max <= BATCH_BYTES_MAX:
            raise ValueError(f"A batch has 1-{BATCH_BYTES_MAX} bytes, not {batch_bytes_max}")
        self._codec = compression
        self._level = level
        self._bytes_max = batch_bytes_max
        self._spans: RowSpans | None = None
        """Of the last rows: the same are often encoded for one partition after the other."""

    def encode(self, rows: Rows, picked: Picked | None) -> Iterator[ReadyBatch]:
        """These rows, by number and in this order; None means all of them. Wrong rows are a ValueError, at once."""
        numbers = check_rows(rows, picked)
        writing = kernels("writing")
        if writing is None:
            return self._encode(PlainRecords(rows, numbers, self._bytes_max))
        if self._spans is None or self._spans.rows is not rows:
            self._spans = RowSpans(rows)
        return self._encode(CompiledRecords(self._spans, numbers, self._bytes_max, writing))

    def _encode(self, batches: Iterable[Encoded]) -> Iterator[ReadyBatch]:
        for data, count, base_timestamp, max_timestamp in batches:
            batch = data
            if self._codec is not CompressionType.NONE:
                with memoryview(data) as view, view[layout.RECORDS_AT :] as records:
                    compressed = compress(self._codec, records, self._level)
                batch = bytearray(layout.RECORDS_AT)
                batch += compressed
            header = BatchHeader(
                base_offset=0,
                length=len(batch) - layout.LOG_OVERHEAD,
                partition_leader_epoch=layout.NO_PARTITION_LEADER_EPOCH,
                magic=layout.MAGIC,
                crc=0,
                attributes=self._codec,
                last_offset_delta=count - 1,
                base_timestamp=base_timestamp,
                max_timestamp=max_timestamp,
                producer_id=layout.NO_PRODUCER_ID,
                producer_epoch=layout.NO_PRODUCER_EPOCH,
                base_sequence=layout.NO_SEQUENCE,
                records_count=count,
            )
            layout.HEADER.pack_into(batch, 0, *header)
            yield ReadyBatch(batch, count, max_timestamp)
