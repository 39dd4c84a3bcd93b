"""Batches that can be walked together, because their records lie in the same bytes and their timestamps are of one type.

Ordinary batches (uncompressed, no part of a transaction that may have been aborted) are found by a kernel, many at a time; only
their CRCs are left to check here. Whatever is not ordinary is opened by `Batches`, as for the plain reader, and comes alone.

Always true: the batches are those that `Batches` would show, in that order, and what is wrong with one of them is found there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from strandline.columnar.batches import FetchedBatches, OpenBatch
from strandline.columnar.cells import Numbers
from strandline.columnar.kernels import calls
from strandline.columnar.kernels.machine_code import Kernel
from strandline.records.header import ATTRIBUTES_AT, RECORDS_AT, read_header

BATCHES_MAX: Final = 1024
BYTES_MAX: Final = 512 * 1024
"""As much as stays in a core's cache from the CRC to the copy."""


class Stretch(NamedTuple):
    """`plan` has a row for each batch; it is good until the next stretch is asked for."""

    data: pa.Buffer
    plan: Numbers
    batch: OpenBatch | None
    """If it is one that came alone."""

    @property
    def is_append_time(self) -> bool:
        return bool(self.plan[0, calls.PLAN_IS_APPEND_TIME])

    @property
    def held_bytes(self) -> int:
        return 0 if self.batch is None else self.batch.held_bytes

    def batch_at(self, number: int) -> OpenBatch:
        if self.batch is not None:
            return self.batch
        position = int(self.plan[number, calls.PLAN_HEADER_POSITION])
        end = int(self.plan[number, calls.PLAN_END])
        view = memoryview(self.data)
        return OpenBatch(read_header(view, position), view, position + RECORDS_AT, end)


class Stretches:
    def __init__(self, batches: FetchedBatches, scan_batches: Kernel) -> None:
        self._batches = batches
        self._scan_batches = scan_batches
        self._plan = np.empty((BATCHES_MAX, calls.PLAN_FIELDS), np.int64)

    def __iter__(self) -> Iterator[Stretch]:
        batches = self._batches
        data = pa.py_buffer(batches.data)
        plan_at = self._plan.ctypes.data
        next_position = ctypes.c_int64()
        while True:
            count = self._scan_batches(
                *(data.address, data.size, batches.position, batches.start, batches.end, batches.hides_transactions),
                *(BATCHES_MAX, BYTES_MAX, plan_at, ctypes.addressof(next_position)),
            )
            batches.position = next_position.value
            if count:
                planned = self._plan[:count]
                sound = self._count_sound(planned) if batches.source.check_crcs else count
                if sound < count:
                    batches.position = int(planned[sound, calls.PLAN_HEADER_POSITION])
                if sound:
                    yield Stretch(data, planned[:sound], None)
                if sound == count:
                    continue
            batch = batches.next()
            if batch is None:
                return
            self._plan[0] = _plan(batch)
            yield Stretch(pa.py_buffer(batch.data), self._plan[:1], batch)

    def _count_sound(self, plan: Numbers) -> int:
        """How many batches there are before the first whose CRC is not right."""
        view, columns = self._batches.data, plan.T
        positions, ends, crcs = (
            columns[field].tolist() for field in (calls.PLAN_HEADER_POSITION, calls.PLAN_END, calls.PLAN_CRC)
        )
        for number, (position, end, crc) in enumerate(zip(positions, ends, crcs, strict=True)):
            if crc32c(view[position + ATTRIBUTES_AT : end]) != crc:
                return number
        return len(plan)


def _plan(batch: OpenBatch) -> tuple[int, ...]:
    header = batch.header
    bounds = (batch.position, batch.end, header.records_count)
    counted_from = (header.base_offset, header.base_timestamp, int(header.is_log_append_time), header.max_timestamp)
    return (*bounds, *counted_from, -1, header.crc)
