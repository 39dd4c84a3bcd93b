"""A group of the consumer protocol as DescribeGroups tells it, for clients that know no other way to ask.

Kafka tells them that the group is dead. Here they see who is in it and who reads what, in the words and bytes of the classic
protocol.

Always true: states that the classic protocol does not have are told as the rebalances that they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strandline.groups.classic.answers import DESCRIBE_GROUPS
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import Member
from strandline.groups.consumer.updating import assignor_name
from strandline.groups.migration import embedded
from strandline.metadata.image import MetadataImage
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import Shard

PROTOCOL_TYPE = "consumer"
SUBSCRIPTION = "ConsumerProtocolSubscription"
SUBSCRIPTION_VERSION = 1
CLASSIC_STATES = {"Assigning": "PreparingRebalance", "Reconciling": "CompletingRebalance"}


def described(shard: Shard, group: ConsumerGroup) -> Any:
    """One DescribedGroup of DescribeGroups."""
    state = group.state_name()
    return messages.response(DESCRIBE_GROUPS).DescribedGroup(
        group_id=group.group_id,
        group_state=CLASSIC_STATES.get(state, state),
        protocol_type=PROTOCOL_TYPE,
        protocol_data=assignor_name(shard, group) if group.members else "",
        members=[_member(member, shard.surroundings.image) for member in group.members.values()],
    )


def _member(member: Member, image: MetadataImage) -> Any:
    topics = sorted(member.subscribed_topic_names)
    subscription = messages.data(SUBSCRIPTION)(topics=topics, user_data=None)
    body = messages.encode_data(SUBSCRIPTION, SUBSCRIPTION_VERSION, subscription)
    metadata = SUBSCRIPTION_VERSION.to_bytes(embedded.VERSION_SIZE, "big") + body
    return messages.response(DESCRIBE_GROUPS).DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=metadata,
        member_assignment=embedded.encode_assignment(member.assigned_partitions, image, SUBSCRIPTION_VERSION),
    )
