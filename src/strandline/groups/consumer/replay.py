"""Records of groups of the consumer protocol (types 3-8 and 16), as they are appended or read back.

Always true: replay is the only way in which what survives of a group changes; a group is there from its first record on
until the tombstone of its epoch; a tombstone of what isn't there changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups.consumer.group import INITIAL_EPOCH, NO_EPOCH, ConsumerGroup, ResolvedRegularExpression
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from strandline.ids import Uuid

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

KEYS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
"""Of the records that are ours."""


def replay(shard: GroupShard, record: CoordinatorRecord) -> None:
    """A record of ours that was appended, or is read back."""
    key = record.key
    assert isinstance(key, KEYS)
    group = shard.groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        # A classic group of this id is no more than its offsets: had it been more, its tombstone would have come
        # before.
        if record.value is None:
            return
        group = shard.groups[key.group_id] = ConsumerGroup(key.group_id)
    if isinstance(key, ConsumerGroupMetadataKey) and record.value is None:
        del shard.groups[key.group_id]
    else:
        apply(group, record)


def apply(group: ConsumerGroup, record: CoordinatorRecord) -> None:
    """Change the group by a record of ours; others don't concern it."""
    match record:
        case (ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue() as metadata):
            group.group_epoch, group.metadata_hash = metadata.epoch, metadata.metadata_hash
        case (ConsumerGroupMetadataKey(), None):
            group.group_epoch, group.metadata_hash = INITIAL_EPOCH, 0
        case (ConsumerGroupPartitionMetadataKey(), value):
            group.has_subscription_metadata_record = value is not None
        case (ConsumerGroupMemberMetadataKey(member_id=member_id), ConsumerGroupMemberMetadataValue() as metadata):
            group.put_member(_member(group, member_id).with_metadata(metadata))
        case (ConsumerGroupMemberMetadataKey(member_id=member_id), None):
            group.remove_member(member_id)
        case (ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue() as target):
            group.assignment_epoch, group.assignment_timestamp_ms = target.assignment_epoch, target.assignment_timestamp
        case (ConsumerGroupTargetAssignmentMetadataKey(), None):
            group.assignment_epoch, group.assignment_timestamp_ms = NO_EPOCH, 0
        case (
            ConsumerGroupTargetAssignmentMemberKey(member_id=member_id),
            ConsumerGroupTargetAssignmentMemberValue() as target,
        ):
            group.target_assignment[member_id] = {
                Uuid(topic.topic_id): frozenset(topic.partitions)
                for topic in target.topic_partitions
                if topic.partitions
            }
        case (ConsumerGroupTargetAssignmentMemberKey(member_id=member_id), None):
            group.target_assignment.pop(member_id, None)
        case (
            ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id),
            ConsumerGroupCurrentMemberAssignmentValue() as now,
        ):
            group.put_member(_member(group, member_id).with_assignment(now))
        case (ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id), None):
            if member_id in group.members:
                group.put_member(group.members[member_id].without_assignment())
        case (
            ConsumerGroupRegularExpressionKey(regular_expression=regex),
            ConsumerGroupRegularExpressionValue() as resolved,
        ):
            group.put_resolved_regular_expression(
                regex, ResolvedRegularExpression(frozenset(resolved.topics), resolved.version, resolved.timestamp)
            )
        case (ConsumerGroupRegularExpressionKey(regular_expression=regex), None):
            group.remove_resolved_regular_expression(regex)


def _member(group: ConsumerGroup, member_id: str) -> ConsumerGroupMember:
    return group.members.get(member_id) or ConsumerGroupMember(member_id)
