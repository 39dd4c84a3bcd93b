"""A group of the consumer protocol in DescribeGroups, for clients that do not know ConsumerGroupDescribe.

Kafka answers that the group is dead. Here they see its members and what each of them reads, in the states and bytes of
the classic protocol.

Always true: states that the classic protocol does not have are shown as the rebalances that they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.groups.classic.responses import DESCRIBE_GROUPS
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.consumer.rebalance import assignor_name
from strandline.groups.migration import embedded_protocol
from strandline.metadata.image import MetadataImage
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.describe_groups import DescribeGroupsResponse

PROTOCOL_TYPE = "consumer"
SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
SUBSCRIPTION_VERSION = 1
CLASSIC_STATES = {"Assigning": "PreparingRebalance", "Reconciling": "CompletingRebalance"}


def described(shard: GroupShard, group: ConsumerGroup) -> DescribeGroupsResponse.DescribedGroup:
    """One DescribedGroup of DescribeGroups."""
    state = group.state_name()
    return messages.response(DESCRIBE_GROUPS).DescribedGroup(
        group_id=group.group_id,
        group_state=CLASSIC_STATES.get(state, state),
        protocol_type=PROTOCOL_TYPE,
        protocol_data=assignor_name(shard, group) if group.members else "",
        members=[_member(member, shard.dependencies.image) for member in group.members.values()],
    )


def _member(member: ConsumerGroupMember, image: MetadataImage) -> DescribeGroupsResponse.DescribedGroupMember:
    topics = sorted(member.subscribed_topic_names)
    subscription = messages.data(SUBSCRIPTION)(topics=topics, user_data=None)
    body = messages.encode_data(SUBSCRIPTION, SUBSCRIPTION_VERSION, subscription)
    metadata = SUBSCRIPTION_VERSION.to_bytes(embedded_protocol.VERSION_SIZE, "big") + body
    return messages.response(DESCRIBE_GROUPS).DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=metadata,
        member_assignment=embedded_protocol.encode_assignment(member.assigned_partitions, image, SUBSCRIPTION_VERSION),
    )
