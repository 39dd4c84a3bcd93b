"""Raw record batches to Arrow: what a Fetch brought, as RecordBatches of rows.

Always true: offsets come out in the order of the log; nothing outside of the bytes given is read, whatever they claim;
and all rows before a corrupt record have been yielded when its CorruptRecord is raised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from strandline.columnar.batches import BatchSource, FetchedBatches
from strandline.columnar.columns import Layout
from strandline.columnar.compiled_rows import CompiledRows
from strandline.columnar.loading import kernels
from strandline.columnar.plain_rows import PlainRows
from strandline.ports import Buffer
from strandline.records.compression import DECOMPRESSED_BYTES_MAX


class Decoder:
    """For one partition. Not for two threads at once."""

    def __init__(
        self,
        topic: str,
        partition: int,
        columns: Sequence[str],
        *,
        check_crcs: bool = True,
        rows_max: int = 10_000,
        bytes_max: int = 2 << 20,
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        self._source = BatchSource(topic, partition, check_crcs, decompressed_bytes_max)
        self._layout = Layout(topic, partition, columns, rows_max, bytes_max)

    def decode(
        self, data: Buffer, start: int, end: int, aborted: Sequence[tuple[int, int]] | None
    ) -> Iterator[pa.RecordBatch]:
        """Records with `start` <= offset < `end` of these raw record batches.

        They may begin inside a batch and may end with an incomplete one. `aborted` is None for read_uncommitted, else the
        (producer_id, first_offset) pairs of this fetch. Control batches are never shown.
        """
        batches = FetchedBatches(self._source, data, start, end, aborted)
        reading = kernels("reading")
        return iter(
            PlainRows(self._layout, batches) if reading is None else CompiledRows(self._layout, batches, reading)
        )
