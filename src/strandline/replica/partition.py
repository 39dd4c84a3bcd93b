"""One partition on this node: its log, its role, how far it may be read, and which requests wait for that.

Always true: the high watermark never passes `local_end` and moves back only where the log itself is cut; `local_end` is what this
node vouches for: the log end, or what is on the device once `flush.messages` records are not. A partition has one role at a time:
its node leads it (`leadership.py`) or follows (`following.py`), as the metadata that it was given last says, in that leader epoch.
A leader commits only what every in-sync replica has, and takes records for acks=all only while there are
`min.insync.replicas` of them; a follower takes its leader's high watermark. Waiting requests are completed
by the append, the flush or the fetch that satisfies them, never by polling.
"""

from __future__ import annotations

from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.log import Appended, Log
from strandline.log.record_checks import CheckedRecords, RecordWork
from strandline.log.verification_guards import VerificationGuard
from strandline.metadata.image import INTERNAL_TOPICS, PartitionImage
from strandline.replica.dependencies import PartitionDependencies, WaitingReader, Watcher
from strandline.replica.following import STALE, Following, TakenFetch
from strandline.replica.isr_state import IsrAnswer, ProposedIsr
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
        self.local_end = log.log_end_offset
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        self.offline = False
        """The log dir failed: nothing can be read or written until a restart, whatever the role."""
        self.gone = False
        """The topic was deleted, or moved elsewhere."""
        self.last_flush = 0.0
        """On the monotonic clock."""
        self.readers: dict[WaitingReader, None] = {}
        self.watchers: dict[Watcher, None] = {}
        self._dependencies = dependencies
        self._writers = Waiters()
        """Requests that wait for the high watermark, and below for `local_end` and for the low watermark."""
        self._local_writers = Waiters()
        self.deleters = Waiters()
        self._announced_bytes = log.appended_bytes
        """Of the bytes appended since the log was opened, those already announced to waiting readers."""
        if self.high_watermark < log.log_end_offset:
            # What was in the log before, above the watermark, is new to them too; how much that is is known by the segment.
            self._announced_bytes -= log.bytes_after(self.high_watermark)
        self.role: Leadership | Following = Following(self)
        self._take_role(epoch_before=-1)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    # Roles

    @property
    def leader_epoch(self) -> int:
        """As the metadata says that was applied last."""
        return self.state.leader_epoch

    @property
    def leads(self) -> bool:
        return isinstance(self.role, Leadership)

    @property
    def leadership(self) -> Leadership | None:
        """The role, while this node leads."""
        role = self.role
        return role if isinstance(role, Leadership) else None

    def apply(self, state: PartitionImage) -> bool:
        """Take what the metadata says of this partition; True if it must be fetched anew, from its leader or no more.

        An answer of the controller may have come before the record that it speaks of: the record was then already applied.
        """
        role = self.role
        if state is self.state or (isinstance(role, Leadership) and state.partition_epoch < role.isr.partition_epoch):
            return False
        before, self.state = self.state, state
        assert state.leader_epoch >= before.leader_epoch, (
            f"{self}: leader epoch {state.leader_epoch} after {before.leader_epoch}"
        )
        if state.leader_epoch > before.leader_epoch:
            self.log.guards.clear()
            self.log.txn_began_ms.clear()
        self._take_role(before.leader_epoch)
        self.check_invariants()
        return (state.leader, state.leader_epoch) != (before.leader, before.leader_epoch)

    def _take_role(self, epoch_before: int) -> None:
        if self.state.leader == self._dependencies.node_id:
            self._lead(epoch_before)
        else:
            self.follow(epoch_before)

    def _lead(self, epoch_before: int) -> None:
        """Lead in this epoch. A leader epoch begins at the log end even while it has no record (rule A12)."""
        state, end, before = self.state, self.log.log_end_offset, self.leadership
        is_new = state.leader_epoch > epoch_before or before is None
        replicas = () if before is None else tuple(before.followers)
        if is_new:
            self.log.epochs.assign(state.leader_epoch, end)
        if before is None:
            leadership = self.role = Leadership(self, self._dependencies)
        else:
            leadership = before
            leadership.renew(epoch_before)
        if is_new:
            reason = f"leader epoch {state.leader_epoch} begins at {end}"
            facts = {"high_watermark": self.high_watermark, "isr": list(state.isr)}
            self._dependencies.note("became leader", self, reason, **facts)
        if is_new or replicas != tuple(leadership.followers):
            # Followers that were ahead of our metadata, with the epoch or as new replicas, are served now.
            self._notify_watchers()
        leadership.expand_isr()
        leadership.advance()
        if self.deleters:
            self.deleters.reached(leadership.low_watermark)

    def follow(self, epoch_before: int) -> None:
        """Follow another node, or none: waiting requests must look for the leader (rule A5)."""
        state, was_leader = self.state, self.leads
        is_new = state.leader_epoch > epoch_before
        if is_new or was_leader:
            self.role = Following(self)
        if was_leader:
            self.stop(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if is_new:
            reason = f"node {state.leader} leads in epoch {state.leader_epoch}" if state.has_leader else "nobody leads"
            self._dependencies.note("became follower", self, reason, log_end_offset=self.log.log_end_offset)

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
        guard: VerificationGuard | None = None,
    ) -> Appended:
        """Append a client's batch; KafkaError if it may not be. `for_all`: only if enough replicas are in sync (rule A3).
        `guard`: of a transactional batch, as it was noted when the coordinator was asked (TXN-V3).

        RecordsBesideLoop if its records take too long to check here: then again with what `check_beside` found.
        """
        role = self.role
        if self.offline or not isinstance(role, Leadership):
            self.check_leads()
            raise AssertionError("a partition that is led takes records")
        if for_all:
            self._check_min_isr(role)
        log, stats = self.log, self.stats
        end_before = log.log_end_offset
        appended = log.append_as_leader(batch, self.state.leader_epoch, now_ms, work, checked, guard)
        stats.total_produce_requests += 1
        stats.bytes_in += len(batch)
        stats.messages_in += log.log_end_offset - end_before
        self.after_append()
        return appended

    def _check_min_isr(self, leadership: Leadership) -> None:
        if leadership.is_under_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {len(leadership.isr.isr)} in-sync replicas and needs {self.min_isr} (min.insync.replicas)",
            )

    def append_marker(
        self, producer: tuple[int, int], commit: bool, coordinator_epoch: int, now_ms: int, *, transaction_version: int
    ) -> int:
        """Write the end of a transaction; the offset after it. It asks for as many replicas in sync as records do (TXN-P24)."""
        self.check_leads()
        leadership = self.leadership
        assert leadership is not None, "a partition that is led"
        self._check_min_isr(leadership)
        self.log.append_marker(
            producer,
            commit,
            coordinator_epoch,
            self.state.leader_epoch,
            now_ms,
            transaction_version=transaction_version,
        )
        self.after_append()
        return self.log.log_end_offset

    def append_own(self, batch: bytearray, now_ms: int) -> int:
        """Append a batch that this node made; its base offset."""
        self.check_leads()
        base_offset = self.log.append_own(batch, self.state.leader_epoch, now_ms)
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
            role = self.role
            if isinstance(role, Leadership):
                role.advance()
            elif role.leader_high_watermark > self.high_watermark:
                # The leader said this before the records were on the device here, and will not say it again.
                self.raise_high_watermark(min(role.leader_high_watermark, end_offset))

    def raise_high_watermark(self, offset: int) -> None:
        """Everything below `offset` is committed."""
        assert offset <= self.local_end, f"{self}: high watermark {offset} above {self.local_end}"
        self.high_watermark = offset
        if self._writers:
            role = self.role
            assert isinstance(role, Leadership), "requests wait for the watermark of a leader only"
            is_enough = len(role.isr.maximal) >= self.min_isr
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
        role = self.role
        assert isinstance(role, Leadership), "followers fetch from the leader"
        return role.follower_fetched(replica_id, asked, broker_epoch, now)

    def follower_was_caught_up(self, replica_id: int, broker_epoch: int, at: float) -> None:
        """A follower fetched at that time and there was nothing new for it."""
        role = self.role
        if isinstance(role, Leadership):
            role.follower_was_caught_up(replica_id, broker_epoch, at)

    def brokers_changed(self) -> None:
        """The metadata has another set of brokers: some may be eligible now, and others known that were ahead of it."""
        for watcher in tuple(self.watchers):
            watcher.brokers_changed()
        role = self.role
        if isinstance(role, Leadership):
            role.expand_isr()

    def shrink_isr(self, now: float) -> None:
        """Have those leave the ISR that were behind for too long (rule B2); to be called now and then."""
        role = self.role
        if isinstance(role, Leadership) and not self.offline:
            role.shrink_isr(now)

    def isr_answered(self, proposal: ProposedIsr, answer: IsrAnswer | ErrorCode) -> None:
        role = self.role
        if isinstance(role, Leadership) and not self.gone:
            role.isr_answered(proposal, answer)

    # Following

    def fetch_position(self, max_bytes: int) -> FetchPartition | None:
        """What to ask the leader for; None if there is nothing to ask now.

        The offset asked for says what this node has, so it waits until what `flush.messages` asks for is on the device.
        """
        role = self.role
        if isinstance(role, Leadership) or self.offline or self.gone or self.local_end < self.log.log_end_offset:
            return None
        return role.position(max_bytes)

    def take(self, asked: FetchPartition, answer: FetchedPartition, now_ms: int) -> TakenFetch:
        """Take the leader's answer; an OSError is the log dir's."""
        role = self.role
        if isinstance(role, Leadership) or self.offline or self.gone:
            return STALE
        return role.take(asked, answer, now_ms)

    def reset(self, leader_start: int, leader_end: int) -> int:
        """After OFFSET_OUT_OF_RANGE: cut the log or begin it anew, as the leader's start and end say; where to fetch next."""
        role = self.role
        if isinstance(role, Following) and not (self.offline or self.gone):
            role.reset(leader_start, leader_end)
        return self.log.log_end_offset

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
        self.check_invariants()
        self._dependencies.note("truncated", self, reason, log_end_offset=log.log_end_offset, was=end_before)

    # Reading

    @property
    def last_stable_offset(self) -> int:
        """Up to here every transaction is decided. One that began below the log start holds back what is left of it (TXN-P7)."""
        log = self.log
        unstable = log.producers.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return min(self.high_watermark, max(unstable, log.log_start_offset))

    def readable_end(self, isolation_level: int) -> int:
        if isolation_level == READ_UNCOMMITTED:
            return self.high_watermark
        if isolation_level == READ_COMMITTED:
            return self.last_stable_offset
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"there is no isolation level {isolation_level}")

    @property
    def is_behind_its_epoch(self) -> bool:
        """A new leader that has not yet committed all that it began with: it may not say where the log ends (KIP-207). A
        transaction that is open over an election does not count: it may go on for as long as it likes (TXN-P10)."""
        role = self.role
        return isinstance(role, Leadership) and self.high_watermark < role.start_offset

    def check_leader_epoch(self, current_leader_epoch: int, *, leader_only: bool = True) -> None:
        """Refuse one who knows another leader epoch than ours (KIP-320, rule A6), or whom we can't serve because we do not
        lead; -1 means it does not say."""
        leader_epoch = self.state.leader_epoch
        if current_leader_epoch < 0 or current_leader_epoch == leader_epoch:
            if leader_only or self.offline:
                self.check_leads()
            return
        if current_leader_epoch < leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"epoch {current_leader_epoch} is older than {leader_epoch}"
            )
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"epoch {current_leader_epoch} is newer than {leader_epoch}")

    def check_online(self) -> None:
        if self.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log dir of {self} is offline")

    def check_leads(self) -> None:
        self.check_online()
        if not isinstance(self.role, Leadership):
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
        role = self.role
        assert isinstance(role, Leadership), "the leader knows"
        return role.low_watermark

    def when_deleted(self, offset: int, done: Done, is_over: IsOver | None = None) -> None:
        """Call `done` once every live replica has deleted what is below `offset`."""
        self.deleters.add(offset, done, is_over)
        self.deleters.reached(self.low_watermark)

    # Leaving

    def stop(self, reason: ErrorCode) -> None:
        """Serve no request here any more: those that wait are answered with the reason."""
        waiting = [self._local_writers, self._writers, self.deleters]
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

    def drop(self) -> None:
        """The topic was deleted, or the replica moved elsewhere."""
        self.gone = True
        self.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    # Invariants

    def check_invariants(self) -> None:
        """What must hold between two turns of the event loop; the simulator asks after each of them, production where the role
        changes or the log is cut. Of one that is offline or gone nothing is asked: a cut may have failed half way."""
        if self.offline or self.gone:
            return
        log, role = self.log, self.role
        end = log.log_end_offset
        assert log.log_start_offset <= self.high_watermark, f"{self}: log start {log.log_start_offset} is not committed"
        assert self.high_watermark <= self.local_end <= end, f"{self}: {self.high_watermark}, {self.local_end}, {end}"
        assert self._writers.all_wait_for_more(self.high_watermark), f"{self}: {self.high_watermark} woke no writer"
        assert self._local_writers.all_wait_for_more(self.local_end), f"{self}: {self.local_end} woke no writer"
        if isinstance(role, Leadership):
            role.check_invariants()
        else:
            assert self.state.leader != self._dependencies.node_id, f"{self} follows itself"
            assert not self._writers, f"{self}: requests wait at a follower"
            assert not self.deleters, f"{self}: requests wait at a follower"
