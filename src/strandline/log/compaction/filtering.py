"""What cleaning leaves of a batch.

A record stays while it is the newest with its key; a tombstone stays for `delete.retention.ms` more, counted from its first
cleaning, which writes the delete horizon into the batch; a marker likewise, once nothing of its transaction is left.

Always true: base offset, last offset delta, sequences, leader epoch and codec of a batch stay what they were, and its records
keep their bytes but for a timestamp that counts from the delete horizon. A batch that holds a producer's last sequence stays, be it
empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from strandline.log.compaction.offset_map import OffsetMap, Sifted
from strandline.log.compaction.reading import SourceReader, records_of
from strandline.log.compaction.transactions import CleanerTransactions
from strandline.log.txn_index import AbortedTxn
from strandline.ports import Buffer
from strandline.records.batch import join
from strandline.records.compression import CompressionType, compress
from strandline.records.header import DELETE_HORIZON_FLAG, BatchHeader
from strandline.records.rewrite import retain
from strandline.records.varint import encode_varint, encode_varlong, read_varint, read_varlong

if TYPE_CHECKING:
    from strandline.log.compaction.job import CleanJob


class RetainedBatch(NamedTuple):
    """A batch as it goes into the cleaned segment."""

    batch: Buffer
    header: BatchHeader
    is_changed: bool
    aborted: AbortedTxn | None
    """What the transaction index must say of it."""


class RecordFilter:
    def __init__(self, job: CleanJob, offsets: OffsetMap, end_offset: int, transactions: CleanerTransactions) -> None:
        self._first_dirty_offset = job.first_dirty_offset
        self._end_offset = end_offset
        self._now_ms = job.now_ms
        self._delete_retention_ms = job.delete_retention_ms
        self._last_of_producers = job.last_of_producers
        self._offsets = offsets
        self._transactions = transactions
        self.records_read = 0
        self.records_written = 0

    def left_of(
        self, reader: SourceReader, data: bytes, at: int, header: BatchHeader, *, keep_header: bool
    ) -> RetainedBatch | None:
        """The batch at `at`, which `reader` has just read, without what may go; None if all of it may."""
        self.records_read += header.records_count
        is_dirty = header.last_offset >= self._first_dirty_offset
        is_beyond = header.base_offset >= self._end_offset
        is_superseded = is_dirty and not is_beyond and not header.is_control and not self._offsets.has_newest_in(header)
        keep_header = keep_header or self._is_last_of_producer(header)
        if keep_header or not is_superseded:
            reader.check(data, at, header)  # also what was checked when it was noted: it was read again
        is_discardable, aborted = self._transactions.note(data, at, header)
        if is_beyond:
            return self._whole(data, at, header, aborted)
        horizon_ms = header.delete_horizon_ms
        is_past_horizon = horizon_ms is not None and horizon_ms <= self._now_ms
        if not header.records_count or (is_discardable and (is_past_horizon or not header.is_control)):
            sifted = Sifted(0, [], False)
        elif header.is_control:
            if not is_discardable or horizon_ms is not None:
                return self._whole(data, at, header, aborted)
            payload, start, end = records_of(data, at, header)
            sifted = Sifted(header.records_count, [start, end], True)
        elif is_superseded:
            sifted = Sifted(0, [], False)
        else:
            payload, start, end = records_of(data, at, header)
            sift = self._offsets.sift_noted if is_dirty else self._offsets.sift_older
            sifted = sift(payload, start, end, header, is_past_horizon)
        if not sifted.records_count:
            return self._emptied(data, at, header, aborted) if keep_header else None
        is_new_horizon = sifted.has_tombstones and horizon_ms is None
        if sifted.records_count == header.records_count and not is_new_horizon:
            return self._whole(data, at, header, aborted)
        new_horizon_ms = self._now_ms + self._delete_retention_ms if is_new_horizon else None
        batch, left = _rewritten(payload, sifted, header, new_horizon_ms)
        self.records_written += left.records_count
        return RetainedBatch(batch, left, True, aborted)

    def _whole(self, data: bytes, at: int, header: BatchHeader, aborted: AbortedTxn | None) -> RetainedBatch:
        self.records_written += header.records_count
        return RetainedBatch(memoryview(data)[at : at + header.size_bytes], header, False, aborted)

    def _emptied(self, data: bytes, at: int, header: BatchHeader, aborted: AbortedTxn | None) -> RetainedBatch:
        if not header.records_count:
            return self._whole(data, at, header, aborted)
        return RetainedBatch(retain(header, ()), header._replace(records_count=0), True, aborted)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """Whether it must stay for what it says of its producer: the last sequence, or else the epoch."""
        if header.producer_id < 0:
            return False
        last = self._last_of_producers.get(header.producer_id)
        if last is None:
            return False
        last_offset, epoch = last
        if last_offset >= 0:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == epoch


def _rewritten(
    payload: bytes, sifted: Sifted, header: BatchHeader, new_horizon_ms: int | None
) -> tuple[bytearray, BatchHeader]:
    """The batch with only these records, and a delete horizon if it gets one. Its header has neither length nor checksum."""
    spans = sifted.spans
    left = header._replace(records_count=sifted.records_count)
    if sifted.records_count != header.records_count and not header.is_log_append_time:
        left = left._replace(max_timestamp=_max_timestamp(payload, spans, header))
    if new_horizon_ms is None:
        kept = b"".join([payload[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)])
    else:
        attributes = left.attributes | DELETE_HORIZON_FLAG
        left = left._replace(attributes=attributes, base_timestamp=new_horizon_ms)
        kept = _shifted(payload, spans, header.base_timestamp - new_horizon_ms)
    return join(left, compress(CompressionType.of(header.codec), kept)), left


def _max_timestamp(payload: bytes, spans: list[int], header: BatchHeader) -> int:
    """The greatest timestamp of the records that stay."""
    greatest_delta = header.max_timestamp - header.base_timestamp
    found: list[int] = []
    # Mostly time goes on within a batch, so the last run is the first to ask.
    for i in range(len(spans) - 2, -2, -2):
        position, end = spans[i], spans[i + 1]
        while position < end:
            length, position = read_varint(payload, position)
            delta, _ = read_varlong(payload, position + 1)
            if delta == greatest_delta:
                return header.max_timestamp
            found.append(delta)
            position += length
    return header.base_timestamp + max(found)


def _shifted(payload: bytes, spans: list[int], shift_ms: int) -> bytes:
    """The same records, with so much added to their timestamp deltas."""
    parts: list[bytes] = []
    for i in range(0, len(spans), 2):
        position, end = spans[i], spans[i + 1]
        while position < end:
            length, position = read_varint(payload, position)
            delta, after = read_varlong(payload, position + 1)
            body = (
                payload[position : position + 1] + encode_varlong(delta + shift_ms) + payload[after : position + length]
            )
            parts += encode_varint(len(body)), body
            position += length
    return b"".join(parts)
