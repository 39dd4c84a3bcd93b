"""The aborted transactions among the batches of one fetch, for readers that are to see committed records only.

The broker lists them by producer id and first offset; each one's ABORT marker, a control batch, ends it.

Always true: batches are shown to it in the order of their offsets. It believes what they say, so a reader checks CRCs first.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from strandline.records.batch import decode
from strandline.records.control import ControlRecordType, read_control_type
from strandline.records.header import BatchHeader


class AbortedTransactions:
    __slots__ = ("_decompressed_bytes_max", "_later", "_producer_ids")

    def __init__(self, aborted: Iterable[tuple[int, int]], decompressed_bytes_max: int) -> None:
        """`aborted`: a producer id and a first offset for each."""
        self._later = [(first_offset, producer_id) for producer_id, first_offset in aborted]
        heapq.heapify(self._later)
        self._producer_ids: set[int] = set()
        self._decompressed_bytes_max = decompressed_bytes_max

    def hold(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether this batch, the next in the log, belongs to one of them. A control batch never does, but may end one."""
        if not header.has_producer_id:
            return False
        while self._later and self._later[0][0] <= header.last_offset:
            self._producer_ids.add(heapq.heappop(self._later)[1])
        if header.producer_id not in self._producer_ids:
            return False
        if header.is_control:
            if self._is_abort_marker(batch):
                self._producer_ids.discard(header.producer_id)
            return False
        return header.is_transactional

    def _is_abort_marker(self, batch: memoryview) -> bool:
        record = next(decode(batch, max_bytes=self._decompressed_bytes_max, check_crc=False), None)
        return record is not None and read_control_type(record.key) is ControlRecordType.ABORT
