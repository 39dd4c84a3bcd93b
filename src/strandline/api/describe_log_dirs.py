"""DescribeLogDirs (35), versions 1-5: the log dirs of this broker, what is in them and how large it is.

v2 is flexible; v3 has an error for the whole; v4 tells the size of the volume and what is free of it; v5 whether a log dir takes
no new replicas. A size is that of the segments' `.log` files, and the lag how far the log end is behind the high watermark that
this replica knows (only that of a future replica can be above 0), as in Kafka. An offline log dir is named with its error alone.
Left out: future replicas (moving a replica between log dirs) and cordoned log dirs: there are none here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.ids import TopicPartition
from strandline.replica.partition import Partition
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

    _Described = DescribeLogDirsResponse.DescribeLogDirsPartition

KEY: Final = 35
VERSIONS = range(1, 6)


def handle(request: DescribeLogDirsRequest, ctx: RequestContext) -> MaybePending[DescribeLogDirsResponse]:
    return answer(_describe_all(request, ctx), request, ctx)


def _describe_all(request: DescribeLogDirsRequest, ctx: RequestContext) -> Work[DescribeLogDirsResponse]:
    partitions = ctx.node.hosted.by_name
    wanted: dict[TopicPartition, None] = {}
    if request.topics is None:
        wanted = dict.fromkeys(partitions)
    else:
        for topic in request.topics:
            wanted.update(((topic.topic, index), None) for index in topic.partitions)
            yield 0
    by_dir: dict[str, dict[str, list[_Described]]] = {}
    for place in wanted:
        if (partition := partitions.get(place)) is not None:
            log_dir = partition.log.directory.rpartition("/")[0]
            by_dir.setdefault(log_dir, {}).setdefault(partition.topic, []).append(_partition(partition))
        yield 0
    return messages.response(KEY)(
        results=[
            _describe(log_dir, online, by_dir.get(log_dir, {}), ctx)
            for log_dir, online in ctx.node.hosted.log_dirs().items()
        ]
    )


def _describe(
    log_dir: str, online: bool, topics: dict[str, list[_Described]], ctx: RequestContext
) -> DescribeLogDirsResponse.DescribeLogDirsResult:
    response = messages.response(KEY)
    try:
        if not online:
            raise OSError(f"log dir {log_dir} is offline")
        total_bytes, usable_bytes = ctx.node.disk.usage(log_dir)
    except OSError:
        return response.DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=log_dir)
    return response.DescribeLogDirsResult(
        log_dir=log_dir,
        topics=[
            response.DescribeLogDirsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()
        ],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def _partition(partition: Partition) -> _Described:
    log = partition.log
    return messages.response(KEY).DescribeLogDirsPartition(
        partition_index=partition.index,
        partition_size=log.size,
        offset_lag=max(partition.high_watermark - log.log_end_offset, 0),
    )
