"""What removes a member, or a whole group of the consumer protocol, from the log.

Always true: a member's assignment goes before the member, and everything of a group before the group, so that replay never
meets a part without its whole.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    CoordinatorRecord,
)


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    return [
        CoordinatorRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        CoordinatorRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def regex_tombstone(group_id: str, regex: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def subscription_metadata_tombstone(group_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[CoordinatorRecord]:
    return [
        *(tombstone for member_id in member_ids for tombstone in member_tombstones(group_id, member_id)),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        CoordinatorRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        subscription_metadata_tombstone(group_id),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]
