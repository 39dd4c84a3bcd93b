"""Members that go: they left, were silent for a session, or did not let go of partitions within their rebalance
timeout.

A keep-alive only notes until when the member's session lasts; the timer looks there when it is due, and sleeps on.

Always true: a fenced member is responsible for no partition any more, and the group has a new epoch; a timer whose
member is gone, or is in another epoch by now, does nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import Callback, CoordinatorResult, Moment
from strandline.coordinator.timers import TimerKey
from strandline.errors import ErrorCode
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_draft import GroupDraft
from strandline.groups.consumer.group_records import member_tombstones, regex_tombstone, target_metadata_record
from strandline.groups.consumer.member import ConsumerGroupMember, ConsumerGroupMemberState
from strandline.groups.consumer.metadata_hash import metadata_hash
from strandline.groups.migration import downgrade

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

RETRY_S = 0.5
"""A fencing that could not be written is tried again after this time."""


def fence(
    shard: GroupShard, group: ConsumerGroup, members: Collection[ConsumerGroupMember], at: Moment
) -> CoordinatorResult:
    """Remove these members; the group becomes a classic one if only members of that protocol are left, and it may.

    Their timers are kept: they find no member. Should nothing be written, they are still needed.
    """
    if downgrade.is_due(shard, group, members):
        return downgrade.downgrade(shard, group, members, at)
    draft = GroupDraft(group)
    for member in members:
        draft.add(*member_tombstones(group.group_id, member.member_id))
    for regex in group.resolved_regular_expressions:
        if regex not in draft.group.subscribed_regular_expressions:
            draft.add(regex_tombstone(group.group_id, regex))
    draft.bump(metadata_hash(draft.group.subscribed_topic_names, shard.dependencies.image))
    if not draft.group.members:
        # No member is left to assign to. Without a timestamp the next member need not wait for the assignment interval.
        draft.add(target_metadata_record(group.group_id, draft.group.group_epoch, 0))
    return CoordinatorResult(draft.records)


# Sessions


def session_key(group_id: str, member_id: str) -> TimerKey:
    return ("consumer-session", group_id, member_id)


def begin_session(shard: GroupShard, group_id: str, member: ConsumerGroupMember, at: Moment) -> None:
    """The member joined, changed, or was loaded: it is fenced unless it is heard from again in time."""
    due = partial(_session_due, shard, group_id, member.member_id)
    shard.timers.schedule(session_key(group_id, member.member_id), _session_end_s(shard, group_id, member, at), due)


def begin_sessions(shard: GroupShard, at: Moment) -> None:
    """All records were read back: every member has its session timeout, or its rebalance timeout, from now on."""
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup):
            for member in group.members.values():
                begin_session(shard, group.group_id, member, at)
                watch_revocation(shard, group.group_id, member, at)


def extend_session(shard: GroupShard, group: ConsumerGroup, member: ConsumerGroupMember, at: Moment) -> None:
    """The member was heard from again."""
    group.session_deadlines[member.member_id] = _session_end_s(shard, group.group_id, member, at)


def _session_end_s(shard: GroupShard, group_id: str, member: ConsumerGroupMember, at: Moment) -> float:
    classic = member.classic_member_metadata
    if classic is not None:
        return at.now + classic.session_timeout_ms / 1000
    return at.now + shard.dependencies.group_config(group_id).session_timeout_ms / 1000


def _session_due(shard: GroupShard, group_id: str, member_id: str, at: Moment) -> CoordinatorResult | None:
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup) or member_id not in group.members:
        return None
    key, again = session_key(group_id, member_id), partial(_session_due, shard, group_id, member_id)
    deadline_s = group.session_deadlines.get(member_id, at.now)
    if deadline_s > at.now:
        shard.timers.schedule(key, deadline_s, again)
        return None
    return _fenced(shard, group, member_id, key, again, at)


# Revocations


def rebalance_key(group_id: str, member_id: str) -> TimerKey:
    return ("consumer-rebalance", group_id, member_id)


def watch_revocation(shard: GroupShard, group_id: str, member: ConsumerGroupMember, at: Moment) -> None:
    """A member that has to let go of partitions has its rebalance timeout for that;
    those of the classic protocol have others.
    """
    if member.uses_classic_protocol:
        return
    key = rebalance_key(group_id, member.member_id)
    if member.state is ConsumerGroupMemberState.UNREVOKED_PARTITIONS:
        due = partial(_revocation_due, shard, group_id, member.member_id, member.member_epoch)
        shard.timers.schedule(key, at.now + member.rebalance_timeout_ms / 1000, due)
    else:
        shard.timers.cancel(key)


def _revocation_due(
    shard: GroupShard, group_id: str, member_id: str, member_epoch: int, at: Moment
) -> CoordinatorResult | None:
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup) or member_id not in group.members:
        return None
    member = group.members[member_id]
    if member.member_epoch != member_epoch or member.state is not ConsumerGroupMemberState.UNREVOKED_PARTITIONS:
        return None
    again = partial(_revocation_due, shard, group_id, member_id, member_epoch)
    return _fenced(shard, group, member_id, rebalance_key(group_id, member_id), again, at)


def _fenced(
    shard: GroupShard, group: ConsumerGroup, member_id: str, key: TimerKey, again: Callback, at: Moment
) -> CoordinatorResult:
    result = fence(shard, group, [group.members[member_id]], at)
    before = result.done

    def done(code: ErrorCode, at: Moment) -> CoordinatorResult | None:
        if code and code is not ErrorCode.NOT_COORDINATOR and key not in shard.timers:
            shard.timers.schedule(key, at.now + RETRY_S, again)
        return before(code, at)

    result.done = done
    return result
