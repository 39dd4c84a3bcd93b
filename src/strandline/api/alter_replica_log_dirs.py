"""AlterReplicaLogDirs (34), versions 1-2: have replicas of this broker in these log dirs.

v2 is flexible. A replica that is in its log dir already is done, so a plan that names where everything is goes through: Kafka's
reassignment tool writes such plans itself, to go back by. One that is not here (yet) is REPLICA_NOT_AVAILABLE, which that tool
tries again; an unknown log dir is LOG_DIR_NOT_FOUND, an offline one or an offline replica KAFKA_STORAGE_ERROR. A replica that is
named for several log dirs is meant for the last of them.
Left out: moving a replica between the log dirs of one broker is not supported, and refused as INVALID_REPLICA_ASSIGNMENT; nor is
a log dir remembered for a replica that is still to come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import NodeContext, RequestContext
from strandline.api.requests.pending_reply import MaybePending
from strandline.api.requests.slices import answer
from strandline.errors import ErrorCode
from strandline.sliced_work import Work
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

KEY: Final = 34
VERSIONS = range(1, 3)


def handle(request: AlterReplicaLogDirsRequest, ctx: RequestContext) -> MaybePending[AlterReplicaLogDirsResponse]:
    return answer(_alter(request, ctx), request, ctx)


def _alter(request: AlterReplicaLogDirsRequest, ctx: RequestContext) -> Work[AlterReplicaLogDirsResponse]:
    wanted: dict[str, dict[int, str]] = {}
    for log_dir in request.dirs:
        for topic in log_dir.topics:
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, log_dir.path))
            yield 0
    response = messages.response(KEY)
    reply = response()
    for name, partitions in wanted.items():
        result = response.AlterReplicaLogDirTopicResult(topic_name=name)
        for index, path in partitions.items():
            code = _outcome(ctx.node, name, index, path)
            result.partitions.append(response.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
            yield 0
        reply.results.append(result)
    return reply


def _outcome(node: NodeContext, topic: str, index: int, path: str) -> ErrorCode:
    path = path.rstrip("/") or path
    online = node.hosted.log_dirs().get(path)
    if online is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not online or (topic, index) in node.hosted.unopened:
        return ErrorCode.KAFKA_STORAGE_ERROR
    partition = node.hosted.by_name.get((topic, index))
    if partition is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    if partition.offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    is_there = partition.log.directory.rpartition("/")[0] == path
    return ErrorCode.NONE if is_there else ErrorCode.INVALID_REPLICA_ASSIGNMENT
