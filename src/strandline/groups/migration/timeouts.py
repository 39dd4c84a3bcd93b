"""How long a member that speaks the classic protocol may take to join again, and to sync after it has joined.

Its session is that of every member of the group; these two stand for the one rebalance timeout of the classic protocol.

Always true: a timer whose member is gone, or speaks the consumer protocol by now, does nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from strandline.errors import ErrorCode
from strandline.groups.outcome import Moment, Outcome
from strandline.groups.timers import Key

if TYPE_CHECKING:
    from strandline.groups.consumer.member import Member
    from strandline.groups.shard import Shard

RETRY_S = 0.5
"""A member whose removal could not be written is tried again after this time."""


def join_key(group_id: str, member_id: str) -> Key:
    return ("consumer-join", group_id, member_id)


def sync_key(group_id: str, member_id: str) -> Key:
    return ("consumer-sync", group_id, member_id)


def expect_join(shard: Shard, group_id: str, member: Member, at: Moment) -> None:
    """It was told to join again; being told twice gives it no more time."""
    key = join_key(group_id, member.member_id)
    if key not in shard.timers:
        _schedule(shard, key, group_id, member, at)


def expect_sync(shard: Shard, group_id: str, member: Member, at: Moment) -> None:
    """It has joined."""
    shard.timers.cancel(join_key(group_id, member.member_id))
    _schedule(shard, sync_key(group_id, member.member_id), group_id, member, at)


def synced(shard: Shard, group_id: str, member_id: str) -> None:
    shard.timers.cancel(sync_key(group_id, member_id))


def cancel(shard: Shard, group_id: str, member_id: str) -> None:
    shard.timers.cancel(join_key(group_id, member_id))
    shard.timers.cancel(sync_key(group_id, member_id))


def _schedule(shard: Shard, key: Key, group_id: str, member: Member, at: Moment) -> None:
    due_s = at.now + member.rebalance_timeout_ms / 1000
    shard.timers.schedule(key, due_s, partial(_due, shard, key, group_id, member.member_id))


def _due(shard: Shard, key: Key, group_id: str, member_id: str, at: Moment) -> Outcome | None:
    from strandline.groups.consumer import fencing
    from strandline.groups.consumer.group import ConsumerGroup

    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return None
    member = group.members.get(member_id)
    if member is None or not member.uses_classic_protocol:
        return None
    outcome = fencing.fence(shard, group, [member], at)
    done = outcome.done

    def retried(code: ErrorCode, at: Moment) -> Outcome | None:
        if code is ErrorCode.NOT_ENOUGH_REPLICAS and key not in shard.timers:
            shard.timers.schedule(key, at.now + RETRY_S, partial(_due, shard, key, group_id, member_id))
        return done(code, at)

    outcome.done = retried
    return outcome
