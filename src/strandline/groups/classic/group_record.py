"""The record of a classic group.

Always true: it names every member with its assignment, and of its protocols the one that the group uses.
"""

from __future__ import annotations

from collections.abc import Mapping

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.classic.member import NO_ASSIGNMENT
from strandline.groups.records import NO_TIMESTAMP, GroupMetadataKey, GroupMetadataValue, MemberMetadata


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> CoordinatorRecord:
    """The group as it is; with `assignments` instead of those its members have, as it will be."""
    name = group.protocol_name
    assert name is not None or not group.members
    members = tuple(
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(name) if name is not None else b"",
            assignment=member.assignment if assignments is None else assignments.get(member.member_id, NO_ASSIGNMENT),
        )
        for member in group.members.values()
    )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation_id,
        protocol=name,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP if group.state_since_ms is None else group.state_since_ms,
        members=members,
    )
    return CoordinatorRecord(GroupMetadataKey(group=group.group_id), value)


def new_group_record(group: ClassicGroup) -> CoordinatorRecord:
    """A group that was just made, before any of its members counts."""
    return group_record(ClassicGroup(group.group_id, group.state_since_ms))
