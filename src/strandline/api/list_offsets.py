"""ListOffsets (2), versions 1-11: the offset that belongs to a time, or to the start or end of a partition.

v2 brings isolation levels, v4 leader epochs (KIP-320), v6 is flexible, v7 asks for the greatest timestamp (-3, KIP-734), v8 for
the earliest local offset (-4), v9 for the latest tiered one (-5), v10 gives a timeout, v11 asks what waits to be tiered (-6).
Nothing is tiered here: -4 answers as -2 does, -5 and -6 with an unknown offset, as in Kafka.
A leader that has not committed yet all that it began its epoch with says OFFSET_NOT_AVAILABLE instead of an offset below one that
its predecessor gave (KIP-207, rule A13); before version 5 consumers know that as LEADER_NOT_AVAILABLE.
Left out: nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext, code_of, note_failure
from strandline.api.fetching import cold_reads
from strandline.api.requests import slices
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import TopicPartition
from strandline.log.errors import NotCached
from strandline.log.lookup import TimestampAndOffset, first_at_or_after, of_max_timestamp
from strandline.replica.partition import Partition
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.list_offsets import ListOffsetsRequest, ListOffsetsResponse

    _Asked = ListOffsetsRequest.ListOffsetsPartition
    _Answer = ListOffsetsResponse.ListOffsetsPartitionResponse

KEY: Final = 2
VERSIONS = range(1, 12)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
"""The version from which each of the special timestamps may be asked for."""

CONSUMER = -1
"""The replica id of one that is no replica: only it is bound by the high watermark or the last stable offset."""

WARM_UPS_MAX = 64
"""How often one partition may wait for the device before its answer is to try again."""

_Cold = tuple["_Answer", Partition, "_Asked", NotCached]
"""An answer to fill in, its partition, what was asked of it, and what must be read first."""


def handle(request: ListOffsetsRequest, ctx: RequestContext) -> MaybePending[ListOffsetsResponse]:
    return slices.answer(_list(request, ctx), request, ctx)


def _list(
    request: ListOffsetsRequest, ctx: RequestContext
) -> Work[ListOffsetsResponse | Awaitable[ListOffsetsResponse]]:
    response = messages.response(KEY)
    named: Counter[TopicPartition] = Counter()
    for topic in request.topics:
        for asked in topic.partitions:
            named[topic.name, asked.partition_index] += 1
            yield 0
    cold: list[_Cold] = []
    reply = response()
    for topic in request.topics:
        answers = []
        for asked in topic.partitions:
            answer = response.ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            if named[topic.name, asked.partition_index] > 1:
                answer.error_code = ErrorCode.INVALID_REQUEST
            elif asked.timestamp < 0 and ctx.version < SINCE.get(asked.timestamp, ctx.version + 1):
                answer.error_code = ErrorCode.UNSUPPORTED_VERSION
            else:
                _try(topic.name, asked, answer, request, ctx, cold)
            answers.append(answer)
            yield 0
        reply.topics.append(response.ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return _warm(reply, cold, request, ctx) if cold else reply


def _try(
    topic: str, asked: _Asked, answer: _Answer, request: ListOffsetsRequest, ctx: RequestContext, cold: list[_Cold]
) -> None:
    try:
        partition = ctx.node.partition(topic, asked.partition_index)
    except KafkaError as error:
        answer.error_code = error.code
        return
    try:
        _fill(answer, partition, asked, request, ctx)
    except NotCached as not_cached:
        cold.append((answer, partition, asked, not_cached))


async def _warm(
    reply: ListOffsetsResponse, cold: list[_Cold], request: ListOffsetsRequest, ctx: RequestContext
) -> ListOffsetsResponse:
    """Finish the answers for which the device has to be read."""
    for answer, partition, asked, not_cached in cold:
        for _ in range(WARM_UPS_MAX):
            if not await cold_reads.warm(ctx.node, (partition,), not_cached):
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                break
            try:
                _fill(answer, partition, asked, request, ctx)
                break
            except NotCached as again:
                not_cached = again
        else:
            answer.error_code = _for_version(ErrorCode.OFFSET_NOT_AVAILABLE, ctx.version)
    return reply


def _for_version(code: ErrorCode, version: int) -> ErrorCode:
    """Consumers knew no OFFSET_NOT_AVAILABLE before version 5."""
    return ErrorCode.LEADER_NOT_AVAILABLE if code is ErrorCode.OFFSET_NOT_AVAILABLE and version < 5 else code


def _fill(
    answer: _Answer, partition: Partition, asked: _Asked, request: ListOffsetsRequest, ctx: RequestContext
) -> None:
    """Answer for one partition; NotCached if that takes reading the device."""
    try:
        partition.check_online()
        partition.check_leader_epoch(asked.current_leader_epoch)
        found = _find(partition, asked.timestamp, request.replica_id, request.isolation_level)
    except (KafkaError, OSError) as error:
        note_failure(ctx.node, partition, error)
        answer.error_code = _for_version(code_of(error)[0], ctx.version)
        return
    if found is not None:
        answer.timestamp, answer.offset, answer.leader_epoch = found


def _find(partition: Partition, timestamp: int, replica_id: int, isolation_level: int) -> TimestampAndOffset | None:
    log = partition.log
    end = partition.readable_end(isolation_level) if replica_id == CONSUMER else log.log_end_offset
    is_lagging = replica_id == CONSUMER and partition.is_behind_its_epoch
    if timestamp == LATEST:
        if is_lagging:
            raise _not_yet(partition)
        return TimestampAndOffset(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampAndOffset(-1, log.log_start_offset, log.epochs.epoch_at(log.log_start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return None
    found = of_max_timestamp(log) if timestamp == MAX_TIMESTAMP else first_at_or_after(log, timestamp)
    if found is not None and found.offset < end:
        return found
    if is_lagging:
        raise _not_yet(partition)
    return None


def _not_yet(partition: Partition) -> KafkaError:
    return KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{partition} has a new leader that is still catching up")
