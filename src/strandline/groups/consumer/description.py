"""ConsumerGroupDescribe (69), versions 0-1: a group of the consumer protocol, its members, what they have and are to
have.

v1 says which protocol a member speaks (KIP-1099).

Always true: a member is shown with everything that it is responsible for, also what it has been asked to let go of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.consumer.rebalance import assignor_name
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.consumer_group_describe import ConsumerGroupDescribeResponse

CONSUMER_GROUP_DESCRIBE: Final = 69
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe(shard: GroupShard, group_id: str, caller: Caller) -> ConsumerGroupDescribeResponse.DescribedGroup:
    """One DescribedGroup; GROUP_ID_NOT_FOUND is a code in it."""
    DescribedGroup = messages.response(CONSUMER_GROUP_DESCRIBE).DescribedGroup
    try:
        group = shard.consumer_group(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    except KafkaError as error:
        return DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id)
    image = shard.dependencies.image
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_name(shard, group),
        members=[_member(group, member, image) for member in group.members.values()],
    )


def _member(
    group: ConsumerGroup, member: ConsumerGroupMember, image: MetadataImage
) -> ConsumerGroupDescribeResponse.Member:
    has: dict[Uuid, set[int]] = {}
    for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
        for topic_id, epochs in partitions.items():
            has.setdefault(topic_id, set()).update(epochs)
    return messages.response(CONSUMER_GROUP_DESCRIBE).Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(has.items(), image),
        target_assignment=_assignment(group.target_assignment.get(member.member_id, {}).items(), image),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(
    partitions: Iterable[tuple[Uuid, Iterable[int]]], image: MetadataImage
) -> ConsumerGroupDescribeResponse.Assignment:
    """Topics that are no more have no name to show."""
    Response = messages.response(CONSUMER_GROUP_DESCRIBE)
    named = [
        (topic.name, topic_id, numbers)
        for topic_id, numbers in partitions
        if (topic := image.topics_by_id.get(topic_id))
    ]
    return Response.Assignment(
        topic_partitions=[
            Response.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=sorted(numbers))
            for name, topic_id, numbers in sorted(named, key=lambda topic: topic[0])
        ]
    )
