"""One partition on this node: its log, its role, how far it may be read, and who waits for that.

Always true: the high watermark never passes `local_end` and moves back only where the log itself is cut; `local_end` is what this
node vouches for: the log end, or what is on the device once `flush.messages` records are not. A leader commits only what every
in-sync replica has; a follower takes its leader's word for it. Whoever waits is woken by the append, the flush or the fetch that
it waits for, never by polling.
"""

from __future__ import annotations

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.log import Appended, Log
from strandline.log.record_checks import CheckedRecords, RecordWork
from strandline.metadata.image import INTERNAL_TOPICS, PartitionImage
from strandline.metadata.incarnations import Incarnation
from strandline.replica import following, roles
from strandline.replica.dependencies import PartitionDependencies, WaitingReader, Watcher
from strandline.replica.followers import UNKNOWN
from strandline.replica.following import TakenFetch
from strandline.replica.isr import IsrAnswer, ProposedIsr
from strandline.replica.leadership import Leadership
from strandline.replica.topic_stats import TopicStats
from strandline.replica.waiters import Done, IsOver, Waiters
from strandline.wire.fetch import FetchedPartition, FetchPartition

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class Partition:
    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: Uuid,
        log: Log,
        state: PartitionImage,
        dependencies: PartitionDependencies,
        *,
        high_watermark: int = 0,
        stats: TopicStats | None = None,
    ) -> None:
        """`high_watermark` as it was last written down; the log may have been cut below it, or start above it, since."""
        self.topic = topic
        self.is_internal = topic in INTERNAL_TOPICS
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.state = state
        self.stats = stats or TopicStats()
        self.leader_epoch = -1
        self.leadership: Leadership | None = None
        """Set while this node leads."""
        self.local_end = log.log_end_offset
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        self.leader_high_watermark = UNKNOWN
        """As the leader told it last, while this node follows."""
        self.offline = False
        """The log dir failed: nothing can be read or written until a restart."""
        self.gone = False
        """The topic was deleted, or moved elsewhere."""
        self.last_flush = 0.0
        """On the monotonic clock."""
        self.readers: dict[WaitingReader, None] = {}
        self.watchers: dict[Watcher, None] = {}
        self._dependencies = dependencies
        self._writers = Waiters()
        """Who waits for the high watermark, and below for `local_end` and for the low watermark."""
        self._local_writers = Waiters()
        self._deleters = Waiters()
        self._announced_bytes = log.appended_bytes
        """Of the bytes appended since the log was opened, those already announced to waiting readers."""
        if self.high_watermark < log.log_end_offset:
            # What was in the log before, above the watermark, is new to them too; how much that is is known by the segment.
            self._announced_bytes -= log.bytes_after(self.high_watermark)
        self._role(state)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    # Roles

    @property
    def leads(self) -> bool:
        return self.leadership is not None

    def apply(self, state: PartitionImage) -> bool:
        """Take what the metadata says of this partition; True if it must be fetched anew, from its leader or no more.

        An answer of the controller may have come before the record that it speaks of: that one is then no news.
        """
        leadership = self.leadership
        if state is self.state or (leadership is not None and state.partition_epoch < leadership.isr.partition_epoch):
            return False
        before, self.state = self.state, state
        self._role(state)
        return (state.leader, state.leader_epoch) != (before.leader, before.leader_epoch)

    def _role(self, state: PartitionImage) -> None:
        assert state.leader_epoch >= self.leader_epoch, (
            f"{self}: leader epoch {state.leader_epoch} after {self.leader_epoch}"
        )
        if state.leader == self._dependencies.node_id:
            self._lead(state)
        else:
            self._follow(state)

    def _lead(self, state: PartitionImage) -> None:
        if roles.lead(self, state, self._dependencies):
            self._notify_watchers()
        self.expand_isr()
        self.advance()
        if self._deleters:
            self._deleters.reached(self.low_watermark)

    def _follow(self, state: PartitionImage) -> None:
        roles.follow(self, state, self._dependencies)

    @property
    def min_isr(self) -> int:
        """No more than there are replicas can be asked for."""
        return min(self.log.config.min_insync_replicas, len(self.state.replicas))

    # Writing

    def append(
        self,
        batch: memoryview,
        now_ms: int,
        *,
        for_all: bool = False,
        work: RecordWork | None = None,
        checked: CheckedRecords | None = None,
    ) -> Appended:
        """Append a client's batch; KafkaError if it may not be. `for_all`: only if enough replicas are in sync (rule A3).

        RecordsBesideLoop if its records take too long to check here: then again with what `check_beside` found.
        """
        leadership = self.leadership
        if leadership is None or self.offline:
            self.check_leads()
            raise AssertionError("a partition that is led takes records")
        if for_all and len(leadership.isr.isr) < self.min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {len(leadership.isr.isr)} in-sync replicas and needs {self.min_isr} (min.insync.replicas)",
            )
        log, stats = self.log, self.stats
        end_before = log.log_end_offset
        appended = log.append_as_leader(batch, self.leader_epoch, now_ms, work, checked)
        stats.total_produce_requests += 1
        stats.bytes_in += len(batch)
        stats.messages_in += log.log_end_offset - end_before
        self.after_append()
        return appended

    def append_own(self, batch: bytearray, now_ms: int) -> int:
        """Append a batch that this node made; its base offset."""
        self.check_leads()
        base_offset = self.log.append_own(batch, self.leader_epoch, now_ms)
        self.after_append()
        return base_offset

    def after_append(self) -> None:
        log = self.log
        if log.log_end_offset - log.recovery_point < log.config.flush_messages:
            self.vouch_for(log.log_end_offset)
            if log.needs_flush:
                self._dependencies.flush_due(self)
        else:
            self._dependencies.flush_due(self)
        for watcher in self.watchers:
            watcher.notify(urgent=True)

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
                self._local_writers.reached(end_offset)
            if self.leadership is not None:
                self.advance()
            elif self.leader_high_watermark > self.high_watermark:
                # The leader told this before it was on the device here, and will not tell it again.
                self._raise_high_watermark(min(self.leader_high_watermark, end_offset))

    def advance(self) -> None:
        """Let the high watermark go as far as it may."""
        leadership = self.leadership
        if leadership is not None and self.high_watermark < self.local_end:
            reached = leadership.high_watermark(
                self.local_end, self.high_watermark, self.min_isr, self._dependencies.now
            )
            if reached > self.high_watermark:
                self._raise_high_watermark(reached)

    def _raise_high_watermark(self, offset: int) -> None:
        assert offset <= self.local_end, f"{self}: high watermark {offset} above {self.local_end}"
        self.high_watermark = offset
        if self._writers:
            assert self.leadership is not None, "only a leader is waited for"
            is_enough = len(self.leadership.isr.maximal) >= self.min_isr
            self._writers.reached(offset, ErrorCode.NONE if is_enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        for watcher in self.watchers:
            watcher.notify(urgent=False)
        new_bytes = self.log.appended_bytes - self._announced_bytes
        if offset == self.log.log_end_offset:
            self._announced_bytes = self.log.appended_bytes
        if self.readers:
            for reader in tuple(self.readers):
                reader.wake(self, new_bytes)

    def when_committed(self, end_offset: int, done: Done, is_over: IsOver | None = None) -> None:
        """Call `done` once the high watermark reaches `end_offset`, or with an error if that can't happen any more."""
        if self.high_watermark >= end_offset:
            done(ErrorCode.NONE)
        else:
            self._writers.add(end_offset, done, is_over)

    def when_written(self, end_offset: int, done: Done, is_over: IsOver | None = None) -> None:
        """The same for what this node vouches for by itself, whatever the other replicas have."""
        if self.local_end >= end_offset:
            done(ErrorCode.NONE)
        else:
            self._local_writers.add(end_offset, done, is_over)

    # Leading

    def follower_fetched(self, replica_id: int, asked: FetchPartition, broker_epoch: int, now: float) -> bool:
        """A follower's fetch says how far it is: it may be in sync by now, and more may be committed. Only the registered
        incarnation of its broker counts (SEC-T7): an earlier one is refused; a later one is not counted, which is False, until
        the metadata here knows it."""
        leadership = self.leadership
        assert leadership is not None, "followers fetch from the leader"
        fetching = self._dependencies.incarnation(replica_id, broker_epoch)
        if fetching is not Incarnation.CURRENT:
            if fetching is Incarnation.AHEAD:
                return False
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {replica_id} fetches {self} in epoch {broker_epoch}, which is not the one that it is registered in",
            )
        follower = leadership.followers[replica_id]
        follower.fetched(asked.fetch_offset, asked.log_start_offset, self.log.log_end_offset, broker_epoch, now)
        if replica_id not in leadership.isr.isr:
            self._expand_isr(leadership, now, fetching=replica_id)
        self.advance()
        if self._deleters:
            self._deleters.reached(self.low_watermark)
        return True

    def follower_was_caught_up(self, replica_id: int, broker_epoch: int, at: float) -> None:
        """A follower fetched at that time and there was nothing new for it."""
        leadership = self.leadership
        follower = None if leadership is None else leadership.followers.get(replica_id)
        if follower is None or follower.broker_epoch != broker_epoch:
            return
        if self._dependencies.incarnation(replica_id, broker_epoch) is Incarnation.CURRENT:
            follower.was_caught_up(at)

    def brokers_changed(self) -> None:
        """The metadata has another set of brokers: some may be eligible now, and others known that were ahead of it."""
        for watcher in tuple(self.watchers):
            watcher.brokers_changed()
        self.expand_isr()

    def expand_isr(self, *, refused: ProposedIsr | None = None) -> None:
        """Somebody's standing changed: those who were caught up already, and could not join, may be able to now."""
        leadership = self.leadership
        if leadership is not None and len(leadership.isr.isr) <= len(leadership.followers):
            self._expand_isr(leadership, self._dependencies.now(), refused=refused)

    def _expand_isr(
        self, leadership: Leadership, now: float, *, fetching: int = UNKNOWN, refused: ProposedIsr | None = None
    ) -> None:
        proposal = leadership.expansion(
            self.high_watermark, self.log.log_end_offset, self._dependencies.broker_epoch, now, fetching, refused
        )
        if proposal is not None:
            self._dependencies.propose_isr(self, proposal)

    def shrink_isr(self, now: float) -> None:
        """Have those leave the ISR who were behind for too long (rule B2); to be called now and then."""
        if self.leadership is None or self.offline:
            return
        proposal = self.leadership.shrinking(self.log.log_end_offset, self._dependencies.broker_epoch, now)
        if proposal is not None:
            self._dependencies.propose_isr(self, proposal)
        else:
            self.expand_isr()
        # Whoever was about to join, and did not, no longer holds the watermark back.
        self.advance()

    def isr_answered(self, proposal: ProposedIsr, answer: IsrAnswer | ErrorCode) -> None:
        leadership = self.leadership
        if leadership is None or self.gone:
            return
        if leadership.answered(proposal, answer, self._dependencies.now()):
            self._dependencies.propose_isr(self, proposal)
            return
        self.advance()
        # One of them may have restarted, or caught up, while the request was in flight, and need not fetch again soon.
        self.expand_isr(refused=None if isinstance(answer, IsrAnswer) else proposal)

    # Following

    def fetch_position(self, max_bytes: int) -> FetchPartition | None:
        """What to ask the leader for; None if there is nothing to ask now.

        The offset asked for says what this node has, so it waits until what `flush.messages` asks for is on the device.
        """
        if self.leadership is not None or self.offline or self.gone or self.local_end < self.log.log_end_offset:
            return None
        return following.position(self, max_bytes)

    def take(self, asked: FetchPartition, answer: FetchedPartition, now_ms: int) -> TakenFetch:
        """Take the leader's answer; an OSError is the log dir's."""
        if self.leadership is not None or self.offline or self.gone:
            return following.STALE
        return following.take(self, asked, answer, now_ms)

    def followed(self, taken_bytes: int, leader_high_watermark: int, leader_log_start: int) -> bool:
        """Records were written, and the leader told how far it is; True if any of that was new."""
        log = self.log
        self.leader_high_watermark = leader_high_watermark
        if taken_bytes:
            self.stats.replication_bytes_in += taken_bytes
            self.after_append()
        advanced = bool(taken_bytes)
        # What was committed stays so: a new leader whose watermark still lags does not take it back (rule A11).
        high_watermark = min(leader_high_watermark, self.local_end)
        if high_watermark > self.high_watermark:
            self._raise_high_watermark(high_watermark)
            advanced = True
        if leader_log_start > log.log_start_offset:
            log.advance_start(min(leader_log_start, self.high_watermark))
            advanced = True
        return advanced

    def reset(self, leader_start: int, leader_end: int) -> int:
        """After OFFSET_OUT_OF_RANGE: cut the log or begin it anew, as the leader's start and end say; where to fetch next."""
        if self.leadership is not None or self.offline or self.gone:
            return self.log.log_end_offset
        return following.reset(self, leader_start, leader_end)

    def truncate(self, offset: int, reason: str) -> None:
        """Cut what the leader does not have, and the epochs that began there, even one without a record."""
        log, end_before = self.log, self.log.log_end_offset
        log.truncate_to(offset)
        log.epochs.truncate_from_end(log.log_end_offset)
        self._cut(f"{reason}: cut from {log.log_end_offset} to {end_before}", end_before)

    def start_at(self, offset: int, reason: str) -> None:
        end_before = self.log.log_end_offset
        self.log.truncate_fully_and_start_at(offset)
        self._cut(f"{reason}: begun anew at {offset}", end_before)

    def _cut(self, reason: str, end_before: int) -> None:
        log = self.log
        self.local_end = log.log_end_offset
        self.high_watermark = min(max(self.high_watermark, log.log_start_offset), log.log_end_offset)
        if log.log_end_offset == end_before:
            return  # only an epoch without a record is gone
        self._dependencies.note("truncated", self, reason, log_end_offset=log.log_end_offset, was=end_before)

    # Reading

    @property
    def last_stable_offset(self) -> int:
        """Up to here every transaction is decided."""
        unstable = self.log.producers.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(self.high_watermark, unstable)

    def readable_end(self, isolation_level: int) -> int:
        return self.high_watermark if isolation_level == READ_UNCOMMITTED else self.last_stable_offset

    def is_behind_its_epoch(self, readable_end: int) -> bool:
        """A new leader that has not yet committed all that it began with: it may not say where the log ends (KIP-207)."""
        return self.leadership is not None and readable_end < self.leadership.start_offset

    def check_leader_epoch(self, current_leader_epoch: int, *, leader_only: bool = True) -> None:
        """Refuse one who knows another leader epoch than ours (KIP-320, rule A6), or whom we can't serve because we do not
        lead; -1 means it does not say."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            if leader_only or self.offline:
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
        if self.leadership is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this node does not lead {self}")

    # Deleting

    def delete_records(self, offset: int) -> int:
        """Move the log start to `offset` (-1: the high watermark), which is returned; the followers move theirs as they fetch."""
        self.check_leads()
        if offset == -1:
            offset = self.high_watermark
        if not 0 <= offset <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {offset} is beyond the high watermark {self.high_watermark}"
            )
        self.log.advance_start(offset)
        self._notify_watchers()
        return offset

    @property
    def low_watermark(self) -> int:
        assert self.leadership is not None, "the leader knows"
        return self.leadership.low_watermark(self.log.log_start_offset)

    def when_deleted(self, offset: int, done: Done, is_over: IsOver | None = None) -> None:
        """Call `done` once every live replica has deleted what is below `offset`."""
        self._deleters.add(offset, done, is_over)
        self._deleters.reached(self.low_watermark)

    # Leaving

    def stop(self, reason: ErrorCode) -> None:
        """Nobody will be served here any more: tell those who wait."""
        waiting = [self._local_writers, self._writers, self._deleters]
        for done in [done for waiters in waiting for done in waiters.take_all()]:
            done(reason)
        for reader in tuple(self.readers):
            reader.wake(self, -1)
        self.readers.clear()
        self._notify_watchers()

    def _notify_watchers(self) -> None:
        for watcher in tuple(self.watchers):
            watcher.notify(urgent=True)

    def fail(self) -> None:
        """The log dir failed."""
        self.offline = True
        self.stop(ErrorCode.KAFKA_STORAGE_ERROR)
