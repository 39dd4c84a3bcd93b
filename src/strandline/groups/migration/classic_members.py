"""Members of a group of the consumer protocol that speak the classic one: JoinGroup, SyncGroup, Heartbeat and
LeaveGroup.

The coordinator assigns; no member leads. A member joins to say what it wants and what it has released, receives its
member epoch as its generation, and syncs to receive its assignment. A heartbeat has it join again when there is a step
for it to take: its target is newer, it has to let go of something, or what it waits for is free.

Always true: no member waits here for the others; a member receives a partition only after its former owner joined
without it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic import join_group, leave_group, responses, sync_group
from strandline.groups.classic.responses import SYNC_GROUP, UNKNOWN_MEMBER_ID
from strandline.groups.consumer import member_fencing, membership, rebalance
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_draft import GroupDraft
from strandline.groups.consumer.member import ConsumerGroupMember, ConsumerGroupMemberState
from strandline.groups.migration import classic_join, embedded_protocol, timeouts
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.heartbeat import HeartbeatRequest, HeartbeatResponse
    from strandline.wire.stubs.join_group import JoinGroupRequest, JoinGroupResponse
    from strandline.wire.stubs.leave_group import LeaveGroupRequest, LeaveGroupResponse
    from strandline.wire.stubs.sync_group import SyncGroupRequest, SyncGroupResponse


def join(
    shard: GroupShard, request: JoinGroupRequest, caller: Caller, at: Moment, answer: Answer[JoinGroupResponse]
) -> CoordinatorResult | None:
    """A group without members becomes a classic one."""
    group = _group(shard, request)
    reply = join_group.for_version(answer, caller.version)
    refused = join_group.refusal(shard, request)
    if refused is not None:
        reply(responses.join_error(refused, request.member_id))
        return None
    if group.is_empty():
        return CoordinatorResult(group.tombstones(), partial(classic_join.join_classic, shard, request, caller, answer))
    try:
        return classic_join.join(shard, group, request, caller, at, answer)
    except KafkaError as error:
        reply(responses.join_error(error.code, request.member_id))
        return None


def sync(
    shard: GroupShard, request: SyncGroupRequest, caller: Caller, at: Moment, answer: Answer[SyncGroupResponse]
) -> CoordinatorResult | None:
    group = _group(shard, request)
    try:
        sync_group.check(request, caller)
        member = _validated(group, request)
        _check_protocol(member, request)
        _check_no_rebalance(shard, group, member, at)
    except KafkaError as error:
        answer(responses.sync_error(error.code))
        return None
    metadata = member.classic_member_metadata
    assert metadata is not None
    version = embedded_protocol.version(metadata.supported_protocols[0].metadata)
    response = messages.response(SYNC_GROUP)(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=embedded_protocol.encode_assignment(member.assigned_partitions, shard.dependencies.image, version),
    )
    # The assignment has to be committed, which is so for what was written before.
    return CoordinatorResult([], partial(_synced, shard, group.group_id, member, answer, response))


def heartbeat(
    shard: GroupShard, request: HeartbeatRequest, caller: Caller, at: Moment, answer: Answer[HeartbeatResponse]
) -> CoordinatorResult | None:
    group = _group(shard, request)
    try:
        member = _validated(group, request)
    except KafkaError as error:
        answer(responses.heartbeat(error.code))
        return None
    member_fencing.extend_session(shard, group, member, at)
    # Apache Kafka leaves this to the heartbeats of the consumer protocol; but there may be no member left that sends
    # them.
    draft = GroupDraft(group)
    rebalance.subscribe(shard, draft, member, member, at)
    rebalance.assign(shard, draft, at)
    has_to_join = _has_to_join(draft.group, member)
    if has_to_join:
        timeouts.expect_join(shard, group.group_id, member, at)
    code = ErrorCode.REBALANCE_IN_PROGRESS if has_to_join else ErrorCode.NONE
    if draft.records:
        return CoordinatorResult(draft.records, partial(_answer_heartbeat, draft, answer, code))
    answer(responses.heartbeat(code))
    return None


def leave(
    shard: GroupShard, request: LeaveGroupRequest, caller: Caller, at: Moment, answer: Answer[LeaveGroupResponse]
) -> CoordinatorResult | None:
    """Members of either protocol, if an administrator removes them.
    However many leave at once, the group gets one epoch.
    """
    group = _group(shard, request)
    gone: dict[str, ConsumerGroupMember] = {}
    results: list[tuple[LeaveGroupRequest.MemberIdentity, ErrorCode]] = []
    for identity in leave_group.identities_of(request, caller):
        try:
            member = _leaving(group, identity)
        except KafkaError as error:
            results.append((identity, error.code))
        else:
            gone[member.member_id] = member
            results.append((identity, ErrorCode.NONE))
    response = leave_group.left(results, caller)
    if not gone:
        answer(response)
        return None
    result = member_fencing.fence(shard, group, list(gone.values()), at)
    result.done = partial(_left, result.done, answer, response)
    return result


# Who it is


def _group(
    shard: GroupShard, request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest
) -> ConsumerGroup:
    group = shard.groups[request.group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def _validated(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> ConsumerGroupMember:
    """The member, if it is who it says, speaks the classic protocol,
    and is in the epoch that it takes for its generation.
    """
    member = _identified(group, request.member_id, request.group_instance_id)
    if not member.uses_classic_protocol:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    if request.generation_id != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {request.generation_id} is not equal to the member epoch {member.member_epoch}"
            f" of member {member.member_id}.",
        )
    return member


def _identified(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
    if instance_id is None:
        return group.member(member_id)
    member = _static_member(group, instance_id)
    membership.check_instance(member, member_id, instance_id)
    return member


def _leaving(group: ConsumerGroup, identity: LeaveGroupRequest.MemberIdentity) -> ConsumerGroupMember:
    """An administrator knows a static member by its instance id alone."""
    if identity.group_instance_id is not None and identity.member_id == UNKNOWN_MEMBER_ID:
        return _static_member(group, identity.group_instance_id)
    return _identified(group, identity.member_id, identity.group_instance_id)


def _static_member(group: ConsumerGroup, instance_id: str) -> ConsumerGroupMember:
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return member


# What it may hear


def _check_protocol(member: ConsumerGroupMember, request: SyncGroupRequest) -> None:
    metadata = member.classic_member_metadata
    assert metadata is not None
    is_type = request.protocol_type in (None, embedded_protocol.PROTOCOL_TYPE)
    if not is_type or request.protocol_name not in (None, metadata.supported_protocols[0].name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _check_no_rebalance(shard: GroupShard, group: ConsumerGroup, member: ConsumerGroupMember, at: Moment) -> None:
    """One that has to let go of partitions did join; it hears now what it keeps, and joins again by itself."""
    if (
        group.assignment_epoch > member.member_epoch
        and member.state is not ConsumerGroupMemberState.UNREVOKED_PARTITIONS
    ):
        timeouts.expect_join(shard, group.group_id, member, at)
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)


def _has_to_join(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    return (
        member.member_epoch < group.assignment_epoch
        or member.state is ConsumerGroupMemberState.UNREVOKED_PARTITIONS
        or (member.state is ConsumerGroupMemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member))
    )


def _waits_for_others(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """A partition of its target is still with another member."""
    return any(
        group.owner(topic_id, partition) not in (None, member.member_id)
        for topic_id, partitions in group.target_assignment.get(member.member_id, {}).items()
        for partition in partitions
    )


# When it is written


def _synced(
    shard: GroupShard,
    group_id: str,
    member: ConsumerGroupMember,
    answer: Answer[SyncGroupResponse],
    response: SyncGroupResponse,
    code: ErrorCode,
    at: Moment,
) -> None:
    if code is not ErrorCode.NONE:
        answer(responses.sync_error(coordinator_error(code)))
        return
    timeouts.synced(shard, group_id, member.member_id)
    member_fencing.begin_session(shard, group_id, member, at)
    answer(response)


def _answer_heartbeat(
    draft: GroupDraft, answer: Answer[HeartbeatResponse], heard: ErrorCode, code: ErrorCode, at: Moment
) -> None:
    if code is not ErrorCode.NONE:
        draft.refused()
        heard = coordinator_error(code)
    answer(responses.heartbeat(heard))


def _left(
    done: Callable[[ErrorCode, Moment], CoordinatorResult | None],
    answer: Answer[LeaveGroupResponse],
    response: LeaveGroupResponse,
    code: ErrorCode,
    at: Moment,
) -> CoordinatorResult | None:
    answer(response if code is ErrorCode.NONE else leave_group.refused(coordinator_error(code)))
    return done(code, at)
