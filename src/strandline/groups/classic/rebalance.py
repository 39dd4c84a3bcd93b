"""A rebalance of a classic group: how a generation ends, and the next begins. (KIP-848: `groups/consumer/rebalance.py`.)

A rebalance is prepared when members come, go, fail or change. All members have to join again, for which there is as
much time as the slowest member asked for; an empty group waits a little for more members to come
(`group.initial.rebalance.delay.ms`). Then the generation begins, the joins are answered, and all members have to sync.

Always true: every member has a session timer, and every rebalance one that ends it; a timer that outlives its group
does nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.coordinator.timers import TimerKey
from strandline.errors import ErrorCode
from strandline.groups.classic import responses
from strandline.groups.classic.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
)
from strandline.groups.classic.group_record import group_record
from strandline.groups.classic.member import NO_ASSIGNMENT, ClassicMember

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard


ABSENT_WAIT_MIN_MS = 1000
"""So long static members are waited for at a time, also those who say that a rebalance may take no time."""


def session_key(group_id: str, member_id: str) -> TimerKey:
    return ("heartbeat", group_id, member_id)


def join_key(group_id: str) -> TimerKey:
    return ("join", group_id)


def sync_key(group_id: str) -> TimerKey:
    return ("sync", group_id)


def is_current(shard: GroupShard, group: ClassicGroup) -> bool:
    return shard.groups.get(group.group_id) is group


# Sessions


def watch_session(
    shard: GroupShard, group: ClassicGroup, member: ClassicMember, at: Moment, timeout_ms: int | None = None
) -> None:
    """The member was heard from, and has its session timeout (or this one) to be heard from again."""
    member.session_end_s = at.now + (member.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000
    if member.session_timer_s > member.session_end_s:
        _set_session_timer(shard, group, member)


def watch_sessions(shard: GroupShard, group: ClassicGroup, at: Moment) -> None:
    """Of a group that was read back, or built: its members have to be heard from, from now on."""
    for member in group.members.values():
        watch_session(shard, group, member, at)


def _set_session_timer(shard: GroupShard, group: ClassicGroup, member: ClassicMember) -> None:
    member.session_timer_s = member.session_end_s
    key = session_key(group.group_id, member.member_id)
    shard.timers.schedule(key, member.session_timer_s, partial(_session_due, shard, group, member))


def _session_due(shard: GroupShard, group: ClassicGroup, member: ClassicMember, at: Moment) -> CoordinatorResult | None:
    if not is_current(shard, group) or group.members.get(member.member_id) is not member:
        return None
    if member.session_end_s <= at.now:
        if member.is_new or not member.has_request:
            drop_member(shard, group, member)
            return after_removal(shard, group, at)
        # It can't send heartbeats while we keep it waiting. A new one can't ever, and may be gone long since.
        member.heard(at)
    _set_session_timer(shard, group, member)
    return None


def drop_member(shard: GroupShard, group: ClassicGroup, member: ClassicMember) -> None:
    """Out of the group; what comes of that is `after_removal`. A client that still waits may begin anew."""
    group.answer_join(member, responses.join_error(ErrorCode.UNKNOWN_MEMBER_ID))
    group.answer_sync(member, responses.sync_error(ErrorCode.UNKNOWN_MEMBER_ID))
    shard.timers.cancel(session_key(group.group_id, member.member_id))
    group.remove(member.member_id)


def after_removal(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    """A member is gone."""
    if group.state in (STABLE, COMPLETING_REBALANCE):
        return prepare_rebalance(shard, group, at)
    return after_pending_removal(shard, group, at)


def after_pending_removal(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    """One that was about to be a member is gone: only a join can have waited for it."""
    if group.state is PREPARING_REBALANCE and group.has_all_members_joined():
        return complete_join(shard, group, at)
    return None


# Preparing


def rebalance_or_complete(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    """A member joined: that begins a rebalance, or is what one waited for."""
    if group.can_rebalance():
        return prepare_rebalance(shard, group, at)
    return maybe_complete_join(shard, group, at)


def prepare_rebalance(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    if group.state is COMPLETING_REBALANCE:
        reset_assignments(shard, group, ErrorCode.REBALANCE_IN_PROGRESS, at)
    group.pending_sync.clear()
    shard.timers.cancel(sync_key(group.group_id))
    is_initial = group.state is EMPTY
    group.transition_to(PREPARING_REBALANCE, at)
    if is_initial:
        group.new_member_added = False
        delay_ms = shard.dependencies.config.group_initial_rebalance_delay_ms
        _delay_first_generation(shard, group, at, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        return None
    if group.has_all_members_joined():
        return complete_join(shard, group, at)
    _wait_for_joins(shard, group, at)
    return None


def _wait_for_joins(shard: GroupShard, group: ClassicGroup, at: Moment, at_least_ms: int = 0) -> None:
    end_s = at.now + max(group.rebalance_timeout_ms, at_least_ms) / 1000
    shard.timers.schedule(join_key(group.group_id), end_s, partial(_joins_due, shard, group))


def _joins_due(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    if not is_current(shard, group):
        return None
    assert group.state is PREPARING_REBALANCE
    return complete_join(shard, group, at)


def _delay_first_generation(
    shard: GroupShard, group: ClassicGroup, at: Moment, delay_ms: int, remaining_ms: int
) -> None:
    callback = partial(_first_generation_due, shard, group, delay_ms, remaining_ms)
    shard.timers.schedule(join_key(group.group_id), at.now + delay_ms / 1000, callback)


def _first_generation_due(
    shard: GroupShard, group: ClassicGroup, delay_ms: int, remaining_ms: int, at: Moment
) -> CoordinatorResult | None:
    if group.new_member_added and remaining_ms > 0 and is_current(shard, group):
        group.new_member_added = False
        next_delay_ms = min(shard.dependencies.config.group_initial_rebalance_delay_ms, remaining_ms)
        _delay_first_generation(shard, group, at, next_delay_ms, max(remaining_ms - delay_ms, 0))
        return None
    return _joins_due(shard, group, at)


# Completing


def maybe_complete_join(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    """The generation begins if all members have joined; the first one of a group begins by its timer alone."""
    if group.state is not PREPARING_REBALANCE or group.previous_state is EMPTY or not group.has_all_members_joined():
        return None
    return complete_join(shard, group, at)


def complete_join(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    """Begin the next generation with those who have joined; a static member has its session timeout to come back."""
    shard.timers.cancel(join_key(group.group_id))
    missing = [member for member in group.members.values() if member.join_answer is None and not member.is_static]
    for member in missing:
        drop_member(shard, group, member)
    if not group.elect_joined_leader() and group.members:
        _wait_for_joins(shard, group, at, ABSENT_WAIT_MIN_MS)  # static members only, until their sessions end
        return None
    group.begin_next_generation(at)
    if group.state is EMPTY:
        # Should this not be written, the generation before it comes back with the next coordinator, and its members
        # time out.
        return CoordinatorResult([group_record(group)], replayed=False)
    group.pending_sync.update(group.members)
    for member in list(group.members.values()):
        is_leader = member.member_id == group.leader_id
        group.answer_join(member, responses.joined(group, member, tells_members=is_leader))
        watch_session(shard, group, member, at)
        member.is_new = False
    end_s = at.now + group.rebalance_timeout_ms / 1000
    shard.timers.schedule(sync_key(group.group_id), end_s, partial(_syncs_due, shard, group))
    return None


def _syncs_due(shard: GroupShard, group: ClassicGroup, at: Moment) -> CoordinatorResult | None:
    if not is_current(shard, group) or not group.pending_sync:
        return None
    for member_id in list(group.pending_sync):
        drop_member(shard, group, group.members[member_id])
    return prepare_rebalance(shard, group, at)


# Assignments


def reset_assignments(shard: GroupShard, group: ClassicGroup, code: ErrorCode, at: Moment) -> None:
    """There will be none in this generation; waiting SyncGroup requests are answered with the reason."""
    assert group.state is COMPLETING_REBALANCE
    for member in group.members.values():
        member.assignment = NO_ASSIGNMENT
        if group.answer_sync(member, responses.sync_error(code)):
            watch_session(shard, group, member, at)


def assign(shard: GroupShard, group: ClassicGroup, assignments: dict[str, bytes], at: Moment) -> None:
    """The leader's assignment is committed."""
    assert group.state is COMPLETING_REBALANCE
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, NO_ASSIGNMENT)
        if group.answer_sync(member, responses.synced(group, member)):
            watch_session(shard, group, member, at)
    group.transition_to(STABLE, at)


# The end


def abandon(shard: GroupShard, group: ClassicGroup, code: ErrorCode) -> None:
    """This coordinator has no such group any more. Waiting requests are answered."""
    group.die()
    for member in group.members.values():
        group.answer_join(member, responses.join_error(code, member.member_id))
        group.answer_sync(member, responses.sync_error(code))
        shard.timers.cancel(session_key(group.group_id, member.member_id))
    for member_id in group.pending_join:
        shard.timers.cancel(session_key(group.group_id, member_id))
    shard.timers.cancel(join_key(group.group_id))
    shard.timers.cancel(sync_key(group.group_id))


# Invariants


def check_timers(shard: GroupShard, group: ClassicGroup) -> None:
    """AssertionError if a member has no session timer, or a rebalance none that ends it."""
    timers, group_id = shard.timers, group.group_id
    for member_id in (*group.members, *group.pending_join):
        assert session_key(group_id, member_id) in timers, f"{group}: {member_id} has no session timer"
    assert group.state is not PREPARING_REBALANCE or join_key(group_id) in timers, f"{group}: no timer ends the joins"
    assert not group.pending_sync or sync_key(group_id) in timers, f"{group}: no timer ends the syncs"
