"""How long a member that speaks the classic protocol may take to join again, and to sync after it has joined.

Its session is that of every member of the group; these two stand for the one rebalance timeout of the classic protocol.

Always true: a timer whose member is gone, or speaks the consumer protocol by now, does nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from strandline.coordinator.result import CoordinatorResult, Moment
from strandline.coordinator.timers import TimerKey
from strandline.errors import ErrorCode

if TYPE_CHECKING:
    from strandline.groups.consumer.member import ConsumerGroupMember
    from strandline.groups.shard import GroupShard

RETRY_S = 0.5
"""A member whose removal could not be written is tried again after this time."""


def join_key(group_id: str, member_id: str) -> TimerKey:
    return ("consumer-join", group_id, member_id)


def sync_key(group_id: str, member_id: str) -> TimerKey:
    return ("consumer-sync", group_id, member_id)


def expect_join(shard: GroupShard, group_id: str, member: ConsumerGroupMember, at: Moment) -> None:
    """It has to join again; a second request to do so gives it no more time."""
    key = join_key(group_id, member.member_id)
    if key not in shard.timers:
        _schedule(shard, key, group_id, member, at)


def expect_sync(shard: GroupShard, group_id: str, member: ConsumerGroupMember, at: Moment) -> None:
    """It has joined."""
    shard.timers.cancel(join_key(group_id, member.member_id))
    _schedule(shard, sync_key(group_id, member.member_id), group_id, member, at)


def synced(shard: GroupShard, group_id: str, member_id: str) -> None:
    shard.timers.cancel(sync_key(group_id, member_id))


def cancel(shard: GroupShard, group_id: str, member_id: str) -> None:
    shard.timers.cancel(join_key(group_id, member_id))
    shard.timers.cancel(sync_key(group_id, member_id))


def _schedule(shard: GroupShard, key: TimerKey, group_id: str, member: ConsumerGroupMember, at: Moment) -> None:
    due_s = at.now + member.rebalance_timeout_ms / 1000
    shard.timers.schedule(key, due_s, partial(_due, shard, key, group_id, member.member_id))


def _due(shard: GroupShard, key: TimerKey, group_id: str, member_id: str, at: Moment) -> CoordinatorResult | None:
    from strandline.groups.consumer import member_fencing
    from strandline.groups.consumer.group import ConsumerGroup

    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return None
    member = group.members.get(member_id)
    if member is None or not member.uses_classic_protocol:
        return None
    result = member_fencing.fence(shard, group, [member], at)
    done = result.done

    def retried(code: ErrorCode, at: Moment) -> CoordinatorResult | None:
        if code is ErrorCode.NOT_ENOUGH_REPLICAS and key not in shard.timers:
            shard.timers.schedule(key, at.now + RETRY_S, partial(_due, shard, key, group_id, member_id))
        return done(code, at)

    result.done = retried
    return result
