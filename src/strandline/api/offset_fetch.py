"""OffsetFetch (9), versions 1-10: how far groups have come.

v2 asks for all offsets of a group with null topics, and has an error for the whole; v3 the throttle time; v5 leader epochs; v6
is flexible; v7 asks for stable offsets only (UNSTABLE_OFFSET_COMMIT); v8 takes several groups; v9 names the member that asks; v10
names topics by id.
The answer comes once everything in it is committed. If that takes too long it is NOT_COORDINATOR, which old consumers know.
Left out: nothing.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.api.coordination import caller, read_each
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.outcome import Moment, told
from strandline.groups.shard import Shard
from strandline.wire import messages

KEY, VERSIONS = 9, range(1, 11)
GROUP_ERROR_SINCE, SEVERAL_GROUPS_SINCE = 2, 8
NO_OFFSET = -1

_UNANSWERED = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def handle(request: Any, ctx: RequestContext) -> Any:
    asked = request.groups if ctx.version >= SEVERAL_GROUPS_SINCE else [_only_group(request)]
    asking = caller(ctx)

    def fetch(place: int, shard: Shard, at: Moment) -> Any:
        return shard.fetch_offsets(asked[place], request.require_stable, asking, at)

    def refusal(place: int, error: KafkaError) -> Any:
        code = ErrorCode.NOT_COORDINATOR if error.code in _UNANSWERED else told(error.code)
        return _refused(asked[place], code, ctx.version)

    def reply(groups: list[Any]) -> Any:
        if ctx.version >= SEVERAL_GROUPS_SINCE:
            return messages.response(KEY)(groups=groups)
        return _old_reply(groups[0])

    return read_each(ctx, [group.group_id for group in asked], fetch, refusal, reply)


def _only_group(request: Any) -> Any:
    """What versions before 8 ask for, as the later ones say it."""
    message = messages.request(KEY)
    topics = request.topics
    return message.OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            message.OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ],
    )


def _old_reply(group: Any) -> Any:
    response = messages.response(KEY)
    return response(
        error_code=group.error_code,
        topics=[
            response.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[response.OffsetFetchResponsePartition(**vars(partition)) for partition in topic.partitions],
            )
            for topic in group.topics
        ],
    )


def _refused(asked: Any, code: ErrorCode, version: int) -> Any:
    """An error of the group; versions that have no place for it tell it of each partition."""
    response = messages.response(KEY)
    group = response.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
    if version < GROUP_ERROR_SINCE:
        group.topics = [
            response.OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    response.OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=NO_OFFSET, error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics
        ]
    return group
