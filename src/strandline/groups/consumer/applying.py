"""What a record changes in a group of the consumer protocol (types 3-8 and 16).

Always true: this is the only way in which what survives of a group changes; a tombstone of what isn't there changes nothing.
"""

from __future__ import annotations

from strandline.groups.consumer.group import INITIAL_EPOCH, NO_EPOCH, ConsumerGroup, ResolvedRegularExpression
from strandline.groups.consumer.member import Member
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
    CoordinatorRecord,
)
from strandline.ids import Uuid


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


def _member(group: ConsumerGroup, member_id: str) -> Member:
    return group.members.get(member_id) or Member(member_id)
