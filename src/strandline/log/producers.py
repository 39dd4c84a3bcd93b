"""What a partition remembers of its producers, so that a retry is no duplicate and a gap is noticed.

Always true: per producer the last five batches are kept (C1), in the order of their offsets; a client's batches are taken only
where their sequences follow each other without a gap, wrapping from 2^31-1 to 0 (C2), but a log that was cleaned shows gaps; an
older epoch never writes again (C3). The same state grows on followers from the batches alone (C4). A leader remembers no more
producers than `ids_max`: it lets no more than nine tenths of them have a transaction open (SEC-L10).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from strandline.errors import ErrorCode, KafkaError
from strandline.records.control import EPOCH_BUMPING_VERSION, EPOCH_MAX

BATCHES_KEPT = 5
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
SEQUENCE_MAX = 2**31 - 1
IDS_MAX = 100_000
FORGOTTEN_AT_ONCE = 10
"""When there are too many, the tenth that was silent longest goes at once: to look for one each time would cost too much."""


class BatchMetadata(NamedTuple):
    """One appended batch: enough to recognise it when it comes again."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 else first + SEQUENCE_MAX + 1

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerState:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "epoch",
        "last_timestamp",
        "marker_offset",
        "producer_id",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.current_txn_first_offset = -1
        self.marker_offset = -1
        """Of the last end of a transaction that was seen in this life of the log."""
        self.batches: deque[BatchMetadata] = deque(maxlen=BATCHES_KEPT)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def duplicate_of(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The batch that was appended before with this epoch and these sequences."""
        if epoch == self.epoch:
            for batch in self.batches:
                if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                    return batch
        return None

    def check(self, epoch: int, first_sequence: int, transactional: bool) -> None:
        """Refuse what may not follow: an old epoch, a sequence out of order, a plain batch inside a transaction (TXN-P2)."""
        if epoch < self.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {self.producer_id} is older than its last seen epoch {self.epoch}",
            )
        if epoch != self.epoch:
            if first_sequence != 0 and self.epoch != NO_PRODUCER_EPOCH:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {self.producer_id} began epoch {epoch} with sequence {first_sequence} instead of 0",
                )
        elif not follows(self.last_sequence, first_sequence):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {self.producer_id} sent sequence {first_sequence} after {self.last_sequence}",
            )
        if self.current_txn_first_offset >= 0 and not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {self.producer_id} sent a batch outside its open transaction",
            )

    def add(self, epoch: int, batch: BatchMetadata) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp


def follows(last_sequence: int, first_sequence: int) -> bool:
    return first_sequence == last_sequence + 1 or (first_sequence == 0 and last_sequence == SEQUENCE_MAX)


def last_sequence_of(first_sequence: int, last_offset_delta: int) -> int:
    last = first_sequence + last_offset_delta
    return last if last <= SEQUENCE_MAX else last - SEQUENCE_MAX - 1


class CompletedTxn(NamedTuple):
    """A transaction that a marker ended here."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class Producers:
    """All producers of one partition, up to `end_offset`."""

    ids_max = IDS_MAX
    """How many are remembered (`producer.id.max.per.partition`)."""

    def __init__(self) -> None:
        self.by_id: dict[int, ProducerState] = {}
        self.end_offset = 0
        self.forgotten_early = 0
        self._open_txns: OrderedDict[int, int] = OrderedDict()
        """In the order they began: the first one says what is stable, whatever else is open."""
        self._ended_txns: dict[int, int] = {}
        """First offset to marker offset of those ended by a marker that is not yet below the high watermark."""

    def check_client_batch(
        self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int, transactional: bool
    ) -> BatchMetadata | None:
        """None if the batch may be appended, the earlier batch if it is a duplicate; raises if neither."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            # All this producer wrote may have been deleted since: any sequence is taken.
            return None
        if duplicate := producer.duplicate_of(epoch, first_sequence, last_sequence):
            return duplicate
        producer.check(epoch, first_sequence, transactional)
        return None

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Refuse an older epoch: before the coordinator is asked about it (TXN-V2), and in batches of offsets."""
        producer = self.by_id.get(producer_id)
        if producer is not None and epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {epoch} of producer {producer_id} is older than its last seen epoch {producer.epoch}",
            )

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """A transaction of this very epoch is open here (TXN-P3)."""
        producer = self.by_id.get(producer_id)
        return producer is not None and producer.current_txn_first_offset >= 0 and producer.epoch == epoch

    def check_open(self, producer_id: int) -> None:
        """Refuse to open one more transaction than there may be (SEC-L10): none of them could be forgotten."""
        open_max = max(self.ids_max - self.ids_max // FORGOTTEN_AT_ONCE, 1)
        if len(self._open_txns) >= open_max and producer_id not in self._open_txns:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{len(self._open_txns)} transactions are open in this partition (producer.id.max.per.partition)",
            )

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int) -> None:
        """Refuse a marker of no producer, of an older one (TXN-P21) or from an older coordinator (TXN-P22)."""
        if producer_id < 0:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"{producer_id} is no producer id")
        if epoch < 0:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"{epoch} is no epoch of a producer")
        producer = self.by_id.get(producer_id)
        if producer is None:
            return
        if coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"coordinator epoch {coordinator_epoch} of producer {producer_id} is older than "
                f"{producer.coordinator_epoch}, the last one seen",
            )
        is_late = epoch < producer.epoch
        if transaction_version >= EPOCH_BUMPING_VERSION and epoch == producer.epoch:
            # The end of this transaction has a newer epoch; at the same one it is a retry, which finds nothing open.
            is_late = producer.current_txn_first_offset >= 0 and epoch < EPOCH_MAX
        if is_late:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker of epoch {epoch} of producer {producer_id} comes too late: its epoch is {producer.epoch}",
            )

    def add_batch(
        self,
        producer_id: int,
        epoch: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        """A batch of this producer is in the log."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self._new(producer_id)
        producer.add(epoch, BatchMetadata(last_sequence, last_offset, last_offset - first_offset, timestamp))
        if transactional and producer.current_txn_first_offset < 0:
            producer.current_txn_first_offset = first_offset
            self._open_txns[producer_id] = first_offset

    def _new(self, producer_id: int) -> ProducerState:
        if len(self.by_id) >= max(self.ids_max, len(self._open_txns) + 1):
            self._forget_silent()
        producer = self.by_id[producer_id] = ProducerState(producer_id)
        return producer

    def _forget_silent(self) -> None:
        """Make room for a tenth of all: those that wrote last the longest ago, never one with an open transaction.

        Offsets tell how long ago, because clients choose timestamps; so a leader and its followers forget the same ones, as long as
        none was started again: a snapshot does not hold the offsets of markers. As after `producer.id.expiration.ms`, whatever they
        send next is taken for their first batch.
        """
        silent = [producer for producer in self.by_id.values() if producer.current_txn_first_offset < 0]
        silent.sort(key=lambda producer: (max(producer.last_offset, producer.marker_offset), producer.producer_id))
        for producer in silent[: max(self.ids_max // FORGOTTEN_AT_ONCE, 1)]:
            del self.by_id[producer.producer_id]
            self.forgotten_early += 1

    def end_txn(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, aborted: bool
    ) -> CompletedTxn | None:
        """A marker at `offset` ends the producer's transaction (TXN-P23); None if it had none, as of one that is repeated
        (TXN-TF3)."""
        producer = self.by_id.get(producer_id)
        if producer is None:
            producer = self._new(producer_id)
        if epoch > producer.epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.marker_offset = offset
        first_offset = producer.current_txn_first_offset
        if first_offset < 0:
            return None
        producer.current_txn_first_offset = -1
        del self._open_txns[producer_id]
        self._ended_txns[first_offset] = offset
        return CompletedTxn(producer_id, first_offset, offset, aborted)

    def ended_before(self, end_offset: int) -> dict[int, int]:
        """First offset to marker offset of those that ended below `end_offset` and may not be stable yet."""
        return {first: end for first, end in self._ended_txns.items() if end < end_offset}

    def restore_ended(self, ended: dict[int, int]) -> None:
        """These ended before a cut, which left their markers."""
        self._ended_txns |= ended

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """The first offset that a reader of committed records may not pass: an open transaction's, or an unreplicated end's."""
        if self._ended_txns:
            self._ended_txns = {first: end for first, end in self._ended_txns.items() if end >= high_watermark}
        oldest = next(iter(self._open_txns.values()), None)
        if not self._ended_txns:
            return oldest
        ended = min(self._ended_txns)
        return ended if oldest is None else min(oldest, ended)

    @property
    def oldest_open_timestamp(self) -> int:
        """When the producer whose open transaction began first has last written; -1 if none is open (TXN-T39)."""
        oldest = next(iter(self._open_txns), None)
        return -1 if oldest is None else self.by_id[oldest].last_timestamp

    def last_stable_offset_before(self, completed: CompletedTxn) -> int:
        """What was stable when `completed` ended, looking only at the transactions still open."""
        others = (first for producer, first in self._open_txns.items() if producer != completed.producer_id)
        return next(others, completed.last_offset + 1)

    def forget_open(self, producer_id: int) -> None:
        """Its open transaction has ended, though no marker says so here."""
        self.by_id[producer_id].current_txn_first_offset = -1
        del self._open_txns[producer_id]

    @property
    def open_txns(self) -> Mapping[int, int]:
        """First offset of each open transaction, by producer, in the order they began."""
        return self._open_txns

    def forget_open_below(self, offset: int) -> None:
        """What began below has ended: its marker was cleaned away, or emptied."""
        while self._open_txns:
            producer_id, first_offset = next(iter(self._open_txns.items()))
            if first_offset >= offset:
                return
            self.forget_open(producer_id)

    def adopt(self, producers: Iterable[ProducerState]) -> None:
        """Take over entries, from a snapshot or from other producers."""
        for producer in producers:
            self.by_id[producer.producer_id] = producer
            if producer.current_txn_first_offset >= 0:
                self._open_txns[producer.producer_id] = producer.current_txn_first_offset
        self._open_txns = OrderedDict(sorted(self._open_txns.items(), key=itemgetter(1)))

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that were silent for too long; never one with an open transaction."""
        expired = [
            producer_id
            for producer_id, producer in self.by_id.items()
            if producer.current_txn_first_offset < 0 and now_ms - producer.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.by_id[producer_id]

    def clear(self, end_offset: int) -> None:
        self.by_id.clear()
        self._open_txns.clear()
        self._ended_txns.clear()
        self.end_offset = end_offset

    def check_invariants(self) -> None:
        open_txns = {}
        for producer in self.by_id.values():
            assert len(producer.batches) <= BATCHES_KEPT, f"{producer.producer_id}: {len(producer.batches)} batches"
            assert producer.last_offset < self.end_offset, f"{producer.producer_id} wrote {producer.last_offset}"
            for before, after in pairwise(producer.batches):
                assert before.last_offset < after.first_offset, f"{producer.producer_id}: {before}, {after}"
            if producer.current_txn_first_offset >= 0:
                open_txns[producer.producer_id] = producer.current_txn_first_offset
        began = sorted(open_txns.items(), key=itemgetter(1))
        assert began == list(self._open_txns.items()), f"transactions {began} are open, not {self._open_txns}"
