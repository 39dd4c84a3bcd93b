"""OffsetFetch: what one group has committed.

An offset counts for the topic that it was committed for, not for one that has the name of a topic that was deleted;
also when it is asked for by name, which is then that of the topic in the image.

Always true: a group that doesn't exist has committed nothing, which is no error; a partition without an offset has -1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode
from strandline.groups.caller import Caller
from strandline.groups.records import OffsetCommitValue
from strandline.ids import ZERO_UUID
from strandline.metadata.image import TopicImage
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

OFFSET_FETCH: Final = 9
TOPIC_IDS_SINCE = 10
NO_OFFSET = -1


def fetch(
    shard: GroupShard,
    group: OffsetFetchRequest.OffsetFetchRequestGroup,
    require_stable: bool,
    caller: Caller,
    at: Moment,
) -> OffsetFetchResponse.OffsetFetchResponseGroup:
    """The response's group, for one OffsetFetchRequestGroup; topics of None ask for all.
    KafkaError if the member may not ask.
    """
    exists = shard.groups.get(group.group_id)
    if exists is not None:
        exists.validate_offset_fetch(group.member_id, group.member_epoch)
    fetched = _FetchedOffsets(shard, group.group_id, require_stable, caller.version >= TOPIC_IDS_SINCE)
    topics = fetched.all() if group.topics is None else [fetched.asked(topic) for topic in group.topics]
    return messages.response(OFFSET_FETCH).OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


class _FetchedOffsets:
    """The offsets of a group, as responses show them."""

    def __init__(self, shard: GroupShard, group_id: str, require_stable: bool, by_id: bool) -> None:
        self.image = shard.dependencies.image
        self.offsets = shard.offsets
        self.group_id = group_id
        self.require_stable = require_stable
        self.by_id = by_id
        response = messages.response(OFFSET_FETCH)
        self.Topic, self.Partition = response.OffsetFetchResponseTopics, response.OffsetFetchResponsePartitions

    def all(self) -> list[OffsetFetchResponse.OffsetFetchResponseTopics]:
        topics = []
        for name, committed in self.offsets.of_group(self.group_id).items():
            image_of = self.image.topics.get(name)
            if image_of is None and self.by_id:
                continue  # the id of a deleted topic is of no use to a client
            partitions = [
                self.partition(name, image_of, index, value)
                for index, value in committed.items()
                if not _is_of_another(value, image_of)
            ]
            if partitions:
                topic_id = ZERO_UUID if image_of is None else image_of.topic_id
                topics.append(self.Topic(name=name, topic_id=topic_id, partitions=partitions))
        return topics

    def asked(
        self, topic: OffsetFetchRequest.OffsetFetchRequestTopics
    ) -> OffsetFetchResponse.OffsetFetchResponseTopics:
        image_of = self.image.topic(topic.topic_id if self.by_id else topic.name)
        if image_of is None and self.by_id:
            partitions = [self.failed(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes]
        else:
            name = topic.name if image_of is None else image_of.name
            committed = self.offsets.of_group(self.group_id).get(name, {})
            partitions = [
                self.partition(name, image_of, index, committed.get(index)) for index in topic.partition_indexes
            ]
        return self.Topic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)

    def partition(
        self, topic: str, image_of: TopicImage | None, index: int, value: OffsetCommitValue | None
    ) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
        if self.require_stable and self.offsets.is_open(self.group_id, topic, index):
            return self.failed(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if value is None or _is_of_another(value, image_of):
            return self.failed(index, ErrorCode.NONE)
        return self.Partition(
            partition_index=index,
            committed_offset=value.offset,
            committed_leader_epoch=value.leader_epoch,
            metadata=value.metadata,
        )

    def failed(self, index: int, code: ErrorCode) -> OffsetFetchResponse.OffsetFetchResponsePartitions:
        return self.Partition(
            partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=-1, metadata="", error_code=code
        )


def _is_of_another(value: OffsetCommitValue, topic: TopicImage | None) -> bool:
    return topic is not None and value.topic_id not in (ZERO_UUID, topic.topic_id)
