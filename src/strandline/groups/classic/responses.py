"""The responses that members of a classic group are given.

Always true: only the leader receives the list of members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.classic.group import ClassicGroup
    from strandline.groups.classic.member import ClassicMember
    from strandline.wire.stubs.heartbeat import HeartbeatResponse
    from strandline.wire.stubs.join_group import JoinGroupResponse
    from strandline.wire.stubs.sync_group import SyncGroupResponse

JOIN_GROUP: Final = 11
HEARTBEAT: Final = 12
LEAVE_GROUP: Final = 13
SYNC_GROUP: Final = 14
DESCRIBE_GROUPS: Final = 15
UNKNOWN_MEMBER_ID = ""


def join_error(code: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> JoinGroupResponse:
    return messages.response(JOIN_GROUP)(error_code=code, member_id=member_id)


def joined(
    group: ClassicGroup, member: ClassicMember, *, tells_members: bool, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The generation that the member is part of; `tells_members`: and those it is to assign partitions to."""
    Response = messages.response(JOIN_GROUP)
    return Response(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name or "",
        leader=group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=_members(group) if tells_members else [],
    )


def _members(group: ClassicGroup) -> list[JoinGroupResponse.JoinGroupResponseMember]:
    Member = messages.response(JOIN_GROUP).JoinGroupResponseMember
    name = group.protocol_name
    assert name is not None
    return [
        Member(member_id=member.member_id, group_instance_id=member.group_instance_id, metadata=member.metadata(name))
        for member in group.members.values()
    ]


def sync_error(code: ErrorCode) -> SyncGroupResponse:
    return messages.response(SYNC_GROUP)(error_code=code)


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return messages.response(SYNC_GROUP)(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def heartbeat(code: ErrorCode) -> HeartbeatResponse:
    return messages.response(HEARTBEAT)(error_code=code)
