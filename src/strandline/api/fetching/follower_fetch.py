"""A follower's Fetch: what it asks for says what it has, what it gets is everything up to the log end.

Always true: only one that may act as a broker is answered with records (SEC-T6). A follower's position counts only in
the partition's leader epoch, only where the logs agree (rules A6, A7) and only for the registered incarnation of its
broker (SEC-T7); it counts before anything is read for it (rule A15). A partition that can't be served does not hold up
the others. A follower that is ahead of this node's metadata is not refused at once: its Fetch waits until this node has
that metadata, too.
"""

from __future__ import annotations

import asyncio

from strandline.api.context import RequestContext, code_of, note_failure, wait_s
from strandline.api.fetching import cold_reads
from strandline.api.fetching.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from strandline.api.fetching.follower_sessions import NOT_SENT, FollowerSession, Watch
from strandline.api.fetching.reading import absence, diverging, find
from strandline.api.requests.pending_reply import PendingReply
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import NotCached
from strandline.metadata.incarnations import Incarnation, incarnation
from strandline.ports import Buffer
from strandline.replica.partition import Partition
from strandline.wire import fetch as wire
from strandline.wire.fetch import FetchedPartition, FetchPartition, FetchRequest

AHEAD_OF_US = frozenset(
    {
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Errors for a follower that knows newer metadata than this node: it gets them only once its Fetch has waited for that metadata."""


def handle(request: FetchRequest, ctx: RequestContext) -> list[Buffer] | PendingReply[list[Buffer]]:
    if not ctx.may_act_as_broker:
        return _refused(request, ctx)
    try:
        session = _session(request, ctx)
    except KafkaError as error:
        return wire.write_response(ctx.version, [], error_code=error.code)
    session.connection_id = ctx.connection_id
    if session.on_next is not None:
        session.on_next()
    session.take(request.topics, request.forgotten, ctx.loop.time())
    return _ReplicaFetch(ctx, request, session).answer()


def _refused(request: FetchRequest, ctx: RequestContext) -> list[Buffer]:
    """As Kafka answers one that may not act as a broker: each partition, and no session."""
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    ctx.node.request_stats.failed(wire.KEY, code)
    topics = [
        (topic, [FetchedPartition(asked.partition, code) for asked in partitions])
        for topic, partitions in request.topics
    ]
    return wire.write_response(ctx.version, topics)


def _session(request: FetchRequest, ctx: RequestContext) -> FollowerSession:
    sessions = ctx.node.followers.sessions
    by_id = ctx.version >= wire.TOPIC_ID_SINCE
    now = ctx.loop.time()
    if ctx.version < wire.SESSION_SINCE or request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id:
            sessions.end(request.session_id)
        if ctx.version < wire.SESSION_SINCE or request.session_epoch == FINAL_EPOCH:
            return FollowerSession(0, request.replica_id, request.replica_epoch, by_id, now)
        fetching = incarnation(ctx.node.metadata.image(), request.replica_id, request.replica_epoch)
        if fetching is not Incarnation.CURRENT or request.replica_id not in ctx.node.metadata.image().brokers:
            # A sender that only claims to be this broker must not push out a session of the real one.
            return FollowerSession(0, request.replica_id, request.replica_epoch, by_id, now)
        return sessions.begin(request.replica_id, request.replica_epoch, by_id=by_id, now=now)
    return sessions.resume(
        request.session_id, request.session_epoch, request.replica_id, request.replica_epoch, by_id=by_id
    )


class _ReplicaFetch:
    """One Fetch of a follower: answered at once if there is something new for it, else when there is."""

    def __init__(self, ctx: RequestContext, request: FetchRequest, session: FollowerSession) -> None:
        self._ctx = ctx
        self._node = ctx.node
        self._session = session
        self._min_bytes = request.min_bytes
        self._max_bytes = min(max(request.max_bytes, 0), ctx.node.config.fetch_max_bytes)
        self._deadline = ctx.loop.time() + wait_s(request.max_wait_ms)
        self._answers: list[tuple[Watch, FetchedPartition]] = []
        self._later: PendingReply[list[Buffer]] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_scheduled = False
        self._is_new = True
        """It has just come; what comes while it waits is for a later one to say."""

    def answer(self) -> list[Buffer] | PendingReply[list[Buffer]]:
        is_enough = self._collect(final=self._deadline <= self._ctx.loop.time())
        self._is_new = False
        if is_enough:
            return self._reply()
        self._later = PendingReply(may_be_overtaken=True, on_cancel=self._cancelled)
        self._session.on_change = self._schedule
        self._session.on_next = self._interrupted
        self._timer = self._ctx.loop.call_at(self._deadline, self._time_is_up)
        return self._later

    # Waiting

    def _schedule(self) -> None:
        """Not at once: what else is appended in this turn of the loop goes along."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._ctx.loop.call_soon(self._try_again)

    def _try_again(self) -> None:
        self._is_scheduled = False
        if self._later is not None:
            self._finish_if(final=False)

    def _time_is_up(self) -> None:
        self._finish_if(final=True)

    def _finish_if(self, *, final: bool) -> None:
        later = self._later
        assert later is not None
        try:
            if not self._collect(final=final):
                return
            reply: list[Buffer] | Exception = self._reply()
        except Exception as error:
            reply = error
        self._leave()
        later.complete(reply)

    def _interrupted(self) -> None:
        """The follower could not wait, and has asked for more than this Fetch does: what there is goes with that one."""
        later = self._later
        assert later is not None
        self._leave()
        self._answers = []
        later.complete(self._reply())

    def _leave(self) -> None:
        self._later = None
        self._session.on_change = self._session.on_next = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cancelled(self) -> None:
        """The connection is gone, and the follower begins a new session."""
        self._leave()
        self._node.followers.sessions.end(self._session.session_id)
        self._session.close()

    # Reading

    def _collect(self, *, final: bool) -> bool:
        """Gather what is new for the follower; True if it is worth a reply, or if there is no more time."""
        session, answers = self._session, []
        found, at_once = 0, final
        now = self._ctx.loop.time()
        for watch in tuple(session.dirty):
            answer = self._look(watch, self._max_bytes - found, now, first=not found, final=final)
            if answer is None:
                continue
            answers.append((watch, answer))
            found += len(answer.records)
            if answer.error_code or answer.diverging_epoch is not None:
                at_once = True
        self._answers = answers
        return at_once or found >= max(self._min_bytes, 1)

    def _look(self, watch: Watch, budget: int, now: float, *, first: bool, final: bool) -> FetchedPartition | None:
        """The answer for one partition; None if there is nothing (now)."""
        if watch.is_warming:
            return None
        partition = watch.find(lambda place: find(self._node, place))
        if partition is None:
            return self._refusal(watch, absence(self._node, watch.place), final=final)
        try:
            return self._read(watch, partition, budget, now, min_one=first)
        except NotCached as cold:
            self._warm(watch, partition, cold)
            return None
        except (KafkaError, OSError) as error:
            note_failure(self._node, partition, error)
            return self._refusal(watch, code_of(error)[0], final=final)

    def _refusal(self, watch: Watch, code: ErrorCode, *, final: bool) -> FetchedPartition | None:
        # One that has just come, and does not want to wait, is the first of a session: the next one can.
        if code in AHEAD_OF_US and (not final or (self._is_new and self._session.session_id)):
            return None
        return FetchedPartition(watch.asked.partition, code)

    def _read(
        self, watch: Watch, partition: Partition, budget: int, now: float, *, min_one: bool
    ) -> FetchedPartition | None:
        asked, session, log = watch.asked, self._session, partition.log
        _check_epoch(partition, asked, session.replica_id)
        if watch.is_fresh:
            parted = diverging(partition, asked)
            if parted is not None:
                return _diverged(partition, asked.partition, parted)
            watch.was_caught_up = False
            watch.is_ahead = not partition.follower_fetched(session.replica_id, asked, session.broker_epoch, now)
            if not watch.is_ahead:
                watch.is_fresh = False
                watch.was_caught_up = asked.fetch_offset >= log.log_end_offset
        elif self._is_new and not watch.was_caught_up and watch not in session.unconfirmed:
            # It has asked for the same position again, though it did not name it (rule A15).
            partition.follower_fetched(session.replica_id, asked, session.broker_epoch, now)
        end = log.log_end_offset
        records: Buffer = b""
        if asked.fetch_offset < end:
            if self._is_throttled(partition):
                return None
            max_bytes = min(asked.partition_max_bytes, budget)
            if max_bytes > 0 or min_one:
                records = self._node.fetches.shared_reads.read(log, asked.fetch_offset, max_bytes, min_one=min_one)
            if not records:
                return None  # no room in this reply; it stays dirty
        elif (
            partition.high_watermark == watch.sent_high_watermark
            and log.log_start_offset == watch.sent_log_start_offset
        ):
            del session.dirty[watch]
            return None
        return FetchedPartition(asked.partition, 0, partition.high_watermark, -1, log.log_start_offset, records)

    def _is_throttled(self, partition: Partition) -> bool:
        """A follower that is not in sync may be held back while it catches up, so that clients are not."""
        leadership = partition.leadership
        assert leadership is not None
        if self._session.replica_id in leadership.isr.isr:
            return False
        return self._node.followers.is_throttled(partition)

    def _warm(self, watch: Watch, partition: Partition, cold: NotCached) -> None:
        """Have the bytes read beside the event loop; the other partitions go on meanwhile."""
        self._session.dirty.pop(watch, None)
        watch.is_warming = True

        async def warm() -> None:
            await cold_reads.warm(self._node, (partition,), cold)
            watch.is_warming = False
            if self._session.watches.get(watch.place) is watch:  # it was not forgotten meanwhile
                watch.notify(urgent=True)

        self._node.spawn(warm())

    # Replying

    def _reply(self) -> list[Buffer]:
        session = self._session
        topics: dict[str | bytes, list[FetchedPartition]] = {}
        for watch, answer in self._answers:
            topics.setdefault(watch.place[0], []).append(answer)
            if answer.error_code:
                self._node.request_stats.failed(wire.KEY, answer.error_code)
            if answer.error_code or answer.diverging_epoch is not None:
                # It is sent once; the follower then asks again from its new position.
                session.dirty.pop(watch, None)
                watch.is_fresh = True
                watch.sent_high_watermark = watch.sent_log_start_offset = NOT_SENT
                continue
            watch.sent_high_watermark = answer.high_watermark
            watch.sent_log_start_offset = answer.log_start_offset
            session.dirty.pop(watch, None)
            if answer.records:
                session.sent.append(watch)
                if watch.partition is not None:
                    watch.partition.stats.replication_bytes_out += len(answer.records)
                    self._node.followers.replicated(watch.partition, len(answer.records))
        self._answers = []
        if not session.session_id:
            session.close()
        return wire.write_response(self._ctx.version, list(topics.items()), session_id=session.session_id)


def _check_epoch(partition: Partition, asked: FetchPartition, replica_id: int) -> None:
    partition.check_leader_epoch(asked.current_leader_epoch)
    leadership = partition.leadership
    if leadership is None or replica_id not in leadership.followers:
        known = asked.current_leader_epoch >= 0
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"{replica_id} is no replica of {partition} here",
        )


def _diverged(partition: Partition, index: int, parted: tuple[int, int]) -> FetchedPartition:
    return FetchedPartition(
        index, 0, partition.high_watermark, -1, partition.log.log_start_offset, diverging_epoch=parted
    )
