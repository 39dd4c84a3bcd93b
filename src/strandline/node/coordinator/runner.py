"""One partition of a coordinator's topic that this node leads: its shard, the batches that are not committed yet, the
operations that wait for them.

    loading --> active --> over

What an operation changes is replayed at once and appended at the end of the loop's turn, all that came in the turn as
one batch; what belongs to a transaction, as a batch of its own. A marker is appended at once, behind what was gathered.

Always true: an operation is notified of its records once: that they are committed, or why they can't be; its
`committed` is called when they are, just before that or, if the answer took too long, after it. Nothing is replayed
unless it may be written (rule A3); should the append fail nevertheless, the shard is ahead of its log, and is thrown
away. A read is answered only when everything that it could have seen is committed. Once it is over, no request waits
here any more.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from strandline.coordinator.result import Callback, CoordinatorResult, Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import CorruptBatch
from strandline.log.producers import NO_PRODUCER_ID
from strandline.log.verification_guards import VerificationGuard
from strandline.metadata.image import MetadataImage
from strandline.node.coordinator import transactional
from strandline.node.coordinator.batch import Done, Encoded, PendingBatch
from strandline.node.coordinator.loading import load
from strandline.node.coordinator.shard_spec import RegularWork, S, ShardSpec
from strandline.node.logger import Logger
from strandline.ports import Clock, Disk, is_out_of_handles
from strandline.replica.partition import Partition
from strandline.wire.errors import MalformedRequest

T = TypeVar("T")
Operation = Callable[[S, Moment], CoordinatorResult | None]
Refuse = Callable[[KafkaError], None]
DeletedTopics = frozenset[tuple[str, bytes]]

RELOAD_MIN_S, RELOAD_MAX_S = 1.0, 60.0
"""How long after a load that failed the next one begins: a damaged stretch may be repaired meanwhile."""
TIMERS_PER_TURN_MAX = 1000
"""Before others get their turn."""


@dataclass(slots=True)
class RunnerDependencies:
    """The dependencies that all runners of a node share, whatever they coordinate."""

    image: Callable[[], MetadataImage]
    """The one that is being applied: a partition is led by what it says, before clients are shown it."""
    disk: Disk
    clock: Clock
    logger: Logger
    on_storage_error: Callable[[Partition, OSError], None]
    on_corrupt: Callable[[Partition, CorruptBatch], None]
    on_task_ended: Callable[[asyncio.Task[None]], None]


class ShardRunner(Generic[S]):
    def __init__(
        self,
        partition: Partition,
        spec: ShardSpec[S],
        dependencies: RunnerDependencies,
        on_ahead_of_log: Callable[[ShardRunner[S]], None],
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.shard: S | None = None
        """Set while it is active."""
        self._spec = spec
        self._dependencies = dependencies
        self._on_ahead_of_log = on_ahead_of_log
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._end = 0
        """Of everything that was appended, and of what is just being."""
        self._gathered: list[PendingBatch] = []
        """To be appended at the end of this turn."""
        self._appending: deque[PendingBatch] = deque()
        """What is being appended, without the batch that is just being written."""
        self._waiting: dict[PendingBatch, None] = {}
        """Appended, and not yet committed."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_s = 0.0
        self._loading = self._loop.create_task(self._load())
        self._loading.add_done_callback(dependencies.on_task_ended)

    # Loading

    async def _load(self) -> None:
        spec, dependencies, delay_s = self._spec, self._dependencies, RELOAD_MIN_S
        while True:
            started = self._loop.time()
            shard = spec.new_shard(self.partition.index, self.leader_epoch)
            try:
                loaded = await load(self.partition, shard, spec.framing, dependencies.disk)
            except (KafkaError, MalformedRequest, OSError) as error:
                if isinstance(error, OSError) and not is_out_of_handles(error):
                    dependencies.on_storage_error(self.partition, error)
                    self.stop()
                    return
                if isinstance(error, CorruptBatch):
                    dependencies.on_corrupt(self.partition, error)
                spec.stats.failed_loads += 1
                dependencies.logger.error(
                    f"could not load {spec.content}", partition=str(self.partition), error=str(error)
                )
                await asyncio.sleep(delay_s)
                delay_s = min(2 * delay_s, RELOAD_MAX_S)
            else:
                spec.stats.loaded(loaded.records, self._loop.time() - started)
                if loaded.skipped:
                    dependencies.logger.warning(
                        f"records of {spec.content} were skipped: they are of a version that this software does not know",
                        partition=str(self.partition),
                        records=loaded.skipped,
                    )
                self._begin(shard, loaded.records, self._loop.time() - started)
                return

    def _begin(self, shard: S, records: int, took_s: float) -> None:
        self.shard = shard
        self._end = self.partition.log.log_end_offset
        if records:
            values = {self._spec.content: self._spec.count(shard)}
            self._dependencies.logger.info(
                f"coordinates {self._spec.content}",
                partition=str(self.partition),
                leader_epoch=self.leader_epoch,
                **values,
                records=records,
                took_ms=round(took_s * 1000),
            )
        at = self._moment()
        self._carry_out(shard.loaded(at), at)
        for work in self._spec.regular_work:
            self._work_later(work, at)
        self._arm()

    # Serving

    def write(self, operation: Operation[S], refuse: Refuse) -> None:
        """Have an operation done; what it raises, and that it can't be done yet, goes to `refuse`."""
        shard = self.shard
        if shard is None:
            refuse(self._not_ready())
            return
        at = self._moment()
        try:
            result = operation(shard, at)
        except KafkaError as error:
            refuse(error)
        else:
            self._carry_out(result, at)
        self._arm()

    def read(self, operation: Callable[[S, Moment], T], answer: Callable[[T], None], refuse: Refuse) -> None:
        """Answer from the newest state, once it is committed."""
        shard = self.shard
        if shard is None:
            refuse(self._not_ready())
            return
        at = self._moment()
        try:
            found = operation(shard, at)
        except KafkaError as error:
            refuse(error)
            return

        def done(code: ErrorCode, at: Moment) -> None:
            if code:
                refuse(KafkaError(code))
            else:
                answer(found)

        self._carry_out(CoordinatorResult([], done), at)

    def metadata_changed(self, image: MetadataImage, deleted: DeletedTopics) -> None:
        """There is a newer image, in which these topics are no more.
        A shard that is loaded looks at the newest one itself.
        """
        shard = self.shard
        if shard is None:
            return
        at = self._moment()
        self._carry_out(shard.metadata_changed(image, deleted, at), at)
        self._arm()

    def _not_ready(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_COORDINATOR if self._is_over else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def _moment(self) -> Moment:
        return Moment(self._loop.time(), self._dependencies.clock.wall_ms())

    # Writing

    def _carry_out(self, result: CoordinatorResult | None, at: Moment) -> None:
        """Write what an operation came to; if that can't be, what follows from it."""
        while result is not None:
            if not result.records:
                if self._gathered:
                    self._gathered[-1].wait_for(result)
                    return
                if self.partition.high_watermark < self._end:
                    batch = PendingBatch()
                    batch.wait_for(result)
                    self._waiting[batch] = None
                    self._wait(batch, self._end)
                    return
                if result.committed is not None:
                    result.committed(at)
                code = ErrorCode.NONE
            else:
                code = self._gather(result, at)
                if not code:
                    return
            result = result.done(code, at)

    def _gather(self, result: CoordinatorResult, at: Moment) -> ErrorCode:
        """Replay the records and keep them for the end of this turn; or why they may not be written."""
        code = self._why_not()
        if not code and result.producer is not None:
            code = transactional.why_not(self.partition.log, result.producer, result.guard, self._gathered)
        if code:
            return code
        try:
            encoded = [self._spec.framing.encode(record) for record in result.records]
        except struct.error:
            return ErrorCode.RECORD_LIST_TOO_LARGE  # a name that is too long to be written down
        limit_bytes = self.partition.log.config.max_message_bytes
        gathered = self._gathered
        if not gathered or gathered[-1].producer != result.producer or not gathered[-1].has_room(encoded, limit_bytes):
            batch = PendingBatch(result.producer)
            if not batch.has_room(encoded, limit_bytes) and self._size_of(encoded, at) > limit_bytes:
                return ErrorCode.RECORD_LIST_TOO_LARGE
            if not gathered:
                self._loop.call_soon(self._append)
            gathered.append(batch)
        gathered[-1].add(encoded, at.wall_ms)
        gathered[-1].wait_for(result)
        shard = self.shard
        assert shard is not None, "only an active shard has results"
        if result.replayed:
            producer_id = NO_PRODUCER_ID if result.producer is None else result.producer[0]
            for record in result.records:
                shard.replay(record, at.wall_ms, producer_id)
        self._spec.stats.records += len(result.records)
        self._spec.on_written(result.records)
        return ErrorCode.NONE

    def _why_not(self) -> ErrorCode:
        """Why nothing may be written now."""
        partition = self.partition
        leadership = partition.leadership
        if leadership is None or partition.offline or partition.gone:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NOT_ENOUGH_REPLICAS if leadership.is_under_min_isr else ErrorCode.NONE

    def _size_of(self, encoded: Encoded, at: Moment) -> int:
        alone = PendingBatch()
        alone.add(encoded, at.wall_ms)
        return len(alone.build(self._spec.codec()))

    def _append(self) -> None:
        """The turn is over: write what it brought."""
        batches, self._gathered = self._gathered, []
        self._waiting.update(dict.fromkeys(batches))
        self._appending.extend(batches)
        log = self.partition.log
        self._end = log.log_end_offset + sum(batch.records_count for batch in self._appending)
        while self._appending:
            batch = self._appending.popleft()
            if self._is_over:
                return
            try:
                if code := self._why_not():
                    raise KafkaError(code)
                data, now_ms = batch.build(self._spec.codec()), self._dependencies.clock.wall_ms()
                end_offset = self.partition.append_own(data, now_ms) + batch.records_count
            except (KafkaError, OSError) as error:
                if isinstance(error, OSError) and not is_out_of_handles(error):
                    self._dependencies.on_storage_error(self.partition, error)
                    self.stop()
                    continue
                self._dependencies.logger.warning(
                    f"{self._spec.content} are loaded again: a batch could not be written",
                    partition=str(self.partition),
                    error=str(error),
                )
                self._on_ahead_of_log(self)
            else:
                self._spec.stats.batches += 1
                if batch.producer is not None:
                    log.guards.began(batch.producer[0])
                self._wait(batch, end_offset)

    def _wait(self, batch: PendingBatch, end_offset: int) -> None:
        """Until the high watermark is there, or an answer can wait no longer."""
        self.partition.when_committed(end_offset, partial(self._committed, batch), lambda: batch not in self._waiting)
        if batch in self._waiting:
            batch.timer = self._loop.call_later(self._spec.commit_timeout_s(), self._timed_out, batch)

    def _committed(self, batch: PendingBatch, code: ErrorCode) -> None:
        if batch not in self._waiting:
            return
        # With too few replicas in sync it is committed nevertheless: the high watermark has it.
        if code in (ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND):
            del self._waiting[batch]
            at = self._moment()
            for committed in batch.committed:
                self._contain(partial(committed, at))
            self._settle(batch, ErrorCode.NONE, at)
        else:
            self.stop()

    def _timed_out(self, batch: PendingBatch) -> None:
        self._spec.stats.timeouts += 1
        if not batch.committed:
            del self._waiting[batch]
        self._settle(batch, ErrorCode.REQUEST_TIMED_OUT, self._moment())

    def _settle(self, batch: PendingBatch, code: ErrorCode, at: Moment) -> None:
        """Answer the operations that wait for this batch."""
        if batch.timer is not None:
            batch.timer.cancel()
        dones, batch.dones = batch.dones, []
        for done in dones:
            self._contain(partial(self._done, done, code, at))
        self._arm()

    def _done(self, done: Done, code: ErrorCode, at: Moment) -> None:
        self._carry_out(done(code, at), at)

    def _contain(self, step: Callable[[], None]) -> None:
        """An exception in one of many waiting operations does not stop the others."""
        try:
            step()
        except Exception as error:
            self._dependencies.logger.error(
                f"an operation on {self._spec.content} failed", partition=str(self.partition), error=repr(error)
            )

    # Transactions

    def note_question(self, producer: tuple[int, int], *, bumps_epoch: bool) -> VerificationGuard | None:
        """Before the coordinator of a transaction is asked about this partition: the guard that its records will need;
        None if the transaction has records here already. KafkaError if the epoch is an old one (TXN-V2)."""
        if self.shard is None:
            raise self._not_ready()
        now_ms = self._dependencies.clock.wall_ms()
        return transactional.note_question(self.partition.log, producer, now_ms, bumps_epoch=bumps_epoch)

    def write_marker(
        self,
        producer: tuple[int, int],
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """End a producer's transaction, behind all that was gathered before. `done` is called once, with NONE when the
        marker is committed; by then the shard has its outcome (TXN-T35)."""
        self._append()
        shard = self.shard
        if shard is None:
            done(self._not_ready().code)
            return
        try:
            end_offset = self.partition.append_marker(
                producer,
                commit,
                coordinator_epoch,
                self._dependencies.clock.wall_ms(),
                transaction_version=transaction_version,
            )
        except KafkaError as error:
            done(error.code)
            return
        except OSError as error:
            if not is_out_of_handles(error):
                self._dependencies.on_storage_error(self.partition, error)
                self.stop()
            done(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self._end = self.partition.log.log_end_offset
        shard.replay_marker(producer[0], commit=commit)
        batch = PendingBatch()
        batch.wait_for(CoordinatorResult([], lambda code, at: done(code)))
        self._waiting[batch] = None
        self._wait(batch, end_offset)

    # Timers

    def _arm(self) -> None:
        """Be woken for the next timer. One that was put off is found out when its old time comes."""
        shard = self.shard
        next_s = None if shard is None else shard.timers.next_s
        if next_s is None or (self._alarm is not None and self._alarm_s <= next_s):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_s = next_s
        self._alarm = self._loop.call_at(next_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        shard = self.shard
        assert shard is not None, "a shard that is unloaded has no alarm"
        at = self._moment()
        for _ in range(TIMERS_PER_TURN_MAX):
            callback = shard.timers.take(at.now)
            if callback is None or self._is_over:
                break
            self._contain(partial(self._due, callback, at))
        self._arm()

    def _due(self, callback: Callback, at: Moment) -> None:
        self._carry_out(callback(at), at)

    def _work_later(self, work: RegularWork[S], at: Moment) -> None:
        shard = self.shard
        assert shard is not None, "only an active shard has regular work"
        shard.timers.schedule((work.name,), at.now + work.interval_s(), partial(self._work, work))

    def _work(self, work: RegularWork[S], at: Moment) -> CoordinatorResult | None:
        shard = self.shard
        assert shard is not None, "only an active shard has timers"
        self._work_later(work, at)
        return work.do(shard, at)

    # Leaving

    def stop(self) -> None:
        """This node no longer coordinates this shard: waiting requests are answered with NOT_COORDINATOR."""
        if self._is_over:
            return
        self._is_over = True
        if self._alarm is not None:
            self._alarm.cancel()
        at = self._moment()
        batches = [*self._waiting, *self._gathered]
        self._waiting.clear()
        self._gathered = []
        for batch in batches:
            if batch.timer is not None:
                batch.timer.cancel()
            for done in batch.dones:
                self._contain(partial(_drop, done, at))
        shard, self.shard = self.shard, None
        if shard is not None:
            shard.unload()
        self._loading.cancel()


def _drop(done: Done, at: Moment) -> None:
    result = done(ErrorCode.NOT_COORDINATOR, at)
    while result is not None:
        result = result.done(ErrorCode.NOT_COORDINATOR, at)
