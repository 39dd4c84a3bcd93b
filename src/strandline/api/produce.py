"""Produce (0), versions 3-13: append record batches.

v3 brings transactional ids and magic 2; v5 the log start offset; v7 zstd; v8 record errors and messages; v9 is flexible; v10
tells the current leader with NOT_LEADER_OR_FOLLOWER; v13 names topics by id.
Every record is walked before a batch is written. Offset deltas that do not count 0, 1, 2, … are refused, also where Kafka would
write them (uncompressed) or correct them (compressed). Of the records that are to blame (KIP-467) the first thousand of a request
are named.
Transactional batches need a transactional id, and all those of a request have one producer id. Before the first of a transaction is
appended the leader asks the coordinator whether the partition is part of it, and from v12 on has it added (KIP-890).
Left out: versions 0-2 are advertised, as Kafka does for old librdkafka (KAFKA-18659), and refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from strandline.api.cluster import leader_hints
from strandline.api.context import NodeContext, RequestContext, code_of
from strandline.api.requests.pending_reply import PendingReply
from strandline.api.transactions.produce_verification import ProduceVerification
from strandline.errors import ErrorCode, KafkaError
from strandline.log.errors import RecordsBesideLoop
from strandline.log.record_checks import CheckedRecords, RecordWork, check_beside
from strandline.records.errors import CorruptRecord
from strandline.records.header import ATTRIBUTES_AT, CODEC_MASK, TRANSACTIONAL_FLAG
from strandline.replica.partition import Partition
from strandline.wire import produce as wire
from strandline.wire.produce import PartitionResponse

KEY, VERSIONS, RAW = wire.KEY, wire.VERSIONS, True

ZSTD, ZSTD_SINCE = 4, 7
_ATTRIBUTES_AT = ATTRIBUTES_AT + 1
"""Their low byte, which has all that is asked of them here."""

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
_Answers = list[tuple[str | bytes, list[PartitionResponse]]]
_Outcome = bytes | PendingReply[bytes] | None
"""The reply or the promise of it; None if the producer wants none."""
RECHECKS_MAX: Final = 3
"""How often the batches of one request are checked again because their topic's configuration was altered meanwhile."""
BATCHES_PER_TURN_MAX: Final = 200
"""Appended before other connections have their turn: a request may have thousands (SEC-L2)."""
When = Callable[[int, Callable[[ErrorCode], None], Callable[[], bool]], None]
"""Calls back once a partition's end offset is safe, or with the error that prevents it."""


def handle(frame: memoryview, ctx: RequestContext, position: int) -> _Outcome | Awaitable[_Outcome]:
    one = wire.parse_one(ctx.version, frame, position)
    if one is not None:
        acks, timeout_ms, topic, index, records = one
        partition = _partition(ctx.node, topic, index)
        if partition is not None and acks in (ACKS_ALL, ACKS_LEADER):
            outcome = _append_one(ctx, partition, topic, records, acks, timeout_ms)
            if outcome is not None:
                return outcome
    return _append_all(frame, ctx, position)


def _append_one(
    ctx: RequestContext, partition: Partition, topic: str | bytes, records: memoryview, acks: int, timeout_ms: int
) -> bytes | PendingReply[bytes] | None:
    """The way of nearly every request, kept short. None: checking the batch would keep the event loop for too long."""
    try:
        if partition.is_internal or (len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & TRANSACTIONAL_FLAG):
            _check(partition, records, ctx.version)
        base_offset, append_time = partition.append(records, ctx.node.clock.wall_ms(), for_all=acks == ACKS_ALL)
    except (KafkaError, OSError) as error:
        return _reply(ctx, [(topic, [_refused(ctx.node, partition, error)])])
    except RecordsBesideLoop:
        return None
    log = partition.log
    end_offset = log.log_end_offset
    if partition.high_watermark >= end_offset or (acks == ACKS_LEADER and partition.local_end >= end_offset):
        return wire.write_one(topic, partition.index, base_offset, append_time, log.log_start_offset)
    answer = PartitionResponse(partition.index, 0, base_offset, append_time, log.log_start_offset)
    waiting = _PendingProduce(ctx, [(topic, [answer])])
    waiting.on(partition, acks, end_offset, 0, 0)
    return waiting.reply(timeout_ms)


def _append_all(frame: memoryview, ctx: RequestContext, position: int) -> _Outcome | Awaitable[_Outcome]:
    request = wire.parse(ctx.version, frame, position)
    acks = request.acks
    if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
        return wire.write_response(ctx.version, _all_refused(request.topics, ErrorCode.INVALID_REQUIRED_ACKS))
    verification = None
    if request.transactional_id is not None:
        verification = ProduceVerification(ctx, request.transactional_id)
    appending = _Appending(ctx, request, verification)
    try:
        is_unverified = verification is not None and verification.note(request, partial(_partition, ctx.node))
    except KafkaError as error:
        return wire.write_response(ctx.version, _all_refused(request.topics, error.code))
    if not is_unverified and appending.go_on(request):
        return appending.outcome()
    # The frame is valid only during this call.
    try:
        copy = _copy_of(frame)
    except MemoryError:
        appending.refuse_rest(request, "The node has no memory to check the batch now; try again")
        return appending.outcome()
    request = wire.parse(ctx.version, memoryview(copy), position)
    return appending.finish(request, ctx.hold_request(len(copy)), asks=is_unverified)


def _copy_of(frame: memoryview) -> bytearray:
    return bytearray(frame)


class _Appending:
    """A Produce with any number of batches on its way into their logs, one after the other.

    Always true: the batches of a connection are appended in the order in which they came. While the records of one are checked
    beside the event loop (SEC-L8), coordinators are asked about its transaction (TXN-V1), or other connections have their turn, its
    request is being awaited, and no later one of the connection is handled. The copy that this takes counts as a request that the
    node holds, until all is appended (SEC-L4).
    """

    def __init__(
        self, ctx: RequestContext, request: wire.ProduceRequest, verification: ProduceVerification | None
    ) -> None:
        self._ctx = ctx
        self._verification = verification
        self._acks = request.acks
        self._timeout_ms = request.timeout_ms
        self._answers: _Answers = [(topic, []) for topic, _ in request.topics]
        self._waiting: _PendingProduce | None = None
        self._topic_at = 0
        """The first topic with a batch that has no answer yet."""
        self._work = RecordWork()
        self._rechecks_left = RECHECKS_MAX
        self._turn_batches_left = BATCHES_PER_TURN_MAX

    def go_on(self, request: wire.ProduceRequest, checked: CheckedRecords | None = None) -> bool:
        """Append what has no answer yet; False if the turn is over, or the next batch must be checked beside the event loop first.

        `checked` is what was found there, in that batch.
        """
        for topic_at in range(self._topic_at, len(request.topics)):
            self._topic_at = topic_at
            topic, partitions = request.topics[topic_at]
            answered = self._answers[topic_at][1]
            for at in range(len(answered), len(partitions)):
                index, records = partitions[at]
                if not self._turn_batches_left and checked is None:
                    return False
                self._turn_batches_left -= 1
                try:
                    self._append(topic_at, topic, index, records, checked)
                except RecordsBesideLoop:
                    if checked is None:
                        return False
                    self._rechecks_left -= 1
                    if self._rechecks_left >= 0:
                        return False
                    why = "The configuration of the topic was altered again and again while the batch was checked"
                    answered.append(self._try_again(topic, index, why))
                checked = None
        return True

    def refuse_rest(self, request: wire.ProduceRequest, why: str) -> None:
        """Answer what has no answer yet with an error that producers try again."""
        for topic_at, (topic, partitions) in enumerate(request.topics):
            answered = self._answers[topic_at][1]
            answered += [self._try_again(topic, index, why) for index, _ in partitions[len(answered) :]]

    def _try_again(self, topic: str | bytes, index: int, why: str) -> PartitionResponse:
        node = self._ctx.node
        partition = _partition(node, topic, index)
        if partition is None:
            return _absent(node, topic, index)
        return _refused(node, partition, KafkaError(ErrorCode.REQUEST_TIMED_OUT, why))

    def _append(
        self,
        topic_at: int,
        topic: str | bytes,
        index: int,
        records: memoryview | None,
        checked: CheckedRecords | None,
    ) -> None:
        node, acks, answered = self._ctx.node, self._acks, self._answers[topic_at][1]
        partition = _partition(node, topic, index)
        if partition is None:
            answered.append(_absent(node, topic, index))
            return
        try:
            if records is None:
                raise KafkaError(ErrorCode.INVALID_RECORD, "a partition without a record batch")
            verification = self._verification
            _check(partition, records, self._ctx.version, may_be_transactional=verification is not None)
            appended = partition.append(
                records,
                node.clock.wall_ms(),
                for_all=acks == ACKS_ALL,
                work=self._work,
                checked=checked,
                guard=None if verification is None else verification.guard((topic_at, len(answered))),
            )
        except (KafkaError, OSError) as error:
            answered.append(_refused(node, partition, error))
            return
        answered.append(
            PartitionResponse(index, 0, appended.base_offset, appended.append_time, partition.log.log_start_offset)
        )
        end_offset = partition.log.log_end_offset
        if acks and partition.high_watermark < end_offset:
            self._waiting = self._waiting or _PendingProduce(self._ctx, self._answers)
            self._waiting.on(partition, acks, end_offset, topic_at, len(answered) - 1)

    async def finish(self, request: wire.ProduceRequest, release: Callable[[], None], *, asks: bool) -> _Outcome:
        """Append the rest, with what takes long done beside the event loop; coordinators are asked before, if `asks`.

        `request` is a copy: it must outlive its frame. `release` is called once nothing of it is needed any more.
        """
        checked: CheckedRecords | None = None
        try:
            if asks:
                assert self._verification is not None, "only transactions are asked about"
                await self._verification.ask()
            while not self.go_on(request, checked):
                if self._turn_batches_left > 0:
                    checked = await self._check_next(request)
                else:
                    checked = None
                    await asyncio.sleep(0)
                self._turn_batches_left = BATCHES_PER_TURN_MAX
        except BaseException:
            if self._waiting is not None:
                self._waiting.forget()
            raise
        finally:
            request.topics.clear()  # the last that refers to the copy
            release()
        return self.outcome()

    async def _check_next(self, request: wire.ProduceRequest) -> CheckedRecords | None:
        """What is found in the batch that is next; if it is refused that is its answer."""
        node = self._ctx.node
        topic, partitions = request.topics[self._topic_at]
        answered = self._answers[self._topic_at][1]
        index, records = partitions[len(answered)]
        partition = _partition(node, topic, index)
        assert partition is not None, "it was there a moment ago"
        assert records is not None, "a batch that is not there is refused at once"
        config, now_ms = partition.log.config, node.clock.wall_ms()
        try:
            return await node.disk.offload_compute(partial(check_beside, records, config, now_ms, self._work))
        except KafkaError as error:
            answered.append(_refused(node, partition, error))
            return None

    def outcome(self) -> _Outcome:
        if self._acks == ACKS_NONE:
            if any(answer.error_code for _, answered in self._answers for answer in answered):
                raise _no_reply()
            return None
        if self._waiting is not None:
            return self._waiting.reply(self._timeout_ms)
        return _reply(self._ctx, self._answers)


def _word_of(partition: Partition, acks: int) -> When:
    """Who has to vouch for what was written: every in-sync replica, or the leader alone."""
    return partition.when_committed if acks == ACKS_ALL else partition.when_written


def _no_reply() -> ConnectionAbortedError:
    """The producer wants no reply: a closed connection is how it learns that something is wrong."""
    return ConnectionAbortedError("a Produce with acks=0 failed")


def _partition(node: NodeContext, topic: str | bytes, index: int) -> Partition | None:
    if isinstance(topic, str):
        return node.hosted.by_name.get((topic, index))
    return node.hosted.by_id.get((topic, index))


def _absent(node: NodeContext, topic: str | bytes, index: int) -> PartitionResponse:
    image = node.metadata.image()
    found = image.topic(topic)
    if found is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(topic, str) else ErrorCode.UNKNOWN_TOPIC_ID
        return PartitionResponse(index, code, -1)
    code = node.absence_of(found.name, index)
    state = image.partition(found.name, index)
    if state is None:
        return PartitionResponse(index, code, -1)
    return PartitionResponse(index, code, -1, leader_id=state.leader, leader_epoch=state.leader_epoch)


def _check(partition: Partition, records: memoryview, version: int, *, may_be_transactional: bool = False) -> None:
    if partition.is_internal:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {partition.topic}")
    attributes = records[_ATTRIBUTES_AT] if len(records) > _ATTRIBUTES_AT else 0
    if attributes & TRANSACTIONAL_FLAG and not may_be_transactional:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch came without a transactional id"
        )
    if version < ZSTD_SINCE and attributes & CODEC_MASK == ZSTD:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or newer")


def _refused(node: NodeContext, partition: Partition, error: KafkaError | OSError) -> PartitionResponse:
    if isinstance(error, OSError):
        node.hosted.storage_failed(partition, error)
    code, message = code_of(error)
    partition.stats.total_produce_requests += 1
    partition.stats.failed_produce_requests += 1
    node.request_stats.failed(KEY, code)
    record_errors = error.record_errors if isinstance(error, CorruptRecord) else ()
    return _with_leader(partition, PartitionResponse(partition.index, code, -1, -1, -1, message, record_errors))


def _with_leader(partition: Partition, refused: PartitionResponse) -> PartitionResponse:
    """With the current leader, for a producer that asked the wrong broker (KIP-951)."""
    leader = leader_hints.current_leader(partition) if refused.error_code in leader_hints.HINTED else None
    return refused if leader is None else refused._replace(leader_id=leader[0], leader_epoch=leader[1])


def _reply(ctx: RequestContext, answers: _Answers) -> bytes:
    hinted = [p.leader_id for _, answered in answers for p in answered if p.leader_id >= 0]
    return wire.write_response(ctx.version, answers, endpoints=leader_hints.endpoints(ctx, hinted) if hinted else ())


def _all_refused(topics: list[wire.TopicData], code: ErrorCode) -> _Answers:
    return [(topic, [PartitionResponse(index, code, -1) for index, _ in partitions]) for topic, partitions in topics]


class _PendingProduce:
    """A Produce whose batches are written here and not yet as safe as its producer wants them."""

    def __init__(self, ctx: RequestContext, answers: _Answers) -> None:
        self._ctx = ctx
        self._answers = answers
        self._open: set[tuple[int, int]] = set()
        self._later: PendingReply[bytes] = PendingReply(may_be_overtaken=True, on_cancel=self._stop_timer)
        self._timer: asyncio.TimerHandle | None = None

    def on(self, partition: Partition, acks: int, end_offset: int, topic_at: int, partition_at: int) -> None:
        word = _word_of(partition, acks)
        place = (topic_at, partition_at)
        self._open.add(place)
        word(end_offset, lambda code: self._settled(place, code, partition), lambda: self._later.done)

    def reply(self, timeout_ms: int) -> PendingReply[bytes]:
        if self._open:
            self._timer = self._ctx.loop.call_later(max(timeout_ms, 0) / 1000, self._timed_out)
        else:
            self._finish()
        return self._later

    def forget(self) -> None:
        """The reply will not be asked for."""
        self._later.cancel()

    def _settled(self, place: tuple[int, int], code: ErrorCode, partition: Partition) -> None:
        if place not in self._open:
            return
        self._open.discard(place)
        if code:
            partition.stats.failed_produce_requests += 1
            self._fail(place, code)
            answered = self._answers[place[0]][1]
            answered[place[1]] = _with_leader(partition, answered[place[1]])
        if not self._open and self._timer is not None:
            self._finish()

    def _fail(self, place: tuple[int, int], code: ErrorCode) -> None:
        self._ctx.node.request_stats.failed(KEY, code)
        answered = self._answers[place[0]][1]
        answered[place[1]] = PartitionResponse(answered[place[1]].partition, code, -1)

    def _timed_out(self) -> None:
        for place in self._open:
            self._fail(place, ErrorCode.REQUEST_TIMED_OUT)
        self._open.clear()
        self._finish()

    def _finish(self) -> None:
        self._stop_timer()
        if not self._later.done:
            self._later.complete(_reply(self._ctx, self._answers))

    def _stop_timer(self) -> None:
        self._open.clear()
        if self._timer is not None:
            self._timer.cancel()
