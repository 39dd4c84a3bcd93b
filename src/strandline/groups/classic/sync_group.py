"""SyncGroup to a classic group: the leader says who gets what, the others ask.

Always true: a member receives no assignment that isn't committed, and none of a generation that is over.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic import rebalance, responses
from strandline.groups.classic.group import COMPLETING_REBALANCE, PREPARING_REBALANCE, ClassicGroup
from strandline.groups.classic.group_record import group_record
from strandline.groups.classic.member import ClassicMember

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_SINCE = 5


def sync(
    shard: GroupShard, request: SyncGroupRequest, caller: Caller, at: Moment, answer: Answer[SyncGroupResponse]
) -> CoordinatorResult | None:
    try:
        check(request, caller)
        group, member = _validated(shard, request)
    except KafkaError as error:
        answer(responses.sync_error(error.code))
        return None
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        shard.timers.cancel(rebalance.sync_key(group.group_id))
    if group.state is not COMPLETING_REBALANCE:
        # A new coordinator may have read it back before it was committed.
        return CoordinatorResult([], partial(_committed, answer, responses.synced(group, member)))
    group.await_sync(member, answer)
    if member.member_id != group.leader_id:
        return None
    assignments = {given.member_id: bytes(given.assignment) for given in request.assignments}
    done = partial(_written, shard, group, group.generation_id, assignments)
    return CoordinatorResult([group_record(group, assignments)], done, replayed=False)


def check(request: SyncGroupRequest, caller: Caller) -> None:
    """KafkaError if no member may sync with this request, whatever the group is."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if caller.version >= PROTOCOL_REQUIRED_SINCE and (request.protocol_type is None or request.protocol_name is None):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _validated(shard: GroupShard, request: SyncGroupRequest) -> tuple[ClassicGroup, ClassicMember]:
    group = shard.classic_group(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
        None,
        group.protocol_name,
    ):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.state is PREPARING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    return group, member


def _committed(answer: Answer[SyncGroupResponse], response: SyncGroupResponse, code: ErrorCode, at: Moment) -> None:
    answer(response if code is ErrorCode.NONE else responses.sync_error(coordinator_error(code)))


def _written(
    shard: GroupShard,
    group: ClassicGroup,
    generation_id: int,
    assignments: dict[str, bytes],
    code: ErrorCode,
    at: Moment,
) -> CoordinatorResult | None:
    if not rebalance.is_current(shard, group) or group.generation_id != generation_id:
        return None
    if group.state is not COMPLETING_REBALANCE:
        return None  # a rebalance began meanwhile, which answered all waiting requests
    if code is ErrorCode.NONE:
        rebalance.assign(shard, group, assignments, at)
        return None
    rebalance.reset_assignments(shard, group, coordinator_error(code), at)
    return rebalance.prepare_rebalance(shard, group, at)
