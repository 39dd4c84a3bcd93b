"""OffsetFetch (9), versions 1-10: how far groups have come.

v2 asks for all offsets of a group with null topics, and has an error for the whole; v3 the throttle time; v5 leader epochs; v6
is flexible; v7 asks for stable offsets only (UNSTABLE_OFFSET_COMMIT); v8 takes several groups; v9 names the member that asks; v10
names topics by id.
The answer comes once everything in it is committed. If that takes too long it is NOT_COORDINATOR, which old consumers know.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import caller, read_each
from strandline.api.requests.pending_reply import MaybePending
from strandline.coordinator.result import Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.shard import GroupShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

    _AskedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
    _FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup

KEY: Final = 9
VERSIONS = range(1, 11)
GROUP_ERROR_SINCE, SEVERAL_GROUPS_SINCE = 2, 8
NO_OFFSET = -1
PARTITIONS_AT_ONCE_MAX = 2_000
"""Offsets that are looked up in one go; a request for more is answered in parts."""

_UNANSWERED = {ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def handle(request: OffsetFetchRequest, ctx: RequestContext) -> MaybePending[OffsetFetchResponse]:
    asked = request.groups if ctx.version >= SEVERAL_GROUPS_SINCE else [_only_group(request)]
    pieces = [(place, piece) for place, group in enumerate(asked) for piece in _pieces(group)]
    asking = caller(ctx)

    def fetch(place: int, shard: GroupShard, at: Moment) -> _FetchedGroup:
        fetched: _FetchedGroup = shard.fetch_offsets(pieces[place][1], request.require_stable, asking, at)
        return fetched

    def refusal(place: int, error: KafkaError) -> _FetchedGroup:
        code = ErrorCode.NOT_COORDINATOR if error.code in _UNANSWERED else coordinator_error(error.code)
        return _refused(pieces[place][1], code, ctx.version)

    def reply(fetched: list[_FetchedGroup]) -> OffsetFetchResponse:
        groups: dict[int, _FetchedGroup] = {}
        for (place, _), piece in zip(pieces, fetched, strict=True):
            whole = groups.setdefault(place, piece)
            if whole is not piece:
                _add(whole, piece)
        for group in groups.values():
            if group.error_code and ctx.version >= GROUP_ERROR_SINCE:
                group.topics = []
        if ctx.version >= SEVERAL_GROUPS_SINCE:
            return messages.response(KEY)(groups=list(groups.values()))
        # Topics and partitions have the same fields in old versions, under other names.
        return messages.response(KEY)(error_code=groups[0].error_code, topics=groups[0].topics)  # type: ignore[arg-type]

    return read_each(request, ctx, [piece.group_id for _, piece in pieces], fetch, refusal, reply)


def _pieces(group: _AskedGroup) -> Iterator[_AskedGroup]:
    """What is asked of a group, in parts of at most PARTITIONS_AT_ONCE_MAX partitions: each is read in one go."""
    if group.topics is None or sum(len(topic.partition_indexes) for topic in group.topics) <= PARTITIONS_AT_ONCE_MAX:
        yield group
        return
    message, topics, room = messages.request(KEY), [], PARTITIONS_AT_ONCE_MAX
    for topic in group.topics:
        indexes = list(dict.fromkeys(topic.partition_indexes))
        for start in range(0, max(len(indexes), 1), PARTITIONS_AT_ONCE_MAX):
            some = indexes[start : start + PARTITIONS_AT_ONCE_MAX]
            topics.append(
                message.OffsetFetchRequestTopics(name=topic.name, topic_id=topic.topic_id, partition_indexes=some)
            )
            room -= 1 + len(some)
            if room <= 0:
                yield message.OffsetFetchRequestGroup(**{**vars(group), "topics": topics})
                topics, room = [], PARTITIONS_AT_ONCE_MAX
    if topics:
        yield message.OffsetFetchRequestGroup(**{**vars(group), "topics": topics})


def _add(whole: _FetchedGroup, piece: _FetchedGroup) -> None:
    """Add another part of the same group to its answer; an error of one part is that of the whole."""
    whole.error_code = whole.error_code or piece.error_code
    for topic in piece.topics:
        last = whole.topics[-1] if whole.topics else None
        if last is not None and (last.name, last.topic_id) == (topic.name, topic.topic_id):
            last.partitions += topic.partitions
        else:
            whole.topics.append(topic)


def _only_group(request: OffsetFetchRequest) -> _AskedGroup:
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


def _refused(asked: _AskedGroup, code: ErrorCode, version: int) -> _FetchedGroup:
    """An error of the group; versions that have no place for it have it at each partition."""
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
            for topic in asked.topics or ()
        ]
    return group
