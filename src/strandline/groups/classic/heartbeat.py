"""Heartbeat to a classic group: a member is alive, and hears whether it has to join again.

Always true: it costs no timer; the member's timer looks at when it was last heard from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.coordinator.result import Answer, CoordinatorResult, Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic import responses
from strandline.groups.classic.group import PREPARING_REBALANCE

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(
    shard: GroupShard, request: HeartbeatRequest, caller: Caller, at: Moment, answer: Answer[HeartbeatResponse]
) -> CoordinatorResult | None:
    try:
        code = _beat(shard, request, at)
    except KafkaError as error:
        code = error.code
    answer(responses.heartbeat(code))
    return None


def _beat(shard: GroupShard, request: HeartbeatRequest, at: Moment) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    group = shard.classic_group(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    member.heard(at)
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE
