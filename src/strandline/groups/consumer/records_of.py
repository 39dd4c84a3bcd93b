"""The records that a member is written in.

Always true: what it wants and what it has are two records, since the second changes far more often.
"""

from __future__ import annotations

from strandline.groups.consumer.member import Member
from strandline.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    CoordinatorRecord,
)


def member_record(group_id: str, member: Member) -> CoordinatorRecord:
    key = ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.metadata_value())


def assignment_record(group_id: str, member: Member) -> CoordinatorRecord:
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return CoordinatorRecord(key, member.assignment_value())
