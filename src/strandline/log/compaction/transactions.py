"""What the cleaner knows of transactions while it walks along a log.

Always true: batches come in the order of their offsets; a marker may go only when no batch of its transaction was met, so nobody
reads an aborted record for a committed one, nor waits for the end of a transaction whose marker is gone (TXN-P32).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from strandline.log.txn_index import AbortedTxn
from strandline.records.control import ControlRecordType, read_control_type
from strandline.records.header import CONTROL_FLAG, RECORDS_AT, TRANSACTIONAL_FLAG, BatchHeader
from strandline.records.record import read_records


class BatchStanding(NamedTuple):
    is_discardable: bool
    """A batch of an aborted transaction, or a marker whose transaction has left nothing."""
    aborted: AbortedTxn | None = None
    """What readers must still know of, if this is the marker that aborted it."""


PLAIN = BatchStanding(False)
_CONCERNED = TRANSACTIONAL_FLAG | CONTROL_FLAG


class CleanerTransactions:
    def __init__(self, aborted: Iterable[AbortedTxn], start_offset: int) -> None:
        """`aborted` are all that overlap what will be met, from `start_offset` on."""
        known = sorted((one for one in aborted if one.last_offset >= start_offset), key=lambda one: one.first_offset)
        self._to_come = known[::-1]
        self._aborted: dict[int, AbortedTxn] = {}
        """By producer: those that have begun."""
        self._met: set[int] = set()
        """Producers of whose transactions a batch was met since their last markers."""

    def note(self, data: bytes, at: int, header: BatchHeader) -> BatchStanding:
        """The next batch, in `data` at `at`."""
        if not header.attributes & _CONCERNED:
            return PLAIN
        while self._to_come and self._to_come[-1].first_offset <= header.last_offset:
            begun = self._to_come.pop()
            self._aborted.setdefault(begun.producer_id, begun)
        if header.is_control:
            return self._note_marker(data, at, header)
        self._met.add(header.producer_id)
        return BatchStanding(header.producer_id in self._aborted)

    def _note_marker(self, data: bytes, at: int, header: BatchHeader) -> BatchStanding:
        producer_id = header.producer_id
        if not header.records_count:
            return BatchStanding(True)
        record = next(iter(read_records(data[at + RECORDS_AT : at + header.size_bytes], 0, header)))
        match read_control_type(record.key):
            case ControlRecordType.ABORT | ControlRecordType.COMMIT:
                aborted = self._aborted.pop(producer_id, None)
                is_met = producer_id in self._met
                self._met.discard(producer_id)
                return BatchStanding(not is_met, aborted if is_met else None)
            case _:
                return PLAIN
