"""DeleteRecords (21), versions 0-2: everything before an offset is no longer wanted.

v2 is flexible. Offset -1 stands for the high watermark. The answer is the low watermark: where the log starts now.
Records of an internal topic are not deleted this way, nor those of one that is only compacted (POLICY_VIOLATION).
Left out: waiting for the followers' log starts, which comes with replication.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import INTERNAL_TOPICS
from strandline.wire import messages

KEY, VERSIONS = 21, range(3)

INVALID_LOW_WATERMARK = -1


def handle(request: Any, ctx: RequestContext) -> Any:
    response = messages.response(KEY)
    return response(
        topics=[
            response.DeleteRecordsTopicResult(
                name=topic.name, partitions=[_delete(topic.name, asked, ctx) for asked in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _delete(topic: str, asked: Any, ctx: RequestContext) -> Any:
    result = messages.response(KEY).DeleteRecordsPartitionResult(
        partition_index=asked.partition_index, low_watermark=INVALID_LOW_WATERMARK
    )
    try:
        partition = ctx.broker.partition(topic, asked.partition_index)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}.")
        config = partition.log.config
        if config.compact and not config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"Records of {topic} are only removed by compaction.")
        result.low_watermark = partition.delete_records(asked.offset)
    except KafkaError as error:
        result.error_code = error.code
    return result
