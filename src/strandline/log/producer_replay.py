"""What the batches of a log say about its producers: as they are appended, and again after a restart or a cut.

Always true: a snapshot and the batches after it give the same state as all the batches would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from strandline.log import producer_snapshot
from strandline.log.errors import CorruptBatch
from strandline.log.producers import CompletedTxn, Producers
from strandline.log.segment import Segment
from strandline.log.txn_index import AbortedTxn
from strandline.ports import Buffer, Disk
from strandline.records.batch import decode
from strandline.records.control import ControlRecordType, read_control_type, read_end_txn_marker
from strandline.records.header import BatchHeader, crc_valid


def note_producer(producers: Producers, batch: Buffer, header: BatchHeader) -> CompletedTxn | None:
    """Learn from a batch that is in the log what its producer did; the transaction that it ended, if it did."""
    producer_id = header.producer_id
    if producer_id < 0:
        return None
    if not header.is_control:
        base_offset = header.base_offset
        producers.add_batch(
            producer_id,
            header.producer_epoch,
            header.last_sequence,
            base_offset,
            base_offset + header.last_offset_delta,
            header.max_timestamp,
            header.is_transactional,
        )
        return None
    for record in decode(batch):
        kind = read_control_type(record.key)
        if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            return producers.end_txn(
                header.producer_id,
                header.producer_epoch,
                read_end_txn_marker(record.value),
                header.base_offset,
                record.timestamp,
                kind is ControlRecordType.ABORT,
            )
    return None


def aborted_txn(producers: Producers, completed: CompletedTxn) -> AbortedTxn:
    stable = producers.last_stable_offset_before(completed)
    return AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)


def rebuild_producers(
    disk: Disk,
    directory: str,
    segments: Sequence[Segment],
    end_offset: int,
    producers: Producers,
    high_watermark: int | None = None,
) -> None:
    """Producer state at `end_offset`, from the newest snapshot not beyond it and the batches that came after. Blocks.

    A snapshot does not know of transactions that have ended: of one that ended above the high watermark, and is not stable yet,
    only its marker tells. So it has to be below that, or the producers have to know of those ends themselves (TXN-P31).
    """
    ended = producers.ended_before(end_offset)
    producers.clear(end_offset)
    # A snapshot from before the oldest batch knows less than nothing: what came between is gone.
    oldest = segments[0].base_offset if segments else end_offset
    newest = end_offset if high_watermark is None else min(end_offset, max(high_watermark, oldest))
    start = producer_snapshot.load_latest(disk, directory, oldest, newest, producers) or 0
    for _ in completed_in(segments, start, end_offset, producers):
        pass
    producers.restore_ended(ended)
    producers.end_offset = end_offset


def completed_in(
    segments: Sequence[Segment], start: int, end_offset: int, producers: Producers
) -> Iterator[tuple[Segment, CompletedTxn]]:
    """Learn from every sound batch from `start` to `end_offset`: the transactions that end there. Blocks."""
    for segment, position, header in batches_in(segments, start):
        if header.base_offset >= end_offset:
            return
        if header.base_offset >= start:
            is_checked = position >= segment.checked.unchecked_end
            batch = (
                b"" if is_checked and not header.is_control else segment.file.read_blocking(position, header.size_bytes)
            )
            if is_checked or crc_valid(batch):
                completed = note_producer(producers, batch, header)
                if completed is not None:
                    yield segment, completed


def batches_in(segments: Sequence[Segment], offset: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
    """Every batch that ends at or after `offset`, with its segment and position; damaged ones are passed over. Blocks."""
    for segment in segments:
        if segment.next_offset <= offset:
            continue
        try:
            found = segment.locate(offset, blocking=True)
            start = segment.size if found is None else found[0]
        except CorruptBatch as damaged:
            start = damaged.end_position
        for position, header in segment.batches(start, skip_damage=True):
            yield segment, position, header
