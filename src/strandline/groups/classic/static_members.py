"""A static member that was restarted: it joins without a member id, and goes on in the place of the one it was.

Always true: of a group instance id only the newest member id counts, the former is fenced at once; while the group is
stable and its protocol stays, no other member notices; the new id is committed before the member receives it.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from strandline.coordinator.result import Answer, CoordinatorResult, Moment, coordinator_error
from strandline.errors import ErrorCode
from strandline.groups.caller import Caller
from strandline.groups.classic import rebalance, responses
from strandline.groups.classic.group import COMPLETING_REBALANCE, STABLE, ClassicGroup
from strandline.groups.classic.group_record import group_record
from strandline.groups.classic.member import ClassicMember, protocols_of, rebalance_timeout_of

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.join_group import JoinGroupRequest, JoinGroupResponse

SKIP_ASSIGNMENT_SINCE = 9


class ReplacedMember(NamedTuple):
    """What the member was, should the change not be written."""

    member_id: str
    protocols: dict[str, bytes]
    rebalance_timeout_ms: int
    session_timeout_ms: int


class PendingReplacement(NamedTuple):
    """What the record was about."""

    member_id: str
    former: ReplacedMember
    former_leader: str | None
    version: int
    """Of the JoinGroup."""


def replace(
    shard: GroupShard,
    group: ClassicGroup,
    member: ClassicMember,
    member_id: str,
    request: JoinGroupRequest,
    caller: Caller,
    at: Moment,
    answer: Answer[JoinGroupResponse],
) -> CoordinatorResult | None:
    """`member` is `member_id` from now on."""
    former = ReplacedMember(
        member.member_id, member.supported_protocols, member.rebalance_timeout_ms, member.session_timeout_ms
    )
    former_leader = group.leader_id
    group.answer_join(member, responses.join_error(ErrorCode.FENCED_INSTANCE_ID, former.member_id))
    group.answer_sync(member, responses.sync_error(ErrorCode.FENCED_INSTANCE_ID))
    group.update(member, protocols_of(request.protocols), rebalance_timeout_of(request), request.session_timeout_ms)
    _rename(shard, group, member, member_id, at)
    group.await_join(member, answer)
    if group.state is COMPLETING_REBALANCE:
        # The leader may be assigning partitions to the former id.
        return rebalance.prepare_rebalance(shard, group, at)
    if group.state is STABLE and group.select_protocol() == group.protocol_name:
        written = PendingReplacement(member_id, former, former_leader, caller.version)
        return CoordinatorResult(
            [group_record(group)], partial(_written, shard, group, member, written), replayed=False
        )
    return rebalance.rebalance_or_complete(shard, group, at)


def _rename(shard: GroupShard, group: ClassicGroup, member: ClassicMember, member_id: str, at: Moment) -> None:
    shard.timers.cancel(rebalance.session_key(group.group_id, member.member_id))
    member.session_timer_s = inf
    group.rename_static_member(member, member_id)
    rebalance.watch_session(shard, group, member, at)


def _written(
    shard: GroupShard,
    group: ClassicGroup,
    member: ClassicMember,
    written: PendingReplacement,
    code: ErrorCode,
    at: Moment,
) -> None:
    if not rebalance.is_current(shard, group) or group.state is not STABLE:
        return  # a rebalance began meanwhile, which answers the join
    if member.member_id != written.member_id:
        return  # it was fenced meanwhile, by the next with its instance id
    if code is not ErrorCode.NONE:
        _take_back(shard, group, member, written.former, code, at)
        return
    is_leader = member.member_id == group.leader_id
    if written.version >= SKIP_ASSIGNMENT_SINCE:
        response = responses.joined(group, member, tells_members=is_leader, skip_assignment=is_leader)
    else:
        # If it were named as the leader, it would assign partitions, which no member would receive: the group is
        # stable.
        response = responses.joined(group, member, tells_members=False)
        response.leader = written.former_leader or ""
    group.answer_join(member, response)
    rebalance.watch_session(shard, group, member, at)


def _take_back(
    shard: GroupShard, group: ClassicGroup, member: ClassicMember, former: ReplacedMember, code: ErrorCode, at: Moment
) -> None:
    group.answer_join(member, responses.join_error(coordinator_error(code)))
    group.update(member, former.protocols, former.rebalance_timeout_ms, former.session_timeout_ms)
    _rename(shard, group, member, former.member_id, at)
