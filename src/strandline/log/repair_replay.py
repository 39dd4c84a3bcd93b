"""What a repaired stretch says of its producers and transactions: the log is read again from there on.

While the stretch was rotten a scan may have passed over it. Then producers, snapshots and the transaction indexes of its segment
and of those after it say what the log would without it: an abort is missing, or a transaction is open whose marker came back
(TXN-P31).

Always true: on the device the indexes are right before the repaired segment is; a transaction that the log knew to be ended stays
ended, though compaction may have taken its marker away.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from strandline.log import producer_snapshot, truncation
from strandline.log.effects import LogWork, offloaded
from strandline.log.errors import CorruptBatch
from strandline.log.log import Log
from strandline.log.producer_replay import aborted_txn, completed_in
from strandline.log.producers import BATCHES_KEPT, Producers, ProducerState
from strandline.log.segment import Segment
from strandline.log.txn_index import AbortedTxn, TxnIndex

REST_BYTES = 256 * 1024
"""What was appended meanwhile is read on the event loop once it is no more than that, or was read beside it ROUNDS_MAX times."""
ROUNDS_MAX = 4


class RepairReplay:
    def __init__(self, log: Log, damaged: CorruptBatch, segment: Segment, repaired: Segment) -> None:
        """`repaired` is to take the place of `segment`."""
        self._log = log
        self._damaged = damaged
        self._replaced = {segment: repaired}
        self._truncations = log.truncations
        self._producers = Producers()
        self._producers.ids_max = log.producers.ids_max
        self._start = self._end = -1
        """From where to where it was read."""
        self._compared_to = -1
        """Up to where the indexes were compared with what was read."""
        self._read: list[Segment] = []
        """As they stand in the log."""
        self._aborted: dict[Segment, list[AbortedTxn]] = {}
        self._indexes: dict[Segment, tuple[TxnIndex, int]] = {}
        """Those that have to be other ones, on the device, and how many of `_aborted` they have."""

    def read(self) -> LogWork[None]:
        """Read what is in the log, and write the indexes that were wrong."""
        log = self._log
        segments = list(log.segments)
        self._read = [segment for segment in segments if segment.next_offset > self._damaged.first_offset]
        yield from offloaded(log.disk, partial(self._begin, segments, log.log_end_offset), log.directory)
        for _ in range(ROUNDS_MAX):
            if not self.fits or self._bytes_left() <= REST_BYTES:
                return
            self._note_new_segments()
            yield from offloaded(log.disk, partial(self._read_to, log.log_end_offset, self._read), log.directory)

    @property
    def fits(self) -> bool:
        """The log is the one that was read still, but for what was appended since or deleted at its start."""
        log, there = self._log, set(self._log.segments)
        return log.truncations == self._truncations and all(
            segment in there or segment.next_offset <= log.segments[0].base_offset for segment in self._read
        )

    def _bytes_left(self) -> int:
        return self._log.bytes_after(self._end) if self._end < self._log.log_end_offset else 0

    def _begin(self, segments: list[Segment], end_offset: int) -> None:
        """Read what is there, and write the indexes that were wrong. Blocks."""
        log, oldest = self._log, segments[0].base_offset
        snapshot = producer_snapshot.load_latest(
            log.disk, log.directory, oldest, self._damaged.first_offset, self._producers
        )
        self._start = oldest if snapshot is None else snapshot
        self._read_to(end_offset, segments)
        for segment in self._read:
            index = self._rewritten(segment)
            if index is not None:
                self._indexes[segment] = index, len(self._aborted.get(segment, ()))
        self._compared_to = end_offset

    def _note_new_segments(self) -> None:
        known = set(self._read)
        self._read += [
            segment for segment in self._log.segments if segment not in known and segment.next_offset > self._end
        ]

    def _read_to(self, end_offset: int, segments: list[Segment]) -> None:
        start, self._end = max(self._start, self._end), end_offset
        places = {self._replaced.get(segment, segment): segment for segment in segments}
        for segment, completed in completed_in(list(places), start, end_offset, self._producers):
            if completed.aborted and completed.last_offset >= self._damaged.first_offset:
                self._aborted.setdefault(places[segment], []).append(aborted_txn(self._producers, completed))
        self._producers.end_offset = end_offset

    def _rewritten(self, segment: Segment) -> TxnIndex | None:
        """The right index of a segment, as far as it was read, on the device; None if it has that one. Blocks."""
        there = [aborted for aborted in segment.txn_index if aborted.last_offset < self._end]
        right = [aborted for aborted in there if aborted.last_offset < self._damaged.first_offset]
        right += self._aborted.get(segment, ())
        return segment.txn_index.written_beside(right) if right != there else None

    def take_over(self) -> None:
        """Let the log know what was read. It must fit; names have to be synced before the repaired segment is in its place."""
        log = self._log
        if self._end < log.log_end_offset:
            self._note_new_segments()
            self._read_to(log.log_end_offset, self._read)
        for segment in log.segments:
            aborted = self._aborted.get(segment, [])
            if segment in self._indexes:
                index, count = self._indexes.pop(segment)
                for each in aborted[count:]:
                    index.add(each)
            elif segment.next_offset <= self._compared_to or (rewritten := self._rewritten(segment)) is None:
                continue
            else:
                index = rewritten
            log.retired.add(segment.txn_index.adopt(index))
        log.unsynced.names_changed = True
        self._keep_what_was_known()
        self._producers.forgotten_early = log.producers.forgotten_early
        log.producers = self._producers
        # What reads the log step by step, or cleans it, must begin anew; nor is a snapshot to be written that was made before.
        log.truncations += 1
        truncation.drop_snapshots(log, lambda at: at > self._damaged.first_offset)
        log.unsynced.snapshots.append((log.log_end_offset, producer_snapshot.encode(log.producers)))

    def _keep_what_was_known(self) -> None:
        """Of what comes before the snapshot, or was compacted, the log knows more than was read."""
        known, producers = self._log.producers, self._producers
        for producer_id, read in producers.by_id.items():
            if producer_id in known.by_id:
                _merge(known.by_id[producer_id], read)
        producers.adopt([producer for producer in known.by_id.values() if producer.producer_id not in producers.by_id])
        producers.restore_ended(known.ended_before(self._start))
        for producer_id, first_offset in tuple(producers.open_txns.items()):
            is_new = self._damaged.first_offset <= first_offset < self._damaged.end_offset
            if producer_id not in known.open_txns and not is_new:
                producers.forget_open(producer_id)

    def give_up(self) -> None:
        """Remove what was written."""
        for index, _ in self._indexes.values():
            index.remove()
        self._indexes = {}


def _merge(known: ProducerState, read: ProducerState) -> None:
    read.marker_offset = max(known.marker_offset, read.marker_offset)
    if known.epoch == read.epoch:
        batches = {batch.last_offset: batch for batch in (*known.batches, *read.batches)}
        read.batches = deque((batches[at] for at in sorted(batches)), maxlen=BATCHES_KEPT)
