"""OffsetCommit: whose commit counts, for which partitions, and what is written down.

Topics are known by their ids from version 10 on; before that, by the id that their name has now. So what is written
always says which topic was meant, and offsets of a deleted topic are not taken for those of one that has its name.

Always true: a partition that is refused for itself (unknown, metadata too large) stops no other; a member that may not
commit commits nothing. A commit of no member (generation -1) needs no group: its first record makes a simple one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.group import CommitPartitionValidator
from strandline.groups.records import NO_TIMESTAMP, OffsetCommitKey, OffsetCommitValue
from strandline.metadata.image import TopicImage
from strandline.sliced_work import Work, finished
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.offset_commit import OffsetCommitRequest, OffsetCommitResponse

OFFSET_COMMIT: Final = 8
TOPIC_IDS_SINCE = 10
GROUP_ID_NOT_FOUND_SINCE = 9
NO_RETENTION_TIME = -1


def commit(
    shard: GroupShard, request: OffsetCommitRequest, caller: Caller, at: Moment, answer: Answer[OffsetCommitResponse]
) -> CoordinatorResult | None:
    by_id = caller.version >= TOPIC_IDS_SINCE
    image = shard.dependencies.image
    found = [image.topic(topic.topic_id if by_id else topic.name) for topic in request.topics]
    may_commit = None
    if any(
        _exists(image_of, partition)
        for topic, image_of in zip(request.topics, found, strict=True)
        for partition in topic.partitions
    ):
        # A request of which nothing can be committed says nothing about its sender.
        may_commit = _validated(shard, request, caller, at)
    retention_ms = request.retention_time_ms
    expire_timestamp = NO_TIMESTAMP if retention_ms == NO_RETENTION_TIME else at.wall_ms + retention_ms
    metadata_max = shard.dependencies.config.offset_metadata_max_bytes
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    Topic, Partition = _response_classes()
    records: list[CoordinatorRecord] = []
    topics = []
    for topic, image_of in zip(request.topics, found, strict=True):
        answers = []
        for partition in topic.partitions:
            index, metadata = partition.partition_index, partition.committed_metadata or ""
            code = ErrorCode.NONE
            if image_of is None:
                code = unknown
            elif not _exists(image_of, partition):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif len(metadata) > metadata_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                if may_commit is not None:
                    may_commit(image_of.name, image_of.topic_id, index)
                value = OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=metadata,
                    commit_timestamp=at.wall_ms,
                    expire_timestamp=expire_timestamp,
                    topic_id=image_of.topic_id,
                )
                key = OffsetCommitKey(group=request.group_id, topic=image_of.name, partition=index)
                records.append(CoordinatorRecord(key, value))
            answers.append(Partition(partition_index=index, error_code=code))
        topics.append(Topic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    response = messages.response(OFFSET_COMMIT)(topics=topics)
    if not records:
        answer(response)
        return None

    def done(code: ErrorCode, at: Moment) -> None:
        answer(refused(request, coordinator_error(code)) if code else response)

    return CoordinatorResult(records, done)


def refused(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The response that says this of every partition."""
    return finished(refused_in_slices(request, code))


def refused_in_slices(request: OffsetCommitRequest, code: ErrorCode) -> Work[OffsetCommitResponse]:
    """The same, pausing after each partition."""
    Topic, Partition = _response_classes()
    response = messages.response(OFFSET_COMMIT)()
    for topic in request.topics:
        answered = Topic(name=topic.name, topic_id=topic.topic_id)
        for partition in topic.partitions:
            answered.partitions.append(Partition(partition_index=partition.partition_index, error_code=code))
            yield 0
        response.topics.append(answered)
    return response


def _validated(
    shard: GroupShard, request: OffsetCommitRequest, caller: Caller, at: Moment
) -> CommitPartitionValidator | None:
    group = shard.groups.get(request.group_id)
    generation_or_epoch = request.generation_id_or_member_epoch
    if group is None:
        if generation_or_epoch < 0:
            return None
        if caller.version < GROUP_ID_NOT_FOUND_SINCE:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    may_commit = group.validate_offset_commit(
        request.member_id,
        request.group_instance_id,
        generation_or_epoch,
        is_transactional=False,
        version=caller.version,
    )
    group.extend_session(shard, request.member_id, at)
    return may_commit


def _exists(topic: TopicImage | None, partition: OffsetCommitRequest.OffsetCommitRequestPartition) -> bool:
    return topic is not None and 0 <= partition.partition_index < len(topic.partitions)


def _response_classes() -> tuple[
    type[OffsetCommitResponse.OffsetCommitResponseTopic], type[OffsetCommitResponse.OffsetCommitResponsePartition]
]:
    response = messages.response(OFFSET_COMMIT)
    return response.OffsetCommitResponseTopic, response.OffsetCommitResponsePartition
