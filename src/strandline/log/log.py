"""The log of one partition: an unbroken row of segments, appended to at its end and cut at either end.

Always true: offsets rise without a gap as they are given out; `log_start_offset <= log_end_offset`; everything below
`recovery_point` is on the device, so a restart after a crash need look only at what comes after it. Only the event loop
touches a log; what must wait for the device is handed over as plain work (`flush`) or retried when warm (`NotCached`).
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.log import checkpoints, producer_snapshot, truncation
from strandline.log.effects import LogWork, offloaded, synced
from strandline.log.epochs import LeaderEpochs
from strandline.log.errors import CorruptBatch
from strandline.log.fetched import AppendedFetch, whole_valid_batches
from strandline.log.opening import new_segment
from strandline.log.producer_replay import aborted_txn, batches_in, note_producer
from strandline.log.producers import Producers, last_sequence_of
from strandline.log.record_checks import CheckedRecords, RecordWork
from strandline.log.retired import RetiredFiles
from strandline.log.segment import RELATIVE_OFFSET_MAX, Segment
from strandline.log.segments import Segments
from strandline.log.txn_index import AbortedTxn
from strandline.log.txn_markers import end_txn_batch
from strandline.log.unsynced import UnsyncedFiles
from strandline.log.validation import validate
from strandline.log.verification import check_gap, sound_from, sound_prefix
from strandline.log.verification_guards import NOT_REQUIRED, VerificationGuard, VerificationGuards
from strandline.ports import Buffer, Disk, File, is_out_of_handles
from strandline.records.header import CONTROL_FLAG, HEADER, LOG_OVERHEAD, RECORDS_AT, BatchHeader, assign, iterate


class Appended(NamedTuple):
    base_offset: int
    append_time: int
    """-1 unless the broker stamped the batch with its own time."""


class Log:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: TopicConfig,
        segments: list[Segment],
        *,
        log_start_offset: int,
        recovery_point: int,
        epochs: LeaderEpochs,
        producers: Producers,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.config = config
        self.segments = Segments(segments)
        self.log_start_offset = log_start_offset
        self.log_end_offset = self.segments.active.next_offset
        self.recovery_point = recovery_point
        self.epochs = epochs
        self.producers = producers
        self.guards = VerificationGuards()
        self.txn_began_ms: dict[int, int] = {}
        """When the open transactions began that this node let in, by its own clock; by producer id."""
        self.appended_bytes = 0
        """Since it was opened."""
        self.truncations = 0
        """How often its end was cut: what was copied or read before may be gone, or be something else."""
        self.unsynced = UnsyncedFiles()
        self.retired = RetiredFiles()
        self.arriving: list[Segment] = []
        """Cleaned segments that are about to take the place of some of these, and will do so if the node stops now."""
        self._jitter_ms = self._draw_jitter()
        self._clean_end = -1
        """The log end at which every file was last left in order; -1 if that is not known."""

    def _draw_jitter(self) -> int:
        """Up to `segment.jitter.ms`, another for each segment, so that logs do not all roll at once."""
        jitter = self.config.segment_jitter_ms
        return zlib.crc32(f"{self.directory} {self.segments.active.base_offset}".encode()) % jitter if jitter else 0

    # Appending

    def append_as_leader(
        self,
        batch: memoryview,
        leader_epoch: int,
        now_ms: int,
        work: RecordWork | None = None,
        checked: CheckedRecords | None = None,
        guard: VerificationGuard | None = NOT_REQUIRED,
    ) -> Appended:
        """Give a client's batch its offsets and write it. A batch that was written before is answered, not written.

        `guard`: what was noted when the coordinator was asked about the transaction; without, a batch opens none.
        """
        valid = validate(batch, self.config, now_ms, work, checked)
        base_offset = self.log_end_offset
        last_offset = base_offset + valid.last_offset_delta
        producer_id = valid.producer_id
        if producer_id >= 0:
            last_sequence = last_sequence_of(valid.base_sequence, valid.last_offset_delta)
            duplicate = self.producers.check_client_batch(
                producer_id, valid.producer_epoch, valid.base_sequence, last_sequence, valid.transactional
            )
            if duplicate is not None:
                return Appended(duplicate.first_offset, duplicate.timestamp if self.config.log_append_time else -1)
            if valid.transactional and not self.producers.is_in_transaction(producer_id, valid.producer_epoch):
                self._check_guard(producer_id, guard, valid.base_sequence)
        data = valid.batch
        assign(data, base_offset, leader_epoch)
        self._roll_if_due(len(data), last_offset, valid.max_timestamp, now_ms)
        self.segments.active.append(data, last_offset, valid.max_timestamp)
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        if producer_id >= 0:
            self.producers.add_batch(
                producer_id,
                valid.producer_epoch,
                last_sequence,
                base_offset,
                last_offset,
                valid.max_timestamp,
                valid.transactional,
            )
            if valid.transactional:
                self.guards.began(producer_id)
                self.txn_began_ms.setdefault(producer_id, now_ms)
        self.log_end_offset = self.producers.end_offset = last_offset + 1
        self.appended_bytes += len(data)
        return Appended(base_offset, valid.append_time)

    def has_batch(self, header: BatchHeader) -> bool:
        """One of the last that its producer wrote, which comes again."""
        producer = self.producers.by_id.get(header.producer_id)
        last_sequence = last_sequence_of(header.base_sequence, header.last_offset_delta)
        return (
            producer is not None
            and producer.duplicate_of(header.producer_epoch, header.base_sequence, last_sequence) is not None
        )

    def _check_guard(self, producer_id: int, guard: VerificationGuard | None, first_sequence: int) -> None:
        """Refuse a batch that may not open a transaction (TXN-V3, TXN-V5), or that has to be its producer's first (TXN-P5)."""
        self.guards.check(producer_id, guard, first_sequence)
        self.producers.check_open(producer_id)
        is_unknown = producer_id not in self.producers.by_id
        if is_unknown and guard is not None and guard.bumps_epoch and first_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} began with sequence {first_sequence} instead of 0",
            )

    def append_marker(
        self,
        producer: tuple[int, int],
        commit: bool,
        coordinator_epoch: int,
        leader_epoch: int,
        now_ms: int,
        *,
        transaction_version: int,
    ) -> int:
        """Write the end of a transaction of this producer id and epoch; its offset. KafkaError if it comes too late."""
        self.producers.check_marker(*producer, coordinator_epoch, transaction_version)
        offset = self.append_own(end_txn_batch(*producer, commit, coordinator_epoch, now_ms), leader_epoch, now_ms)
        self.guards.ended(*producer)
        self.txn_began_ms.pop(producer[0], None)
        return offset

    def append_own(self, batch: bytearray, leader_epoch: int, now_ms: int) -> int:
        """Write a batch that this node made itself (metadata, coordinators, markers), at the log end; its base offset."""
        base_offset = self.log_end_offset
        assign(batch, base_offset, leader_epoch)
        self._append_assigned(batch, now_ms)
        return base_offset

    def append_as_follower(self, data: Buffer, now_ms: int) -> None:
        """Write batches as a leader gave them out, which are checked already: offsets and epochs are theirs."""
        self._append_assigned(data, now_ms)

    def append_fetched(self, data: Buffer, max_epoch: int, now_ms: int) -> AppendedFetch:
        """Check what a leader sent, and write as much of it as is sound and not of a later epoch than `max_epoch`."""
        expected_offset = self.log_end_offset
        if expected_offset == self.log_start_offset and len(data) >= RECORDS_AT:
            # Where nothing is yet, the leader's log may start in the middle of a batch (DeleteRecords): it comes whole.
            first = BatchHeader._make(HEADER.unpack_from(data))
            if first.base_offset < expected_offset <= first.last_offset:
                expected_offset = first.base_offset
        found = whole_valid_batches(data, expected_offset, max_epoch, self.epochs.latest)
        if found.headers:
            if expected_offset < self.log_end_offset:
                log_start_offset = self.log_start_offset
                self.truncate_fully_and_start_at(expected_offset)
                self.log_start_offset = log_start_offset
            self._append_batches(memoryview(data), found.headers, now_ms)
        return AppendedFetch(self.log_end_offset, found.size_bytes, found.problem)

    def _append_assigned(self, data: Buffer, now_ms: int) -> None:
        end_offset = self.log_end_offset
        headers = []
        for _, header in iterate(data):
            if header.base_offset < end_offset:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD,
                    f"batch at offset {header.base_offset} comes before the log end {end_offset} of {self.directory}",
                )
            headers.append(header)
            end_offset = header.last_offset + 1
        self._append_batches(memoryview(data), headers, now_ms)

    def _append_batches(self, view: memoryview, headers: list[BatchHeader], now_ms: int) -> None:
        """Write batches that stand back to back in `view`, all that go into one segment at once."""
        config = self.config
        position = start = 0
        while start < len(headers):
            header = headers[start]
            size = header.size_bytes
            self._roll_if_due(size, header.last_offset, header.max_timestamp, now_ms)
            segment = self.segments.active
            first = segment.first_timestamp if segment.file.size else header.max_timestamp
            timestamp_max = first + self._segment_ms_max(config) if first >= 0 else -1
            offset_max = segment.base_offset + RELATIVE_OFFSET_MAX
            size_max = config.segment_bytes - segment.file.size
            end_max = min(len(headers), start + segment.index_entries_left)
            end = start + 1
            # Batches that fit for certain go along; for the first that may not, the question is asked again above.
            while end < end_max:
                header = headers[end]
                more = size + LOG_OVERHEAD + header[1]
                if more > size_max or not 0 <= header[8] <= timestamp_max or header[0] + header[6] > offset_max:
                    break
                size = more
                end += 1
            written, aborted = segment.file.size, []
            segment.file.append(view[position : position + size])
            for header in headers[start:end]:
                base_offset, length, epoch, _, _, attributes, delta, _, max_timestamp, producer_id, *_ = header
                segment.note_batch(written, LOG_OVERHEAD + length, base_offset + delta, max_timestamp)
                if epoch != self.epochs.latest:
                    self.epochs.assign(epoch, base_offset)
                if producer_id >= 0:
                    batch = view[position : position + LOG_OVERHEAD + length] if attributes & CONTROL_FLAG else b""
                    completed = note_producer(self.producers, batch, header)
                    if completed is not None and completed.aborted:
                        aborted.append(aborted_txn(self.producers, completed))
                written += LOG_OVERHEAD + length
                position += LOG_OVERHEAD + length
            self.log_end_offset = self.producers.end_offset = segment.next_offset
            self.appended_bytes += size
            # Last: the index may have no room, and then the log ends where its segment does all the same.
            for each in aborted:
                segment.txn_index.add(each)
            start = end

    def _roll_if_due(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        segment = self.segments.active
        written = segment.file.size
        if written:
            first = segment.first_timestamp
            # How long it has been open: by record time where records have one, else by the clock.
            waited_ms = max_timestamp - first if first >= 0 and max_timestamp >= 0 else now_ms - segment.created_ms
            config = self.config
            if (
                written + size > config.segment_bytes
                or waited_ms > self._segment_ms_max(config)
                or segment.indexes_full
                or not segment.holds(last_offset)
            ):
                self.roll(now_ms, last_offset)
        elif not segment.holds(last_offset):
            self.roll(now_ms, last_offset)

    def _segment_ms_max(self, config: TopicConfig) -> int:
        """What is to be compacted in time must leave the active segment by then."""
        segment_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms
        return segment_ms - self._jitter_ms

    def roll(self, now_ms: int, last_offset: int = 0) -> Segment:
        """Close the active segment and begin one at the log end, or so far above it that it can hold `last_offset`."""
        base_offset = max(self.log_end_offset, last_offset - RELATIVE_OFFSET_MAX)
        active = self.segments.active
        if not active.size and active.base_offset == base_offset:
            return active
        # First: if there is no descriptor for it, the log is as it was.
        segment = new_segment(self.disk, self.directory, base_offset, self.config, now_ms)
        if active.size:
            active.seal()
            self.unsynced.segments.append(active)
            self.segments.add(segment)
        else:
            truncation.remove(self, [self.segments.replace_active(segment)])
        self.unsynced.snapshots.append((base_offset, producer_snapshot.encode(self.producers)))
        self._jitter_ms = self._draw_jitter()
        self.unsynced.names_changed = True
        return segment

    # Reading

    def read(self, offset: int, max_bytes: int, limit_offset: int, *, min_one: bool) -> Buffer:
        """Batches from the one that holds `offset` on, below `limit_offset`; the last may be cut off, the first never.

        With `min_one` the first batch comes whole even if it is larger than `max_bytes`. What is not known to be sound is checked
        first: the answer ends before a bad batch, and if that is the first, CorruptBatch tells all that is known of it.
        """
        self.check_readable(offset)
        if offset >= limit_offset:
            return b""
        segments = self.segments.all
        for i in range(max(bisect_right(self.segments.bases, offset) - 1, 0), len(segments)):
            segment = segments[i]
            found = segment.locate(offset)
            while found is not None:
                position, first_size = found
                size = min(
                    max(max_bytes, first_size) if min_one else max_bytes, self._end_position(i, limit_offset) - position
                )
                if size < first_size:
                    return b""
                data = segment.read(position, size)
                if not segment.checked.unchecked_end:
                    return data
                try:
                    return sound_from(segment, position, data, offset, self.epochs)
                except CorruptBatch as damaged:
                    if offset < damaged.end_offset or damaged.end_position <= position:
                        raise
                    # Its header claimed offsets that are not its own.
                    found = segment.locate(offset, start=damaged.end_position)
            if segment.checked.unchecked_end:
                check_gap(segment, segment.size, offset, self.epochs)
        return b""

    def read_batch(self, segment: Segment, position: int, header: BatchHeader) -> Buffer:
        """The batch with this header; CorruptBatch if it is not sound."""
        data = segment.read(position, header.size_bytes)
        return data if position >= segment.checked.unchecked_end else sound_prefix(segment, position, data, self.epochs)

    def check_readable(self, offset: int) -> None:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not in {self.log_start_offset} to {self.log_end_offset}",
            )

    def _end_position(self, i: int, limit_offset: int) -> int:
        """Where in segment `i` the batch that holds `limit_offset` starts, or the segment's end if it comes later."""
        segment = self.segments.all[i]
        if limit_offset >= segment.next_offset:
            return segment.size
        try:
            found = segment.locate(limit_offset)
        except CorruptBatch as damaged:
            return damaged.position
        return segment.size if found is None else found[0]

    def aborted_between(self, offset: int, limit_offset: int, *, blocking: bool = True) -> list[AbortedTxn]:
        """Transactions aborted in the log that overlap [offset, limit_offset), also those that began before (TXN-P11)."""
        found = []
        for segment in self.segments[self.segments.position_of(offset) :]:
            for aborted in segment.txn_index.since(offset, blocking=blocking):
                if aborted.first_offset < limit_offset:
                    found.append(aborted)
                if aborted.last_stable_offset >= limit_offset:
                    return found
        return found

    def has_aborted_since(self, offset: int, *, blocking: bool = True) -> bool:
        """Some transaction was aborted at or after `offset`."""
        return any(
            segment.txn_index.ends_after(offset, blocking=blocking)
            for segment in self.segments[self.segments.position_of(offset) :]
        )

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    def bytes_after(self, offset: int) -> int:
        """How many bytes of log come at or after `offset`, roughly: whole segments count as such."""
        return sum(segment.size for segment in self.segments[self.segments.position_of(offset) :])

    # Cutting

    def truncate_to(self, offset: int) -> None:
        """Remove everything at or after `offset` (KIP-101's truncation; blocks shortly)."""
        self.guards.clear()
        self.txn_began_ms.clear()
        truncation.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything and begin anew at `offset`."""
        self.guards.clear()
        self.txn_began_ms.clear()
        truncation.truncate_fully_and_start_at(self, offset)

    def advance_start(self, offset: int) -> None:
        """Records below `offset` are gone (DeleteRecords, retention); files follow in `drop_segments`."""
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def drop_segments(self, count: int, now_ms: int) -> list[str]:
        """Take the oldest `count` segments out of the log; the files to remove once no reader uses them any more."""
        return truncation.drop_segments(self, count, now_ms)

    def replace_segment(self, segment: Segment, repaired: Segment) -> None:
        """Let the files of `repaired`, which are on the device, take the place of those of `segment`; their names are not yet."""
        self.unsynced.names_changed = True
        self.retired.add(segment.adopt(repaired))

    # Durability

    @property
    def needs_flush(self) -> bool:
        """A segment was closed, or an epoch began: worth a flush soon, whatever `flush.messages` says."""
        unsynced = self.unsynced
        return True if unsynced.segments or unsynced.snapshots else self.epochs.dirty

    def flush(self) -> LogWork[None]:
        """Bring everything that is in the log now to the device. An OSError is final for the log dir."""
        end_offset, active, truncations = self.log_end_offset, self.segments.active, self.truncations
        with self.held():
            unsynced = self.unsynced
            if unsynced.names_changed or self.needs_flush:
                snapshots = {at for at, _ in unsynced.snapshots}
                taken = unsynced.take(self.epochs)
                try:
                    yield from offloaded(self.disk, lambda: taken.bring(self.disk, self.directory), self.directory)
                except OSError as error:
                    if is_out_of_handles(error):
                        # The log dir goes on, and the next flush must not vouch for what this one did not bring.
                        unsynced.give_back(
                            taken, self.segments, self.epochs, with_snapshots=truncations == self.truncations
                        )
                    raise
                if truncations != self.truncations:
                    # They may speak of batches that were cut meanwhile.
                    truncation.drop_snapshots(self, snapshots.__contains__)
            if end_offset > self.recovery_point:
                yield from synced(active.file)
                if truncations == self.truncations:
                    self.recovery_point = max(self.recovery_point, end_offset)

    def has_segment(self, file: File) -> bool:
        """This file is one of a segment that is still part of the log: its records, or its aborted transactions."""
        return any(segment.file is file or segment.txn_index.has_file(file) for segment in self.segments)

    def held(self) -> AbstractContextManager[None]:
        """No file of this log is closed meanwhile: work beside the event loop may be using it."""
        return self.retired.held()

    def sync_with_names(self, file: File) -> None:
        """Have a small new file in this directory synced and closed with the first flush."""
        self.unsynced.companion = file
        self.unsynced.names_changed = True

    def left_in_order(self) -> None:
        """Every file is as a clean shutdown left it: as long as nothing changes, closing has nothing to write."""
        self._clean_end = self.log_end_offset
        self.unsynced.names_changed = False

    def close_clean(self) -> None:
        """Everything on the device, indexes and producers included, so that the next start trusts the files. Blocks."""
        unchanged = self.log_end_offset == self._clean_end and not (self.unsynced.names_changed or self.needs_flush)
        if unchanged or not self.log_end_offset:
            # One that never held a record has nothing to lose, not even its name: it would be made again. There may be
            # thousands of them, and each would cost a dozen fsyncs.
            self.close()
            return
        if self.unsynced.companion is not None:
            self.unsynced.companion.sync_blocking()
        producer_snapshot.write(
            self.disk, self.directory, self.log_end_offset, producer_snapshot.encode(self.producers)
        )
        checkpoints.write_epochs(
            self.disk, f"{self.directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}", self.epochs.entries
        )
        self.segments.active.seal()
        for segment in (*self.unsynced.segments, self.segments.active):
            segment.sync_blocking()
        self.disk.sync_dir(self.directory)
        self.recovery_point = self.log_end_offset
        self.close()

    def close(self) -> None:
        self.guards.clear()
        if self.unsynced.companion is not None:
            self.unsynced.companion.close()
            self.unsynced.companion = None
        self.retired.add(self.segments)

    # Invariants

    def check_invariants(self) -> None:
        """What must hold between two turns of the event loop; the simulator asks after each of them."""
        self.segments.check_invariants()
        self.epochs.check_invariants()
        self.producers.check_invariants()
        start, end = self.log_start_offset, self.log_end_offset
        assert self.segments[0].base_offset <= start <= end, f"{self.directory}: log start {start}, end {end}"
        assert end == self.segments.active.next_offset, (
            f"{self.directory}: the log ends at {end}, not where its segment does"
        )
        assert self.recovery_point <= end, f"{self.directory}: recovery point {self.recovery_point} above {end}"
        assert self.producers.end_offset == end, f"{self.directory}: producers end at {self.producers.end_offset}"
        epochs = self.epochs.entries
        assert not epochs or epochs[-1][1] <= end, (
            f"{self.directory}: epoch {epochs[-1]} begins above the log end {end}"
        )


def batches_from(log: Log, offset: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
    """Every batch that ends at or after `offset`, with its segment and position. Blocks."""
    return batches_in(log.segments, offset)
