"""Raft at work: it gets one event at a time, and its effects are carried out.

Most of it is done within the turn of the event loop in which something happened, so a Fetch that was parked is answered in the
turn in which its records are written. What takes time (a save, bytes that are not in memory, a snapshot that arrived) holds up
everything behind it. Requests and flushes go on beside, and their ends are events.

Always true: effects are carried out in their order, and all of them before the next event. What is to be saved is on the device
before anything behind it happens (D1). Raft hears of a flush only when it is done (D8, D9). Whatever fails on the disk of the
metadata log is final: nothing is tried again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from math import inf
from typing import Any

from strandline.errors import ErrorCode
from strandline.log.errors import NotCached
from strandline.node.log_effects import perform
from strandline.node.logger import Logger
from strandline.node.quorum.descriptor_retry import offload_with_retry
from strandline.node.quorum.election_file import ElectionFile
from strandline.node.quorum.images import LoadedSnapshot, load
from strandline.node.quorum.metadata_log import MetadataLog
from strandline.node.quorum.sending import UNANSWERED, RaftRequestSender
from strandline.node.quorum.snapshots import CorruptSnapshot, Snapshots
from strandline.node.tasks import to_the_end
from strandline.ports import Clock, Disk
from strandline.raft import effects, events
from strandline.raft.effects import Effect
from strandline.raft.election_state import ElectionState
from strandline.raft.events import Event
from strandline.raft.messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    OffsetAndEpoch,
    RaftFetchRequest,
    RaftFetchResponse,
    Request,
    Response,
)
from strandline.raft.raft import Raft

AnswerTo = Callable[[Response], None]
Work = Coroutine[Any, Any, None]

ANSWER_BYTES_MAX = 8 << 20
"""Of log or snapshot in one answer, whatever was asked for; the first batch comes whole."""
TIMER_GRAIN_S = 0.001


class Driver:
    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        logger: Logger,
        log: MetadataLog,
        snapshots: Snapshots,
        election_file: ElectionFile,
        sending: RaftRequestSender,
        *,
        start_raft: Callable[[ElectionState], Raft],
        on_committed: Callable[[int], None],
        on_leader_changed: Callable[[], None],
        on_progress: Callable[[], None],
        on_snapshot: Callable[[LoadedSnapshot], Awaitable[None]],
        on_failed: Callable[[str], None],
    ) -> None:
        """`on_progress` is called after each event; `on_snapshot` has to let the log begin where the snapshot ends."""
        self.raft: Raft
        self.is_closed = True
        """Raft gets no events, and no effects are carried out: not prepared yet, failed, or stopped."""
        self._disk = disk
        self._clock = clock
        self._logger = logger
        self._log = log
        self._snapshots = snapshots
        self._election_file = election_file
        self._sending = sending
        self._start_raft = start_raft
        self._on_committed = on_committed
        self._on_leader_changed = on_leader_changed
        self._on_progress = on_progress
        self._on_snapshot = on_snapshot
        self._on_failed = on_failed
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._effects: deque[Effect] = deque()
        self._has_begun = self._is_advancing = False
        self._waiting_for: asyncio.Task[None] | None = None
        """An effect that takes time: those behind it wait."""
        self._asked: dict[AnswerTo, Request] = {}
        """The requests that are not answered yet."""
        self._flushing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._tasks: dict[asyncio.Task[None], None] = {}
        """The loop keeps only weak references to tasks."""

    def prepare(self, election: ElectionState) -> None:
        """Events from here on wait until it begins."""
        self.raft = self._start_raft(election)
        self.is_closed = False

    def begin(self) -> None:
        self._has_begun = True
        self._events.appendleft(events.Started())
        self._advance()

    # Events

    def submit(self, request: Request, answer: AnswerTo) -> None:
        if not self.is_closed:
            self._asked[answer] = request
            self.post(events.Received(request, answer))

    def cancel(self, answer: AnswerTo) -> None:
        if self._asked.pop(answer, None) is not None:
            self.post(events.Cancelled(answer))

    def post(self, event: Event) -> None:
        if not self.is_closed:
            self._events.append(event)
            self._advance()

    def _advance(self) -> None:
        """Carry out effects, then take the next event, until there is none or an effect takes time."""
        if not self._has_begun or self._is_advancing or self._waiting_for is not None:
            return
        self._is_advancing = True
        try:
            while not self.is_closed and self._waiting_for is None:
                if self._effects:
                    work = self._carry_out(self._effects.popleft())
                    if work is not None:
                        self._waiting_for = self.spawn(self._wait_for(work))
                        self._waiting_for.add_done_callback(partial(_abandon, work))
                elif self._events:
                    self._effects.extend(self.raft.step(self._events.popleft(), self._clock.monotonic()))
                else:
                    break
        except Exception as error:
            self.fail(error)
        finally:
            self._is_advancing = False
        self._on_progress()
        self._set_timer()

    async def _wait_for(self, work: Work) -> None:
        await to_the_end(work)
        self._waiting_for = None
        self._advance()

    def _set_timer(self) -> None:
        """A timer that fires early looks at the deadline again; so it is set anew only for a sooner one."""
        if self.is_closed or self._waiting_for is not None or self.raft.deadline >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = self.raft.deadline
        delay_s = self._timer_at - self._clock.monotonic()
        # The loop's clock may run a little faster than ours: then this is the rest of a wait, and not worth less.
        self._timer = self._loop.call_later(max(delay_s, TIMER_GRAIN_S) if delay_s > 0 else 0.0, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer, self._timer_at = None, inf
        if self._clock.monotonic() >= self.raft.deadline:
            self.post(events.Tick())
        else:
            self._set_timer()

    # Effects

    def _carry_out(self, effect: Effect) -> Work | None:
        """Do it; or the work that the effects behind it have to wait for."""
        match effect:
            case effects.Save(state):
                return self._save(state)
            case effects.SendRequest(to, request):
                self.spawn(self._send(to, request))
            case effects.SendResponse(answer, response):
                return self._answer(answer, response)
            case effects.AppendControl(epoch, records):
                self._log.append(records, epoch, control=True)
                self._events.append(events.LeaderAppended(self._log.end_offset))
            case effects.AppendFetched(records):
                self._log.append_fetched(records)
                self._flush()
            case effects.Truncate(end_offset):
                self._log.truncate(end_offset)
            case effects.Flush():
                self._flush()
            case effects.HighWatermarkChanged(high_watermark):
                self._on_committed(high_watermark)
            case effects.LeaderChanged(epoch, leader_id):
                self._logger.info("quorum", epoch=epoch, leader=leader_id)
                self._on_leader_changed()
            case effects.StoreChunk(snapshot_id, position, chunk):
                self._snapshots.store(snapshot_id, position, chunk)
            case effects.FinishSnapshot(snapshot_id):
                return self._finish_snapshot(snapshot_id)
            case effects.FailQuorum(reason):
                self.fail(reason)
        return None

    async def _save(self, state: ElectionState) -> None:
        kraft_version, voter_ids = self.raft.kraft_version, self.raft.voters.ids
        await offload_with_retry(
            self._disk,
            lambda: self._election_file.write(state, kraft_version, voter_ids),
            self._log.directory,
            self._logger,
        )

    async def _send(self, to: events.Destination, request: Request) -> None:
        try:
            response = await self._sending.ask(to, request)
        except UNANSWERED:
            self.post(events.RequestUnanswered(to, request))
        else:
            self.post(events.Replied(to, request, response))

    def _answer(self, answer: AnswerTo, response: Response) -> Work | None:
        asked = self._asked.pop(answer, None)
        max_bytes = asked.max_bytes if isinstance(asked, (RaftFetchRequest, FetchSnapshotRequest)) else 0
        max_bytes = min(max_bytes, ANSWER_BYTES_MAX)
        if isinstance(response, RaftFetchResponse) and (offset := response.read_from) is not None:
            try:
                response = self._filled(response, offset, max_bytes)
            except NotCached as cold:
                return self._answer_cold(answer, response, offset, max_bytes, cold)
        elif isinstance(response, FetchSnapshotResponse) and response.error is ErrorCode.NONE:
            return self._answer_chunk(answer, response, max_bytes)
        answer(response)
        return None

    def _filled(self, response: RaftFetchResponse, offset: int, max_bytes: int) -> RaftFetchResponse:
        """With the records from `offset` on. If the log begins behind it by now, the snapshot is named that takes their place."""
        if offset < self._log.start_offset:
            return response._replace(snapshot_id=self._log.latest_snapshot)
        return response._replace(records=self._log.read(offset, max_bytes))

    async def _answer_cold(
        self, answer: AnswerTo, response: RaftFetchResponse, offset: int, max_bytes: int, cold: NotCached
    ) -> None:
        while True:
            await self._log.warm(cold)
            try:
                filled = self._filled(response, offset, max_bytes)
                break
            except NotCached as still:
                cold = still
        answer(filled)

    async def _answer_chunk(self, answer: AnswerTo, response: FetchSnapshotResponse, max_bytes: int) -> None:
        chunk = await self._snapshots.chunk(response.snapshot_id, response.position, max_bytes)
        if chunk is None:
            response = response._replace(error=ErrorCode.SNAPSHOT_NOT_FOUND)
        answer(response._replace(chunk=chunk or b""))

    def _flush(self) -> None:
        if self._flushing is None:
            self._flushing = self.spawn(self._flush_all())

    async def _flush_all(self) -> None:
        """A flush covers what was written before it began; what came meanwhile gets the next one."""
        try:
            while not self.is_closed:
                await to_the_end(perform(self._log.log.flush()))
                self.post(events.Flushed(self._log.flushed_offset))
                if self._log.flushed_offset >= self._log.end_offset:
                    break
        finally:
            self._flushing = None

    async def _finish_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        try:
            loaded = await self._snapshots.finish(snapshot_id, lambda snapshot: load(snapshot_id, snapshot))
        except CorruptSnapshot as error:
            self._logger.warning("a metadata snapshot did not arrive whole", reason=error.message)
            self._events.append(events.SnapshotRefused(snapshot_id))
            return
        await self._on_snapshot(loaded)
        # The files of the log before must not come back beside those of the new one.
        await perform(self._log.log.flush())
        self._events.append(events.SnapshotLoaded(snapshot_id, loaded.voters, loaded.kraft_version))

    # Ending

    def fail(self, reason: str | BaseException) -> None:
        """The node can't go on."""
        if not self.is_closed:
            self.is_closed = True
            self._cancel_timer()
            raised = reason if isinstance(reason, BaseException) else None
            self._logger.error("the quorum failed", reason=str(reason), exc_info=raised)
            self._on_failed(f"the metadata log failed: {reason}")

    async def close(self) -> None:
        """Take part no longer. What was handed to the disk is done when it returns."""
        self.is_closed = True
        self._cancel_timer()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._snapshots.drop_part()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def spawn(self, work: Work) -> asyncio.Task[None]:
        """Run beside; if it fails, the node does."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)


def _abandon(work: Work, _: object) -> None:
    """A node that stops may take the wait away before the work has begun."""
    work.close()
