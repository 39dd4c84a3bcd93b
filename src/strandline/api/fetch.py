"""Fetch (1), versions 4-18: read record batches, waiting for them if need be.

v4 brings isolation levels, v5 log start offsets, v7 sessions (KIP-227), v9 leader epochs (KIP-320), v11 racks, v12 is flexible
and finds diverging logs, v13 names topics by id, v15 moves the replica's state, v16 tells node endpoints, v17 and v18 add what
followers say of themselves.
Left out: followers, which come with replication; reading from the closest replica.
"""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.api.context import Broker, RequestContext, code_of
from strandline.api.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, Session
from strandline.api.reply import Later
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import NotCached
from strandline.replica.partition import READ_COMMITTED, Partition
from strandline.wire import fetch as wire
from strandline.wire.fetch import FetchedPartition, FetchPartition, FetchRequest

KEY, VERSIONS, RAW = wire.KEY, wire.VERSIONS, True

COLD_READS_MAX = 16
"""How often one Fetch may wait for the device before it answers with what is in memory."""


def handle(frame: memoryview, ctx: RequestContext, position: int) -> Any:
    request = wire.parse(ctx.version, frame, position)
    try:
        session, full = _session(request, ctx)
    except KafkaError as error:
        return wire.write_response(ctx.version, [], error_code=error.code)
    wanted = _wanted(request, session)
    fetch = _Fetch(ctx, request, session, full, wanted)
    try:
        if fetch.try_now():
            return fetch.body()
    except NotCached as cold:
        return fetch.warmed(cold)
    return fetch.wait()


def _session(request: FetchRequest, ctx: RequestContext) -> tuple[Session | None, bool]:
    """The session to answer in, if any, and whether every partition must be in the answer."""
    sessions = ctx.broker.fetch_sessions
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


def _wanted(request: FetchRequest, session: Session | None) -> list[tuple[Place, FetchPartition]]:
    if session is not None:
        return [(place, cached.wanted) for place, cached in session.partitions.items()]
    return [((topic, p.partition), p) for topic, partitions in request.topics for p in partitions]


class _Fetch:
    """One Fetch on its way: tried at once, then each time something it waits for has happened."""

    def __init__(
        self,
        ctx: RequestContext,
        request: FetchRequest,
        session: Session | None,
        full: bool,
        wanted: list[tuple[Place, FetchPartition]],
    ) -> None:
        self._ctx = ctx
        self._request = request
        self._session = session
        self._full = full
        self._wanted = wanted
        self._deadline = ctx.loop.time() + max(request.max_wait_ms, 0) / 1000
        self._answers: list[tuple[Place, FetchedPartition]] = []
        self._missing_bytes = 0
        self._later: Later | None = None
        self._watched: list[Partition] = []
        self._timer: Any = None
        self._cold: asyncio.Task[None] | None = None

    def try_now(self) -> bool:
        """Read; True if that is enough to answer."""
        request = self._request
        budget = min(max(request.max_bytes, 0), self._ctx.broker.config.fetch_max_bytes)
        found, at_once = 0, not self._wanted
        self._answers = []
        for place, wanted in self._wanted:
            answer = self._read(place, wanted, budget - found, first=not found)
            self._answers.append((place, answer))
            found += len(answer.records)
            at_once = at_once or answer.error_code != 0 or answer.diverging_epoch is not None
        self._missing_bytes = min(request.min_bytes, budget) - found
        if at_once or self._missing_bytes <= 0 or self._ctx.loop.time() >= self._deadline:
            return True
        self._answers = []
        return False

    def _read(self, place: Place, wanted: FetchPartition, budget: int, *, first: bool) -> FetchedPartition:
        broker, index = self._ctx.broker, wanted.partition
        partition = _find(broker, place)
        if partition is None:
            return _absent(broker, place[0], index)
        try:
            return _read(partition, wanted, budget, self._request.isolation_level, min_one=first)
        except (KafkaError, OSError) as error:
            if isinstance(error, OSError):
                broker.on_storage_error(partition, error)
            return _failed(partition, index, error)

    def body(self) -> Any:
        """The answer as it stands, told to the session. Records are handed on, not kept."""
        topics: dict[str | bytes, list[FetchedPartition]] = {}
        served = []
        for place, answer in self._answers:
            if self._session is not None:
                cached = self._session.partitions.get(place)
                told = cached.update(answer) if cached is not None else True
                if not told and not self._full:
                    continue
                if answer.records:
                    served.append(place)
            topics.setdefault(place[0], []).append(answer)
        if self._session is not None:
            self._session.rotate(served)
        self._answers = []
        session_id = self._session.session_id if self._session is not None else 0
        return wire.write_response(self._ctx.version, list(topics.items()), session_id=session_id)

    # Waiting

    def wait(self) -> Later:
        self._later = Later(may_be_overtaken=False, on_cancel=self._cancel)
        partitions = (_find(self._ctx.broker, place) for place, _ in self._wanted)
        self._watched = [partition for partition in partitions if partition is not None]
        for partition in self._watched:
            partition.readers[self] = None
        self._timer = self._ctx.loop.call_at(self._deadline, self._time_is_up)
        return self._later

    def wake(self, partition: Partition, new_bytes: int) -> None:
        if new_bytes < 0:
            self._time_is_up()
            return
        self._missing_bytes -= new_bytes
        if self._missing_bytes <= 0:
            self._try_again()

    def _time_is_up(self) -> None:
        self._deadline = 0.0
        self._try_again()

    def _try_again(self) -> None:
        """Answer if there is enough now. Raises nothing: whoever woke us has no part in this."""
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

    async def _finish_cold(self, later: Later, cold: NotCached) -> None:
        try:
            reply = await self.warmed(cold)
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

    async def warmed(self, cold: NotCached) -> Any:
        """Have the bytes read beside the event loop, then read again; what stays cold is left for the next Fetch."""
        self._deadline = 0.0
        for _ in range(COLD_READS_MAX):
            try:
                await self._ctx.broker.disk.offload(cold.warm)
            except OSError as error:
                self._read_failed(cold, error)
            try:
                self.try_now()
                return self.body()
            except NotCached as still:
                cold = still
        self._answers = [(place, _empty(_find(self._ctx.broker, place), place)) for place, _ in self._wanted]
        return self.body()

    def _read_failed(self, cold: NotCached, error: OSError) -> None:
        for place, _ in self._wanted:
            partition = _find(self._ctx.broker, place)
            if partition is not None and any(segment.file is cold.file for segment in partition.log.segments):
                self._ctx.broker.on_storage_error(partition, error)


def _find(broker: Broker, place: Place) -> Partition | None:
    topic, index = place
    return (
        broker.partitions.get((topic, index)) if isinstance(topic, str) else broker.partitions_by_id.get((topic, index))
    )


def _absent(broker: Broker, topic: str | bytes, index: int) -> FetchedPartition:
    image = broker.image()
    found = image.topic(topic)
    if found is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(topic, str) else ErrorCode.UNKNOWN_TOPIC_ID
        return FetchedPartition(index, code)
    state = image.partition(found.name, index)
    leader = None if state is None else (state.leader, state.leader_epoch)
    return FetchedPartition(index, image.absence_of(found.name, index), current_leader=leader)


def _failed(partition: Partition, index: int, error: KafkaError | OSError) -> FetchedPartition:
    code, _ = code_of(error)
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        return FetchedPartition(index, code, partition.high_watermark, -1, partition.log.log_start_offset)
    return FetchedPartition(index, code)


def _empty(partition: Partition | None, place: Place) -> FetchedPartition:
    if partition is None:
        return FetchedPartition(place[1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return FetchedPartition(
        place[1], 0, partition.high_watermark, partition.last_stable_offset, partition.log.log_start_offset
    )


def _read(
    partition: Partition, wanted: FetchPartition, budget: int, isolation_level: int, *, min_one: bool
) -> FetchedPartition:
    partition.check_online()
    partition.check_leader_epoch(wanted.current_leader_epoch)
    log = partition.log
    offset = wanted.fetch_offset
    if offset < log.log_start_offset:
        raise _out_of_range(partition, offset)
    diverging = _diverging(partition, wanted)
    stable_offset = partition.last_stable_offset
    if diverging is not None:
        return FetchedPartition(
            wanted.partition,
            0,
            partition.high_watermark,
            stable_offset,
            log.log_start_offset,
            diverging_epoch=diverging,
        )
    if offset > log.log_end_offset:
        raise _out_of_range(partition, offset)
    limit = stable_offset if isolation_level == READ_COMMITTED else partition.high_watermark
    max_bytes = min(wanted.partition_max_bytes, budget)
    records = b""
    if offset < limit and (max_bytes > 0 or min_one):
        records = log.read(offset, max_bytes, limit, min_one=min_one)
    aborted = None
    if isolation_level == READ_COMMITTED:
        aborted = [(txn.producer_id, txn.first_offset) for txn in log.aborted_between(offset, limit)] if records else []
    return FetchedPartition(
        wanted.partition, 0, partition.high_watermark, stable_offset, log.log_start_offset, records, aborted
    )


def _out_of_range(partition: Partition, offset: int) -> KafkaError:
    log = partition.log
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"offset {offset} of {partition} is not in {log.log_start_offset} to {log.log_end_offset}",
    )


def _diverging(partition: Partition, wanted: FetchPartition) -> tuple[int, int] | None:
    """Where the reader's log parts from ours, if it says what it last read (rules A7, A8)."""
    if wanted.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.log.epochs.end_offset_for(wanted.last_fetched_epoch, partition.log.log_end_offset)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {wanted.last_fetched_epoch} is unknown in {partition}")
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
