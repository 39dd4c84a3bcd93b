"""One partition on this node: its log, how far it may be read, and who waits for that.

Always true: the high watermark never moves back within a leader epoch and never passes `local_end`; `local_end` is what
this node vouches for: the log end, or what is on the device once `flush.messages` records are not. It commits only what every
in-sync replica has. Whoever waits is woken by the append or the flush that it waits for, never by polling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.log import Appended, Log
from strandline.metadata.image import INTERNAL_TOPICS

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Reader(Protocol):
    """A Fetch that waits for more."""

    def wake(self, partition: Partition, new_bytes: int) -> None:
        """`new_bytes` more can be read; negative if the partition is gone."""


class Partition:
    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: Uuid,
        log: Log,
        leader_epoch: int,
        on_flush_due: Callable[[Partition], None],
        *,
        leads: bool = True,
        alone: bool = True,
    ) -> None:
        self.topic = topic
        self.is_internal = topic in INTERNAL_TOPICS
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.local_end = log.log_end_offset
        self.high_watermark = log.log_end_offset if alone else log.log_start_offset
        self.leads = leads
        """Whether this node leads the partition; else it may only hold a replica."""
        self.alone = alone
        """No other replica is in sync: what is written here is committed."""
        self.is_held = False
        """Others count as in sync and can't copy from here yet: a record that only this node had would not outlive a move of
        the leadership, so none is taken."""
        self.offline = False
        """The log dir failed: nothing can be read or written until a restart."""
        self.gone = False
        """The topic was deleted, or moved elsewhere."""
        self.last_flush = 0.0
        """On the monotonic clock."""
        self.readers: dict[Reader, None] = {}
        self._writers: deque[tuple[int, Callable[[ErrorCode], None]]] = deque()
        """Who waits for the high watermark, and below for `local_end`."""
        self._local_writers: deque[tuple[int, Callable[[ErrorCode], None]]] = deque()
        self._on_flush_due = on_flush_due
        self._announced_bytes = 0
        """Of what was appended, so much the readers know of."""
        if leads:
            log.epochs.assign(leader_epoch, log.log_end_offset)

    def lead(self, leader_epoch: int, *, alone: bool = True) -> None:
        """Lead in this epoch, which begins at the log end even while it has no record (rule A12)."""
        assert leader_epoch >= self.leader_epoch, f"{self}: leader epoch {leader_epoch} after {self.leader_epoch}"
        if leader_epoch > self.leader_epoch or not self.leads:
            self.leader_epoch = leader_epoch
            self.leads = True
            self.log.epochs.assign(leader_epoch, self.log.log_end_offset)
        self.alone = alone
        if alone:
            self.advance_high_watermark(self.local_end)

    def follow(self, leader_epoch: int) -> None:
        """Another node leads, or nobody does: whoever waits here must look for it (rule A5)."""
        assert leader_epoch >= self.leader_epoch, f"{self}: leader epoch {leader_epoch} after {self.leader_epoch}"
        self.leader_epoch = leader_epoch
        # A flush that is still under way commits nothing: that is the leader's to say.
        self.alone = False
        if self.leads:
            self.leads = False
            self.stop(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    # Writing

    def append(self, batch: memoryview, now_ms: int) -> Appended:
        """Append a client's batch; KafkaError if it may not be."""
        if self.offline or not self.leads or self.is_held:
            self.check_leads()
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has other replicas in sync, and copying to them is still to come; use one replica",
            )
        appended = self.log.append_as_leader(batch, self.leader_epoch, now_ms)
        self.after_append()
        return appended

    def append_own(self, batch: bytearray, now_ms: int) -> int:
        """Append a batch that this node made; its base offset."""
        base_offset = self.log.append_own(batch, self.leader_epoch, now_ms)
        self.after_append()
        return base_offset

    def after_append(self) -> None:
        log = self.log
        if log.log_end_offset - log.recovery_point < log.config.flush_messages:
            self.vouch_for(log.log_end_offset)
            if log.needs_flush:
                self._on_flush_due(self)
        else:
            self._on_flush_due(self)

    def after_flush(self, now: float) -> bool:
        """The log up to its recovery point is on the device; True if it already grew by enough to need another flush."""
        log = self.log
        self.last_flush = now
        behind = log.log_end_offset - log.recovery_point >= log.config.flush_messages
        self.vouch_for(log.recovery_point if behind else log.log_end_offset)
        return behind

    def vouch_for(self, end_offset: int) -> None:
        """Everything below `end_offset` counts as written here. With one replica in sync that is all a commit takes."""
        if end_offset > self.local_end:
            self.local_end = end_offset
            if self._local_writers:
                _tell(self._local_writers, end_offset)
            if self.alone:
                self.advance_high_watermark(end_offset)

    def advance_high_watermark(self, offset: int) -> None:
        assert offset <= self.local_end, f"{self}: high watermark {offset} above {self.local_end}"
        if offset <= self.high_watermark:
            return
        self.high_watermark = offset
        if self._writers:
            _tell(self._writers, offset)
        new_bytes = self.log.appended_bytes - self._announced_bytes
        self._announced_bytes = self.log.appended_bytes
        if self.readers:
            for reader in tuple(self.readers):
                reader.wake(self, new_bytes)

    def when_committed(self, end_offset: int, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` once the high watermark reaches `end_offset`, or with an error if that can't happen any more."""
        if self.high_watermark >= end_offset:
            done(ErrorCode.NONE)
        else:
            self._writers.append((end_offset, done))

    def when_written(self, end_offset: int, done: Callable[[ErrorCode], None]) -> None:
        """The same for what this node vouches for by itself, whatever the other replicas have."""
        if self.local_end >= end_offset:
            done(ErrorCode.NONE)
        else:
            self._local_writers.append((end_offset, done))

    # Reading

    @property
    def last_stable_offset(self) -> int:
        """Up to here every transaction is decided."""
        unstable = self.log.producers.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(self.high_watermark, unstable)

    def readable_end(self, isolation_level: int) -> int:
        return self.high_watermark if isolation_level == READ_UNCOMMITTED else self.last_stable_offset

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client that knows another leader epoch than ours (KIP-320), or one whom we can't serve because we do not
        lead; -1 means it does not say."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            self.check_leads()
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"epoch {current_leader_epoch} is older than {self.leader_epoch}"
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"epoch {current_leader_epoch} is newer than {self.leader_epoch}"
        )

    def check_online(self) -> None:
        if self.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log dir of {self} is offline")

    def check_leads(self) -> None:
        self.check_online()
        if not self.leads:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this node does not lead {self}")

    def delete_records(self, offset: int) -> int:
        """Move the log start to `offset` (-1: the high watermark); the new log start offset."""
        self.check_leads()
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is beyond the high watermark {self.high_watermark}"
            )
        self.log.advance_start(offset)
        return self.log.log_start_offset

    # Leaving

    def stop(self, reason: ErrorCode) -> None:
        """Nobody will be served here any more: tell those who wait."""
        writers = [*self._local_writers, *self._writers]
        self._writers, self._local_writers = deque(), deque()
        for _, done in writers:
            done(reason)
        for reader in tuple(self.readers):
            reader.wake(self, -1)
        self.readers.clear()

    def fail(self) -> None:
        """The log dir failed."""
        self.offline = True
        self.stop(ErrorCode.KAFKA_STORAGE_ERROR)


def _tell(writers: deque[tuple[int, Callable[[ErrorCode], None]]], offset: int) -> None:
    """Those who wait for no more than `offset` have it."""
    while writers and writers[0][0] <= offset:
        writers.popleft()[1](ErrorCode.NONE)
