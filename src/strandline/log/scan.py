"""Reading a segment batch by batch, after a crash or because its indexes are not right, and noting all that the batches say.

Always true: a bad batch that was on the device once stays, and the scan goes on after it; one that may never have been written
whole ends the segment. What is found is checked: it need not be checked again when it is served.
"""

from __future__ import annotations

from strandline.log.damage import header_problem
from strandline.log.epochs import UNDEFINED_EPOCH, LeaderEpochs
from strandline.log.errors import CorruptBatch, CorruptLog
from strandline.log.producer_replay import aborted_txn, note_producer
from strandline.log.producers import Producers
from strandline.log.segment import Segment
from strandline.records.header import HEADER, MAGIC, RECORDS_AT, BatchHeader, crc_of, crc_valid

SCAN_BYTES = 4 * 1024 * 1024
"""Read at once; a larger batch is read whole."""


class SegmentScan:
    def __init__(self, epochs: LeaderEpochs, producers: Producers, checkpointed: LeaderEpochs) -> None:
        self.epochs = epochs
        self.epochs_are_known = bool(epochs.entries)
        """Whether the entries were there before: then a batch must be of the epoch that they name."""
        self.checkpointed = checkpointed
        """What the checkpoint said, which may be older than the last cut, or rotten."""
        self.producers = producers
        self.damaged: list[CorruptBatch] = []

    def recover(
        self, segment: Segment, kept_below: int, end_offset: int | None, following: Segment | None = None
    ) -> int:
        """Rebuild a segment's indexes from its batches and cut it at the first bad one; how many bytes were cut.

        A bad one below `kept_below` stays, if it is known where the log goes on: at a sound batch not beyond that, or at
        `end_offset`, where the segment should end. `following` is the next segment, into which this one must not reach.
        """
        segment.begin_indexes()
        segment.next_offset = segment.base_offset
        limit_offset = segment.offset_limit if end_offset is None else end_offset
        position, size = 0, segment.size
        chunk, chunk_at = b"", 0
        is_whole = True
        while position < size:
            if position + RECORDS_AT > chunk_at + len(chunk):
                chunk, chunk_at = segment.file.read_blocking(position, SCAN_BYTES), position
            header, problem = _header(chunk, position - chunk_at, size - position, segment.next_offset, limit_offset)
            if header is not None and _goes_on(segment, position, header, limit_offset):
                if following is not None:
                    raise CorruptLog(f"{segment.file.path} reaches into the next segment, {following.base_offset}")
                problem, end_offset, limit_offset = None, None, segment.offset_limit
            if header is not None and problem is None:
                # With the next header: what the checksum does not cover is compared with it.
                if position + header.size_bytes + RECORDS_AT > chunk_at + len(chunk):
                    bytes_wanted = max(SCAN_BYTES, header.size_bytes + RECORDS_AT)
                    chunk, chunk_at = segment.file.read_blocking(position, bytes_wanted), position
                at = position - chunk_at
                batch = memoryview(chunk)[at : at + header.size_bytes]
                if crc_of(batch) != header.crc:
                    problem = f"the batch at offset {header.base_offset} fails its checksum"
                elif segment.next_offset < kept_below:
                    after = _header_after(chunk, at + header.size_bytes, following)
                    problem = self._contradiction(header, after, segment.next_offset, kept_below)
                if problem is None:
                    self._note(segment, position, batch, header)
                    position += header.size_bytes
                    continue
            if segment.next_offset >= kept_below:
                break
            damaged = segment.damage_at(position, str(problem), limit_offset=limit_offset, blocking=True)
            if end_offset is None and damaged.end_position == size:
                damaged = _ended_by_count(segment, damaged)
            if end_offset is None and damaged.end_offset > kept_below:
                break
            self.damaged.append(damaged)
            is_whole = False
            position, segment.next_offset = damaged.end_position, damaged.end_offset
        if position < size:
            segment.file.truncate(position)
        if is_whole:
            segment.checked.all()
        else:
            segment.checked.forget(segment.size)
        return size - position

    def _note(self, segment: Segment, position: int, batch: memoryview, header: BatchHeader) -> None:
        segment.note_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)
        if header.partition_leader_epoch > self.epochs.latest:
            self.epochs.assign(header.partition_leader_epoch, header.base_offset)
        completed = note_producer(self.producers, batch, header)
        if completed is not None and completed.aborted:
            segment.txn_index.add(aborted_txn(self.producers, completed))

    def _contradiction(
        self, header: BatchHeader, after: BatchHeader | None, expected_offset: int, kept_below: int
    ) -> str | None:
        """An offset or an epoch that others know better: the entries, or the batches before and after."""
        epoch, latest = header.partition_leader_epoch, self.epochs.latest
        if after is None and header.base_offset > expected_offset and header.last_offset >= kept_below:
            return f"a batch ends at offset {header.last_offset}, and the one before it at {expected_offset - 1}"
        if after is not None and expected_offset <= after.base_offset < header.next_offset:
            return f"a batch ends at offset {header.last_offset}, and the next one starts at {after.base_offset}"
        known = (self.epochs if self.epochs_are_known else self.checkpointed).epoch_at(header.base_offset)
        if self.epochs_are_known:
            is_wrong = known not in (UNDEFINED_EPOCH, epoch)
        elif after is None:
            # Of what was deleted from the start the entries may say nothing.
            is_wrong = UNDEFINED_EPOCH != known == latest != epoch
        else:
            is_wrong = latest <= after.partition_leader_epoch and not latest <= epoch <= after.partition_leader_epoch
        return f"the batch at offset {header.base_offset} can't be of epoch {epoch}" if is_wrong else None


def _ended_by_count(segment: Segment, damaged: CorruptBatch) -> CorruptBatch:
    """A stretch up to the end of the file, with the offset at which it ends if only offsets and epochs in it are wrong.

    A batch that carries its checksum says how many offsets it has; without gaps the last of them is the end of the log.
    """
    position, end_offset = damaged.position, damaged.first_offset
    while not segment.may_have_gaps and position + RECORDS_AT <= damaged.end_position:
        header = BatchHeader._make(HEADER.unpack(segment.file.read_blocking(position, RECORDS_AT)))
        if not RECORDS_AT <= header.size_bytes <= damaged.end_position - position or header.last_offset_delta < 0:
            break
        if header.magic != MAGIC or not crc_valid(segment.file.read_blocking(position, header.size_bytes)):
            break
        position, end_offset = position + header.size_bytes, end_offset + header.last_offset_delta + 1
    return damaged.ending_at(end_offset if position == damaged.end_position else segment.offset_limit + 1)


def _header_after(chunk: bytes, at: int, following: Segment | None) -> BatchHeader | None:
    """The header of the next batch, be it in the next segment; None if there is none."""
    if at + RECORDS_AT > len(chunk):
        if at < len(chunk) or following is None or following.size < RECORDS_AT:
            return None
        chunk, at = following.file.read_blocking(0, RECORDS_AT), 0
    header = BatchHeader._make(HEADER.unpack_from(chunk, at))
    return header if header.magic == MAGIC else None


def _goes_on(segment: Segment, position: int, header: BatchHeader, limit_offset: int) -> bool:
    """Whether a batch that reaches beyond the limit is a sound one: then the limit is wrong."""
    return (
        header.last_offset >= limit_offset
        and header.base_offset == segment.next_offset
        and header_problem(header, segment.size - position, segment.next_offset, segment.offset_limit) is None
        and crc_valid(segment.file.read_blocking(position, header.size_bytes))
    )


def _header(
    chunk: bytes, at: int, bytes_left: int, expected_offset: int, limit_offset: int
) -> tuple[BatchHeader | None, str | None]:
    """The header, and what about it can't be right."""
    if bytes_left < RECORDS_AT:
        return None, f"{bytes_left} bytes are too few for a batch"
    header = BatchHeader._make(HEADER.unpack_from(chunk, at))
    return header, header_problem(header, bytes_left, expected_offset, limit_offset)
