"""DeleteRecords (21), versions 0-2: everything before an offset is no longer wanted.

v2 is flexible. Offset -1 stands for the high watermark. The answer is the low watermark: where the log starts now on every live
replica. Followers move their log start as they fetch; what they have not done in time is REQUEST_TIMED_OUT, and still under way.
Of a partition that is named twice the last offset counts, as in Kafka. Records of an internal topic are not deleted this way, nor
those of one that is only compacted (POLICY_VIOLATION).
Left out: nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext, wait_s
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import INTERNAL_TOPICS
from strandline.replica.partition import Partition
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

KEY: Final = 21
VERSIONS = range(3)

INVALID_LOW_WATERMARK = -1

_Waiting = tuple["DeleteRecordsResponse.DeleteRecordsPartitionResult", Partition, "asyncio.Future[ErrorCode]"]


def handle(request: DeleteRecordsRequest, ctx: RequestContext) -> MaybePending[DeleteRecordsResponse]:
    return answer(_delete_all(request, ctx), request, ctx)


def _delete_all(
    request: DeleteRecordsRequest, ctx: RequestContext
) -> Work[DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]]:
    response = messages.response(KEY)
    waiting: list[_Waiting] = []
    reply = response()
    wanted: dict[str, dict[int, DeleteRecordsRequest.DeleteRecordsPartition]] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            wanted.setdefault(topic.name, {})[asked.partition_index] = asked
            yield 0
    for name, partitions in wanted.items():
        result = response.DeleteRecordsTopicResult(name=name)
        for asked in partitions.values():
            result.partitions.append(_delete(name, asked, ctx, waiting))
            yield 0
        reply.topics.append(result)
    return _settle(reply, waiting, request.timeout_ms) if waiting else reply


def _delete(
    topic: str, asked: DeleteRecordsRequest.DeleteRecordsPartition, ctx: RequestContext, waiting: list[_Waiting]
) -> DeleteRecordsResponse.DeleteRecordsPartitionResult:
    result = messages.response(KEY).DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=INVALID_LOW_WATERMARK
    )
    try:
        partition = ctx.node.partition(topic, asked.partition_index)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}.")
        config = partition.log.config
        if config.compact and not config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"Records of {topic} are only removed by compaction.")
        offset = partition.delete_records(asked.offset)
    except KafkaError as error:
        result.error_code = error.code
        return result
    if partition.low_watermark >= offset:
        result.low_watermark = partition.low_watermark
    else:
        done: asyncio.Future[ErrorCode] = ctx.loop.create_future()
        partition.when_deleted(offset, lambda code: None if done.done() else done.set_result(code), done.done)
        waiting.append((result, partition, done))
    return result


async def _settle(reply: DeleteRecordsResponse, waiting: list[_Waiting], timeout_ms: int) -> DeleteRecordsResponse:
    """Wait for the followers."""
    await asyncio.wait([done for _, _, done in waiting], timeout=wait_s(timeout_ms))
    for result, partition, done in waiting:
        result.error_code = done.result() if done.done() else ErrorCode.REQUEST_TIMED_OUT
        if partition.leads:
            result.low_watermark = partition.low_watermark
        done.cancel()
    return reply
