"""JoinGroup to a classic group: a member comes, comes back, or says that something has changed.

A dynamic member is given an id first and has to join again with it (since version 4), so that a client that gave up
waiting does not leave a member behind. A static member that comes without an id takes the place of the one it was
(`static_members.py`).

Always true: a group that did not exist is written as an empty one, before any generation of it.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic import rebalance, responses, static_members
from strandline.groups.classic.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
)
from strandline.groups.classic.group_record import new_group_record
from strandline.groups.classic.member import ClassicMember, protocols_of, rebalance_timeout_of
from strandline.groups.classic.responses import UNKNOWN_MEMBER_ID

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.join_group import JoinGroupRequest, JoinGroupResponse

MEMBER_ID_REQUIRED_SINCE = 4
NULL_PROTOCOL_SINCE = 7
PROTOCOLS_MAX = 100
"""That a member may offer."""
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""A member that doesn't know its id yet can't send heartbeats;
should it be gone, it is waited for no longer than this.
"""


def join(
    shard: GroupShard, request: JoinGroupRequest, caller: Caller, at: Moment, answer: Answer[JoinGroupResponse]
) -> CoordinatorResult | None:
    answer = for_version(answer, caller.version)
    member_id = request.member_id
    refused = refusal(shard, request)
    if refused is not None:
        answer(responses.join_error(refused, member_id))
        return None
    group = shard.classic_group(request.group_id)
    if group is not None:
        return _join(shard, group, request, caller, at, answer)
    if member_id != UNKNOWN_MEMBER_ID:
        answer(responses.join_error(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        return None
    group = ClassicGroup(request.group_id, at.wall_ms)
    if not group.supports(request.protocol_type, protocols_of(request.protocols)):
        answer(responses.join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return None
    record = new_group_record(group)
    shard.groups[group.group_id] = group
    result = _join(shard, group, request, caller, at, answer)
    assert result is None, "the first generation waits"
    return CoordinatorResult([record], done=partial(_created, shard, group), replayed=False)


def _created(shard: GroupShard, group: ClassicGroup, code: ErrorCode, at: Moment) -> None:
    if code is not ErrorCode.NONE and rebalance.is_current(shard, group):
        rebalance.abandon(shard, group, coordinator_error(code))
        del shard.groups[group.group_id]
        shard.keep_offsets_of(group.group_id, at.wall_ms)


def refusal(shard: GroupShard, request: JoinGroupRequest) -> ErrorCode | None:
    """Why no member may join with this request, whatever the group is."""
    config = shard.dependencies.config
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    metadata_bytes = sum(len(protocol.metadata) for protocol in request.protocols)
    if len(request.protocols) > PROTOCOLS_MAX or metadata_bytes > config.topic_defaults.max_message_bytes:
        # It could not be written down with the group.
        return ErrorCode.INVALID_REQUEST
    return None


def for_version(answer: Answer[JoinGroupResponse], version: int) -> Answer[JoinGroupResponse]:
    """No protocol is null since version 7, and an empty name before."""
    return partial(_answer_with_null, answer) if version >= NULL_PROTOCOL_SINCE else answer


def _answer_with_null(answer: Answer[JoinGroupResponse], response: JoinGroupResponse) -> None:
    response.protocol_name = response.protocol_name or None
    answer(response)


def new_member_id(shard: GroupShard, prefix: str) -> str:
    """`prefix` is the group instance id, or else the client id."""
    return f"{prefix}-{uuid.UUID(int=shard.dependencies.randomness.getrandbits(128), version=4)}"


def _join(
    shard: GroupShard,
    group: ClassicGroup,
    request: JoinGroupRequest,
    caller: Caller,
    at: Moment,
    answer: Answer[JoinGroupResponse],
) -> CoordinatorResult | None:
    member_id = request.member_id
    if not _has_room(shard, group, request):
        answer(responses.join_error(ErrorCode.GROUP_MAX_SIZE_REACHED))
        return _shut_out(shard, group, member_id, at)
    if not group.supports(request.protocol_type, protocols_of(request.protocols)):
        answer(responses.join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id))
        return None
    if member_id == UNKNOWN_MEMBER_ID:
        return _join_without_id(shard, group, request, caller, at, answer)
    if member_id in group.pending_join and request.group_instance_id is None:
        return _add(shard, group, member_id, request, caller, at, answer)
    try:
        member = group.validate_member(member_id, request.group_instance_id)
    except KafkaError as error:
        answer(responses.join_error(error.code, member_id))
        return None
    return _rejoin(shard, group, member, request, at, answer)


def _has_room(shard: GroupShard, group: ClassicGroup, request: JoinGroupRequest) -> bool:
    size_max = shard.dependencies.config.group_max_size
    if request.member_id == UNKNOWN_MEMBER_ID and len(group.pending_join) >= 2 * size_max:
        # Kafka gives out ids without a bound, each of which it remembers for a session.
        return False
    # A static member that comes back takes no more room than it had.
    member_id = request.member_id
    if member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is not None:
        member_id = group.static_members.get(request.group_instance_id, UNKNOWN_MEMBER_ID)
    member = group.members.get(member_id)
    if group.state is EMPTY:
        return True
    if group.state is PREPARING_REBALANCE:
        # Should the limit be lower than it was, those who join last are the ones for whom there is no room.
        return (member is not None and member.join_answer is not None) or group.awaiting_join_count < size_max
    return member is not None or len(group.members) < size_max


def _shut_out(shard: GroupShard, group: ClassicGroup, member_id: str, at: Moment) -> CoordinatorResult | None:
    member = group.members.get(member_id)
    if member is not None:
        rebalance.drop_member(shard, group, member)
    else:
        group.pending_join.discard(member_id)
        shard.timers.cancel(rebalance.session_key(group.group_id, member_id))
    return rebalance.maybe_complete_join(shard, group, at)


# Those who are new


def _join_without_id(
    shard: GroupShard,
    group: ClassicGroup,
    request: JoinGroupRequest,
    caller: Caller,
    at: Moment,
    answer: Answer[JoinGroupResponse],
) -> CoordinatorResult | None:
    instance_id = request.group_instance_id
    if instance_id is not None:
        member_id = new_member_id(shard, instance_id)
        existing_id = group.static_members.get(instance_id)
        if existing_id is None:
            return _add(shard, group, member_id, request, caller, at, answer)
        member = group.members[existing_id]
        return static_members.replace(shard, group, member, member_id, request, caller, at, answer)
    member_id = new_member_id(shard, caller.client_id)
    if caller.version < MEMBER_ID_REQUIRED_SINCE:
        return _add(shard, group, member_id, request, caller, at, answer)
    group.pending_join.add(member_id)
    shard.timers.schedule(
        rebalance.session_key(group.group_id, member_id),
        at.now + request.session_timeout_ms / 1000,
        partial(_pending_due, shard, group, member_id),
    )
    answer(responses.join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    return None


def _pending_due(shard: GroupShard, group: ClassicGroup, member_id: str, at: Moment) -> CoordinatorResult | None:
    """It was given an id, and never joined with it."""
    if not rebalance.is_current(shard, group) or member_id not in group.pending_join:
        return None
    group.remove(member_id)
    return rebalance.after_pending_removal(shard, group, at)


def _add(
    shard: GroupShard,
    group: ClassicGroup,
    member_id: str,
    request: JoinGroupRequest,
    caller: Caller,
    at: Moment,
    answer: Answer[JoinGroupResponse],
) -> CoordinatorResult | None:
    member = ClassicMember(
        member_id=member_id,
        group_instance_id=request.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        rebalance_timeout_ms=rebalance_timeout_of(request),
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        supported_protocols=protocols_of(request.protocols),
        is_new=True,
    )
    if group.state is PREPARING_REBALANCE and group.previous_state is EMPTY:
        group.new_member_added = True
    group.add(member, answer)
    rebalance.watch_session(shard, group, member, at, NEW_MEMBER_JOIN_TIMEOUT_MS)
    return rebalance.rebalance_or_complete(shard, group, at)


# Those who are known


def _rejoin(
    shard: GroupShard,
    group: ClassicGroup,
    member: ClassicMember,
    request: JoinGroupRequest,
    at: Moment,
    answer: Answer[JoinGroupResponse],
) -> CoordinatorResult | None:
    protocols = protocols_of(request.protocols)
    is_leader = member.member_id == group.leader_id
    if group.state is COMPLETING_REBALANCE and member.matches(protocols):
        # The answer to its join was lost.
        answer(responses.joined(group, member, tells_members=is_leader))
        return None
    if group.state is STABLE and member.matches(protocols) and not is_leader:
        # Nothing changes for the others. A leader that joins has seen something that asks for a new assignment.
        answer(responses.joined(group, member, tells_members=False))
        return None
    group.update(member, protocols, rebalance_timeout_of(request), request.session_timeout_ms)
    group.await_join(member, answer)
    return rebalance.rebalance_or_complete(shard, group, at)
