"""Fetch (1), versions 4-18: read record batches, waiting for them if need be.

v4 brings isolation levels, v5 log start offsets, v7 sessions (KIP-227), v9 leader epochs (KIP-320), v11 racks, v12 is flexible
and finds diverging logs, v13 names topics by id, v15 moves the replica's state, v16 tells node endpoints, v17 and v18 add what
followers say of themselves.
A consumer of more than 10,000 partitions of this broker has no session, names all of them each time, and is answered in slices; a
request names 50,000 topics and partitions at most.
A follower's Fetch is answered in `follower_fetch.py`. Consumers may read from followers, below their high watermark (KIP-392).
Left out: nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from strandline.api.cluster import leader_hints
from strandline.api.context import NodeContext, RequestContext, code_of, note_failure, wait_s
from strandline.api.fetching import cold_reads, follower_fetch
from strandline.api.fetching.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SESSION_PARTITIONS_MAX,
    FetchSession,
    Place,
)
from strandline.api.fetching.preferred_replica import preferred_read_replica
from strandline.api.fetching.reading import absence, diverging, find
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.api.requests.slices import in_turns
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import CorruptBatch, NotCached
from strandline.ports import Buffer
from strandline.records.header import iterate
from strandline.replica.partition import READ_COMMITTED, Partition
from strandline.sliced_work import Work
from strandline.wire import fetch as wire
from strandline.wire.errors import MalformedRequest
from strandline.wire.fetch import FetchedPartition, FetchPartition, FetchRequest

KEY, VERSIONS, RAW = wire.KEY, wire.VERSIONS, True

RACK_SINCE = 11
"""From here on a consumer knows that it may read from a follower."""

PARTITIONS_AT_ONCE_MAX = 100
"""Read between two looks at the clock, of a wide Fetch: one that names more partitions than a session may have."""

WIDE_FETCHES_MAX = 16
"""In progress at once: each holds some 16 MiB. One more ends its connection, and its consumer asks again a little later."""

COLD_READS_MAX = 16
"""How often one Fetch may wait for the device before it answers with what is in memory."""


def handle(frame: memoryview, ctx: RequestContext, position: int) -> MaybePending[list[Buffer]]:
    is_large = len(frame) > wire.ENTRIES_MAX * wire.ENTRY_BYTES_MIN
    request = wire.parse(ctx.version, frame, position, _entries_max(ctx) if is_large else wire.ENTRIES_MAX)
    if request.replica_id >= 0:
        return follower_fetch.handle(request, ctx)
    if is_large:
        _refuse_too_wide(request, ctx)
    try:
        session, full = _session(request, ctx)
    except KafkaError as error:
        return wire.write_response(ctx.version, [], error_code=error.code)
    wanted = _wanted(request, session)
    fetch = _Fetch(ctx, request, session, full, wanted)
    if len(wanted) > SESSION_PARTITIONS_MAX:
        return fetch.in_slices()
    try:
        if fetch.try_now():
            return fetch.body()
    except NotCached as cold:
        return fetch.warmed(cold)
    return fetch.wait()


def _entries_max(ctx: RequestContext) -> int:
    for_brokers = ctx.may_act_as_broker and ctx.node.config.is_for_brokers_alone(ctx.listener)
    return wire.BROKER_ENTRIES_MAX if for_brokers else wire.ENTRIES_MAX


def _refuse_too_wide(request: FetchRequest, ctx: RequestContext) -> None:
    """Before anything more is made of it."""
    entries = len(request.topics) + len(request.forgotten)
    entries += sum(len(each) for _, each in request.topics) + sum(len(each) for _, each in request.forgotten)
    if entries > wire.ENTRIES_MAX:
        raise MalformedRequest(f"a consumer's Fetch of {entries} topics and partitions, more than {wire.ENTRIES_MAX}")
    if ctx.node.limits.wide_fetches_count >= WIDE_FETCHES_MAX:
        raise MalformedRequest(f"a Fetch of {entries} topics and partitions while {WIDE_FETCHES_MAX} wide ones wait")


def _session(request: FetchRequest, ctx: RequestContext) -> tuple[FetchSession | None, bool]:
    """The session to answer in, if any, and whether every partition must be in the answer."""
    sessions = ctx.node.fetches.sessions
    by_id = ctx.version >= wire.TOPIC_ID_SINCE
    now = ctx.loop.time()
    if ctx.version < wire.SESSION_SINCE or request.session_epoch == FINAL_EPOCH:
        if request.session_id:
            sessions.end(request.session_id)
        return None, True
    if request.session_epoch == INITIAL_EPOCH:
        if request.session_id:
            sessions.end(request.session_id)
        return sessions.begin(request.topics, by_id=by_id, now=now), True
    session = sessions.resume(
        request.session_id, request.session_epoch, request.topics, request.forgotten, by_id=by_id, now=now
    )
    return session, False


def _wanted(request: FetchRequest, session: FetchSession | None) -> list[tuple[Place, FetchPartition]]:
    if session is not None:
        return [(place, cached.wanted) for place, cached in session.partitions.items()]
    # Of a partition that is named twice the last offset counts, as in Kafka.
    return list({(topic, p.partition): p for topic, partitions in request.topics for p in partitions}.items())


class _Fetch:
    """One Fetch on its way: tried at once, then each time something it waits for has happened."""

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        session: FetchSession | None,
        full: bool,
        wanted: list[tuple[Place, FetchPartition]],
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._session = session
        self._full = full
        self._wanted = wanted
        self._deadline = ctx.loop.time() + wait_s(request.max_wait_ms)
        self._answers: list[tuple[Place, FetchedPartition]] = []
        self._budget = self._found = self._missing_bytes = 0
        self._at_once = False
        self._is_withheld = False
        """Whether an open transaction hides records: how many bytes its end will bring is not known."""
        self._later: PendingReply[list[Buffer]] | None = None
        self._watched: list[Partition] = []
        self._timer: asyncio.TimerHandle | None = None
        self._cold: asyncio.Task[None] | None = None
        self._woken: asyncio.Future[None] | None = None
        """Of a Fetch that is read in slices: done when something it waits for has happened."""

    def try_now(self) -> bool:
        """Read; True if that is enough to answer."""
        self._begin()
        self._read_some(self._wanted)
        return self._is_enough()

    def _begin(self) -> None:
        limit = min(max(self._request.max_bytes, 0), self._ctx.node.config.fetch_max_bytes)
        self._budget = min(limit, self._ctx.reply_room())
        self._found, self._at_once = 0, not self._wanted
        self._answers, self._is_withheld = [], False

    def _read_some(self, places: Sequence[tuple[Place, FetchPartition]]) -> None:
        request, budget, found, at_once = self._request, self._budget, self._found, self._at_once
        try:
            for place, wanted in places:
                answer = self._read(place, wanted, budget - found, first=not found)
                self._answers.append((place, answer))
                found += len(answer.records)
                at_once = at_once or answer.error_code != 0 or answer.diverging_epoch is not None
                at_once = at_once or answer.preferred_read_replica >= 0
                if request.isolation_level == READ_COMMITTED and answer.last_stable_offset < answer.high_watermark:
                    self._is_withheld = True
        finally:  # some may be read although the bytes of the next are not in memory
            self._found, self._at_once = found, at_once

    def _is_enough(self) -> bool:
        self._missing_bytes = min(self._request.min_bytes, self._budget) - self._found
        if self._at_once or self._missing_bytes <= 0 or self._ctx.loop.time() >= self._deadline:
            return True
        self._answers = []
        return False

    def _read(self, place: Place, wanted: FetchPartition, budget: int, *, first: bool) -> FetchedPartition:
        node, index = self._ctx.node, wanted.partition
        partition = find(node, place)
        if partition is None:
            return _absent(node, place)
        try:
            partition.check_leader_epoch(wanted.current_leader_epoch, leader_only=self._ctx.version < RACK_SINCE)
            replica = preferred_read_replica(node, partition, self._request.rack_id, wanted.fetch_offset)
            if replica is not None:
                return _empty(partition, place, preferred_read_replica=replica)
            return _read(partition, wanted, budget, self._request.isolation_level, min_one=first)
        except (KafkaError, OSError) as error:
            note_failure(node, partition, error)
            return _failed(partition, index, error)

    def body(self) -> list[Buffer]:
        """The answer as it stands; the session notes what is sent. Records are handed on, not kept."""
        topics: dict[str | bytes, list[FetchedPartition]] = {}
        served = []
        for place, answer in self._answers:
            partition = find(self._ctx.node, place)
            if answer.error_code:
                self._ctx.node.request_stats.failed(KEY, answer.error_code)
            if partition is not None:
                _count(partition, answer)
            if self._session is not None:
                cached = self._session.partitions.get(place)
                is_new = cached.update(answer) if cached is not None else True
                if not is_new and not self._full:
                    continue
                if answer.records:
                    served.append(place)
            topics.setdefault(place[0], []).append(answer)
        if self._session is not None:
            self._session.rotate(served)
        return self._written(topics)

    def _written(self, topics: dict[str | bytes, list[FetchedPartition]]) -> list[Buffer]:
        self._answers = []
        session_id = self._session.session_id if self._session is not None else 0
        hinted = [p.current_leader[0] for answers in topics.values() for p in answers if p.current_leader is not None]
        endpoints = leader_hints.endpoints(self._ctx, hinted) if hinted else ()
        return wire.write_response(self._ctx.version, list(topics.items()), session_id=session_id, endpoints=endpoints)

    # Waiting

    def wait(self) -> PendingReply[list[Buffer]]:
        self._later = PendingReply(may_be_overtaken=False, on_cancel=self._cancel)
        self._watch()
        self._timer = self._ctx.loop.call_at(self._deadline, self._time_is_up)
        return self._later

    def _watch(self) -> None:
        partitions = (find(self._ctx.node, place) for place, _ in self._wanted)
        self._watched = [partition for partition in partitions if partition is not None]
        for partition in self._watched:
            partition.readers[self] = None

    def wake(self, partition: Partition, new_bytes: int) -> None:
        if new_bytes < 0:
            self._time_is_up()
            return
        self._missing_bytes -= new_bytes
        if self._missing_bytes <= 0 or self._is_withheld:
            self._try_again()

    def _time_is_up(self) -> None:
        self._deadline = 0.0
        self._try_again()

    def _try_again(self) -> None:
        """Answer if there is enough now. Raises nothing: the append that woke this Fetch has no part in it."""
        if self._woken is not None:
            if not self._woken.done():
                self._woken.set_result(None)
            return
        assert self._later is not None
        if self._later.done or self._cold is not None:
            return
        try:
            # What came may lie behind an open transaction, or be more than one read may take: then the wait goes on.
            if self.try_now():
                self._leave()
                self._later.complete(self.body())
        except NotCached as cold:
            self._leave()
            self._cold = self._ctx.loop.create_task(self._finish_cold(self._later, cold))
        except Exception as error:
            self._leave()
            self._later.fail(error)

    async def _finish_cold(self, later: PendingReply[list[Buffer]], cold: NotCached) -> None:
        try:
            reply: list[Buffer] | Exception = await self.warmed(cold)
        except Exception as error:
            reply = error
        if not later.done:
            later.complete(reply)

    def _cancel(self) -> None:
        self._leave()
        if self._cold is not None:
            self._cold.cancel()

    def _leave(self) -> None:
        for partition in self._watched:
            partition.readers.pop(self, None)
        self._watched = []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def warmed(self, cold: NotCached) -> list[Buffer]:
        """Have the bytes read beside the event loop, then read again; what stays cold is left for the next Fetch."""
        self._deadline = 0.0
        for _ in range(COLD_READS_MAX):
            partitions = (find(self._ctx.node, place) for place, _ in self._wanted)
            await cold_reads.warm(self._ctx.node, (p for p in partitions if p is not None), cold)
            try:
                self.try_now()
                return self.body()
            except NotCached as still:
                cold = still
        self._answers = [(place, _empty(find(self._ctx.node, place), place)) for place, _ in self._wanted]
        return self.body()

    # More partitions than a session may have

    async def in_slices(self) -> list[Buffer]:
        """The answer of a wide Fetch. It waits once, then answers with what there is."""
        node = self._ctx.node
        if node.limits.wide_fetches_count >= WIDE_FETCHES_MAX:
            raise MalformedRequest(
                f"a Fetch of {len(self._wanted)} partitions, and {WIDE_FETCHES_MAX} such are in progress"
            )
        node.limits.wide_fetches_count += 1
        self._woken = self._ctx.loop.create_future()
        self._watch()  # before it reads: what comes meanwhile may be for a partition that is read already
        try:
            if not await self._read_in_slices():
                await asyncio.wait([self._woken], timeout=self._deadline - self._ctx.loop.time())
                self._deadline = 0.0
                await self._read_in_slices()
            async with self._ctx.large_requests.working():
                topics = await in_turns(self._by_topic(), node.clock.monotonic)
            return self._written(topics)
        finally:
            self._leave()
            node.limits.wide_fetches_count -= 1

    async def _read_in_slices(self) -> bool:
        """Read; True if that is enough to answer."""
        node, cold_reads_left = self._ctx.node, COLD_READS_MAX
        self._begin()
        while len(self._answers) < len(self._wanted):
            try:
                async with self._ctx.large_requests.working():
                    await in_turns(self._read_part_by_part(), node.clock.monotonic)
            except NotCached as cold:
                place, _ = self._wanted[len(self._answers)]
                partition = find(node, place)
                if cold_reads_left and partition is not None:
                    cold_reads_left -= 1
                    await cold_reads.warm(node, (partition,), cold)
                else:
                    self._answers.append((place, _empty(partition, place)))
        return self._is_enough()

    def _read_part_by_part(self) -> Work[None]:
        while (done := len(self._answers)) < len(self._wanted):
            self._read_some(self._wanted[done : done + PARTITIONS_AT_ONCE_MAX])
            yield 0

    def _by_topic(self) -> Work[dict[str | bytes, list[FetchedPartition]]]:
        topics: dict[str | bytes, list[FetchedPartition]] = {}
        for place, answer in self._answers:
            if answer.error_code:
                self._ctx.node.request_stats.failed(KEY, answer.error_code)
            if (partition := find(self._ctx.node, place)) is not None:
                _count(partition, answer)
            topics.setdefault(place[0], []).append(answer)
            yield 0
        return topics


def _count(partition: Partition, answer: FetchedPartition) -> None:
    stats = partition.stats
    stats.total_fetch_requests += 1
    if answer.error_code:
        stats.failed_fetch_requests += 1
    elif answer.records:
        stats.bytes_out += len(answer.records)


def _absent(node: NodeContext, place: Place) -> FetchedPartition:
    """With NOT_LEADER_OR_FOLLOWER it says who leads."""
    topic, index = place
    found = node.metadata.image().topic(topic)
    state = None if found is None else node.metadata.image().partition(found.name, index)
    leader = None if state is None else (state.leader, state.leader_epoch)
    return FetchedPartition(index, absence(node, place), current_leader=leader)


def _failed(partition: Partition, index: int, error: KafkaError | OSError) -> FetchedPartition:
    code, _ = code_of(error)
    if isinstance(error, CorruptBatch) and len(partition.state.replicas) == 1:
        # There is no other copy, so trying again is in vain, and the reader should know.
        code = ErrorCode.CORRUPT_MESSAGE
    if code in leader_hints.HINTED:
        return FetchedPartition(index, code, current_leader=leader_hints.current_leader(partition))
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return FetchedPartition(index, code, partition.high_watermark, -1, partition.log.log_start_offset)
    return FetchedPartition(index, code)


def _empty(partition: Partition | None, place: Place, *, preferred_read_replica: int = -1) -> FetchedPartition:
    if partition is None:
        return FetchedPartition(place[1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return FetchedPartition(
        place[1],
        0,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        preferred_read_replica=preferred_read_replica,
    )


def _read(
    partition: Partition, wanted: FetchPartition, budget: int, isolation_level: int, *, min_one: bool
) -> FetchedPartition:
    log = partition.log
    offset = wanted.fetch_offset
    parted = diverging(partition, wanted)
    stable_offset = partition.last_stable_offset
    if parted is not None:
        return FetchedPartition(
            wanted.partition, 0, partition.high_watermark, stable_offset, log.log_start_offset, diverging_epoch=parted
        )
    limit = partition.readable_end(isolation_level)
    max_bytes = min(wanted.partition_max_bytes, budget)
    records: Buffer = b""
    if offset < limit and (max_bytes > 0 or min_one):
        records = log.read(offset, max_bytes, limit, min_one=min_one)
    aborted = None
    if isolation_level == READ_COMMITTED:
        aborted = []
        if records and log.has_aborted_since(offset, blocking=False):
            # A reader is told of what the bytes hold, not of a million aborted transactions that come after them (TXN-P9).
            end = min(limit, max((header.next_offset for _, header in iterate(records)), default=limit))
            found = log.aborted_between(offset, end, blocking=False)
            aborted = [(txn.producer_id, txn.first_offset) for txn in found]
    return FetchedPartition(
        wanted.partition, 0, partition.high_watermark, stable_offset, log.log_start_offset, records, aborted
    )
