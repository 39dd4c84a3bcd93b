"""LeaveGroup to a classic group: members go, one or many at once.

An administrator removes a static member by its group instance id alone.

Always true: however many leave at once, there is one rebalance; each is answered for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic import rebalance
from strandline.groups.classic.group import COMPLETING_REBALANCE, STABLE, ClassicGroup
from strandline.groups.classic.responses import LEAVE_GROUP, UNKNOWN_MEMBER_ID
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.leave_group import LeaveGroupRequest, LeaveGroupResponse

MEMBERS_SINCE = 3


def leave(
    shard: GroupShard, request: LeaveGroupRequest, caller: Caller, at: Moment, answer: Answer[LeaveGroupResponse]
) -> CoordinatorResult | None:
    if not request.group_id:
        answer(refused(ErrorCode.INVALID_GROUP_ID))
        return None
    identities = identities_of(request, caller)
    group = shard.classic_group(request.group_id)
    if group is None:
        answer(left([(identity, ErrorCode.UNKNOWN_MEMBER_ID) for identity in identities], caller))
        return None
    members_before = len(group.members)
    results = [(identity, _remove(shard, group, identity)) for identity in identities]
    has_shrunk = len(group.members) < members_before
    response = left(results, caller)
    if has_shrunk and group.state in (STABLE, COMPLETING_REBALANCE):
        result = rebalance.prepare_rebalance(shard, group, at)
    else:
        result = rebalance.maybe_complete_join(shard, group, at)
    if result is None:
        answer(response)
        return None
    result.done = partial(_written, answer, response)
    return result


def _written(answer: Answer[LeaveGroupResponse], response: LeaveGroupResponse, code: ErrorCode, at: Moment) -> None:
    """The group is empty, which was to be written."""
    answer(response if code is ErrorCode.NONE else refused(coordinator_error(code)))


def _remove(shard: GroupShard, group: ClassicGroup, identity: LeaveGroupRequest.MemberIdentity) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_join:
        shard.timers.cancel(rebalance.session_key(group.group_id, member_id))
        group.remove(member_id)
        return ErrorCode.NONE
    if member_id == UNKNOWN_MEMBER_ID and instance_id is not None:
        member_id = group.static_members.get(instance_id, UNKNOWN_MEMBER_ID)
    try:
        member = group.validate_member(member_id, instance_id)
    except KafkaError as error:
        return error.code
    rebalance.drop_member(shard, group, member)
    return ErrorCode.NONE


# What all versions come to


def identities_of(request: LeaveGroupRequest, caller: Caller) -> Sequence[LeaveGroupRequest.MemberIdentity]:
    """Who leaves: one member before version 3, any number since."""
    if caller.version >= MEMBERS_SINCE:
        return request.members
    return [messages.request(LEAVE_GROUP).MemberIdentity(member_id=request.member_id)]


def left(results: Sequence[tuple[LeaveGroupRequest.MemberIdentity, ErrorCode]], caller: Caller) -> LeaveGroupResponse:
    """The response: a code for each member that was to leave; before version 3, for the only one."""
    if caller.version < MEMBERS_SINCE:
        return refused(results[0][1])
    MemberResponse = messages.response(LEAVE_GROUP).MemberResponse
    return messages.response(LEAVE_GROUP)(
        members=[
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
            for identity, code in results
        ]
    )


def refused(code: ErrorCode) -> LeaveGroupResponse:
    return messages.response(LEAVE_GROUP)(error_code=code)
