"""OffsetForLeaderEpoch (23), versions 2-4: where does this leader epoch end in my log?

Followers and consumers ask it to find where two logs part.
v2 fences by current leader epoch (KIP-320); v3 adds the replica id; v4 is flexible.
The answer is the largest epoch at most the one asked for, and its end offset; -1 and -1 if that can't be said.
With a replica id it is a broker's question, and answered only to one that may act as a broker (SEC-T6).
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode, KafkaError
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

KEY: Final = 23
VERSIONS = range(2, 5)


def handle(request: OffsetForLeaderEpochRequest, ctx: RequestContext) -> MaybePending[OffsetForLeaderEpochResponse]:
    return answer(_end_offsets(request, ctx), request, ctx)


def _end_offsets(request: OffsetForLeaderEpochRequest, ctx: RequestContext) -> Work[OffsetForLeaderEpochResponse]:
    response = messages.response(KEY)
    reply = response()
    for topic in request.topics:
        result = response.OffsetForLeaderTopicResult(topic=topic.topic)
        for asked in topic.partitions:
            result.partitions.append(_end_offset(topic.topic, asked, request.replica_id, ctx))
            yield 0
        reply.topics.append(result)
    return reply


def _end_offset(
    topic: str, asked: OffsetForLeaderEpochRequest.OffsetForLeaderPartition, replica_id: int, ctx: RequestContext
) -> OffsetForLeaderEpochResponse.EpochEndOffset:
    answer = messages.response(KEY).EpochEndOffset(partition=asked.partition)
    if replica_id >= 0 and not ctx.may_act_as_broker:
        answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answer
    try:
        partition = ctx.node.partition(topic, asked.partition)
        partition.check_online()
        partition.check_leader_epoch(asked.current_leader_epoch)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.leader_epoch, answer.end_offset = partition.log.epochs.end_offset_for(
        asked.leader_epoch, partition.log.log_end_offset
    )
    return answer
