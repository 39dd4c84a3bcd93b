"""ConsumerGroupHeartbeat with epoch -1 or -2: a member leaves, for good or, if it is a static one, for a while.

Always true: who leaves for a while keeps its assignment and its place, but no partition that it was asked to let go of;
its session goes on, and it is fenced if it does not come back in time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer import member_fencing, membership
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_records import assignment_record
from strandline.groups.consumer.member import LEAVE_GROUP_STATIC_MEMBER_EPOCH, ConsumerGroupMember
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )

CONSUMER_GROUP_HEARTBEAT: Final = 68


def leave(
    shard: GroupShard,
    request: ConsumerGroupHeartbeatRequest,
    at: Moment,
    answer: Answer[ConsumerGroupHeartbeatResponse],
) -> CoordinatorResult:
    group = shard.consumer_group(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    member = _leaving(group, request)
    if request.instance_id is not None and request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        result = CoordinatorResult([assignment_record(group.group_id, _away(member))])
    else:
        result = member_fencing.fence(shard, group, [member], at)
    Response = messages.response(CONSUMER_GROUP_HEARTBEAT)
    before = result.done

    def done(code: ErrorCode, at: Moment) -> CoordinatorResult | None:
        if code:
            answer(Response(error_code=coordinator_error(code)))
        else:
            answer(Response(member_id=request.member_id, member_epoch=request.member_epoch))
        return before(code, at)

    result.done = done
    return result


def _leaving(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupMember:
    if request.instance_id is None:
        return group.member(request.member_id)
    member = group.static_member(request.instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {request.instance_id} is unknown.")
    membership.check_instance(member, request.member_id, request.instance_id)
    return member


def _away(member: ConsumerGroupMember) -> ConsumerGroupMember:
    """Its successor has had the partitions from the beginning, whatever its epoch."""
    return replace(
        member,
        member_epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
        assigned_partitions={
            topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned_partitions.items()
        },
        partitions_pending_revocation={},
    )
