"""A static member that was restarted: it joins without a member id, and goes on in the place of the one it was.

Always true: of a group instance id only the newest member id counts, the former is fenced at once; while the group is stable
and its protocol stays, nobody else notices; the new id is committed before the member hears of it.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from strandline.errors import ErrorCode
from strandline.groups.classic import answers, rebalancing
from strandline.groups.classic.group import COMPLETING_REBALANCE, STABLE, ClassicGroup
from strandline.groups.classic.member import ClassicMember, protocols_of, rebalance_timeout_of
from strandline.groups.classic.recording import group_record
from strandline.groups.outcome import Answer, Caller, Moment, Outcome

if TYPE_CHECKING:
    from strandline.groups.shard import Shard

SKIP_ASSIGNMENT_SINCE = 9


class Former(NamedTuple):
    """What the member was, should the change not be written."""

    member_id: str
    protocols: dict[str, bytes]
    rebalance_timeout_ms: int
    session_timeout_ms: int


class Written(NamedTuple):
    """What the record was about."""

    member_id: str
    former: Former
    former_leader: str | None
    version: int
    """Of the JoinGroup."""


def replace(
    shard: Shard,
    group: ClassicGroup,
    member: ClassicMember,
    member_id: str,
    request: Any,
    caller: Caller,
    at: Moment,
    answer: Answer,
) -> Outcome | None:
    """`member` is `member_id` from now on."""
    former = Former(
        member.member_id, member.supported_protocols, member.rebalance_timeout_ms, member.session_timeout_ms
    )
    former_leader = group.leader_id
    group.answer_join(member, answers.join_error(ErrorCode.FENCED_INSTANCE_ID, former.member_id))
    group.answer_sync(member, answers.sync_error(ErrorCode.FENCED_INSTANCE_ID))
    group.update(member, protocols_of(request.protocols), rebalance_timeout_of(request), request.session_timeout_ms)
    _rename(shard, group, member, member_id, at)
    group.await_join(member, answer)
    if group.state is COMPLETING_REBALANCE:
        # The leader may be assigning partitions to the former id.
        return rebalancing.prepare_rebalance(shard, group, at)
    if group.state is STABLE and group.select_protocol() == group.protocol_name:
        written = Written(member_id, former, former_leader, caller.version)
        return Outcome([group_record(group)], partial(_written, shard, group, member, written), replayed=False)
    return rebalancing.rebalance_or_complete(shard, group, at)


def _rename(shard: Shard, group: ClassicGroup, member: ClassicMember, member_id: str, at: Moment) -> None:
    shard.timers.cancel(rebalancing.session_key(group.group_id, member.member_id))
    member.session_timer_s = inf
    group.rename_static_member(member, member_id)
    rebalancing.watch_session(shard, group, member, at)


def _written(
    shard: Shard, group: ClassicGroup, member: ClassicMember, written: Written, code: ErrorCode, at: Moment
) -> None:
    if not rebalancing.is_current(shard, group) or group.state is not STABLE:
        return  # a rebalance began meanwhile, which answers the join
    if member.member_id != written.member_id:
        return  # it was fenced meanwhile, by the next with its instance id
    if code is not ErrorCode.NONE:
        _take_back(shard, group, member, written.former, code, at)
        return
    is_leader = member.member_id == group.leader_id
    if written.version >= SKIP_ASSIGNMENT_SINCE:
        response = answers.joined(group, member, tells_members=is_leader, skip_assignment=is_leader)
    else:
        # Were it told that it leads, it would assign partitions, which nobody would hear of: the group is stable.
        response = answers.joined(group, member, tells_members=False)
        response.leader = written.former_leader or ""
    group.answer_join(member, response)
    rebalancing.watch_session(shard, group, member, at)


def _take_back(
    shard: Shard, group: ClassicGroup, member: ClassicMember, former: Former, code: ErrorCode, at: Moment
) -> None:
    group.answer_join(member, answers.join_error(answers.after_failed_write(code)))
    group.update(member, former.protocols, former.rebalance_timeout_ms, former.session_timeout_ms)
    _rename(shard, group, member, former.member_id, at)
