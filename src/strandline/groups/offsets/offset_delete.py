"""OffsetDelete: an administrator removes offsets of topics that the group does not consume.

Always true: a partition without an offset is deleted successfully; one of a topic that the group is subscribed to never
is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.records import OffsetCommitKey
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

OFFSET_DELETE: Final = 47
OFFSETS_PER_REQUEST_MAX = 10_000


def delete(
    shard: GroupShard, request: OffsetDeleteRequest, caller: Caller, at: Moment, answer: Answer[OffsetDeleteResponse]
) -> CoordinatorResult | None:
    """KafkaError if the group is not known, or not in a state in which any of its offsets may be deleted."""
    if sum(len(topic.partitions) for topic in request.topics) > OFFSETS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"more than {OFFSETS_PER_REQUEST_MAX} offsets at once")
    group_id, image, offsets = request.group_id, shard.dependencies.image, shard.offsets
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.validate_offset_delete()
    response_class = messages.response(OFFSET_DELETE)
    records = []
    topics = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        answers = []
        for index in (partition.partition_index for partition in topic.partitions):
            code = ErrorCode.NONE
            if image.partition(topic.name, index) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif subscribed:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            elif offsets.get(group_id, topic.name, index) or offsets.is_open(group_id, topic.name, index):
                key = OffsetCommitKey(group=group_id, topic=topic.name, partition=index)
                records.append(CoordinatorRecord(key, None))
            answers.append(response_class.OffsetDeleteResponsePartition(partition_index=index, error_code=code))
        topics.append(response_class.OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
    response = response_class(topics=topics)
    if not records:
        answer(response)
        return None

    def done(code: ErrorCode, at: Moment) -> None:
        answer(response_class(error_code=coordinator_error(code)) if code else response)

    return CoordinatorResult(records, done)
