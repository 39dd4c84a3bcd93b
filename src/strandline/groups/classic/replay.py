"""A classic group's life with its log: read back, watched again, given up.

Always true: what was read back is Stable or Empty; a rebalance that was under way begins again, when its members notice
that they are asked for an assignment of another generation, or are not heard from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode
from strandline.groups.classic import rebalance
from strandline.groups.classic.group import EMPTY, STABLE, ClassicGroup
from strandline.groups.classic.member import ClassicMember
from strandline.groups.records import NO_TIMESTAMP, GroupMetadataKey, GroupMetadataValue, MemberMetadata

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard


def replay(shard: GroupShard, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    """The group is what the record says; without a value it is no more."""
    former = shard.groups.get(key.group)
    if isinstance(former, ClassicGroup):
        # Only an upgrade to the consumer protocol has requests waiting here: their members join again, and are in that
        # group.
        rebalance.abandon(shard, former, ErrorCode.REBALANCE_IN_PROGRESS)
        del shard.groups[key.group]
    if value is not None:
        shard.groups[key.group] = group_of(key.group, value)


def group_of(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    members = [_member_of(value, written) for written in value.members]
    return ClassicGroup(
        group_id,
        None if value.current_state_timestamp == NO_TIMESTAMP else value.current_state_timestamp,
        state=STABLE if members else EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type,
        protocol_name=value.protocol,
        leader_id=value.leader if any(member.member_id == value.leader for member in members) else None,
        members=members,
    )


def _member_of(value: GroupMetadataValue, written: MemberMetadata) -> ClassicMember:
    return ClassicMember(
        member_id=written.member_id,
        group_instance_id=written.group_instance_id,
        client_id=written.client_id,
        client_host=written.client_host,
        rebalance_timeout_ms=written.session_timeout if written.rebalance_timeout < 0 else written.rebalance_timeout,
        session_timeout_ms=written.session_timeout,
        protocol_type=value.protocol_type,
        supported_protocols={value.protocol or "": written.subscription},
        assignment=written.assignment,
    )


def loaded(shard: GroupShard, at: Moment) -> None:
    """Everything was read back: from now on the members have to be heard from."""
    for group in shard.groups.values():
        if isinstance(group, ClassicGroup):
            rebalance.watch_sessions(shard, group, at)
            if len(group.members) > shard.dependencies.config.group_max_size:
                # The limit is lower than it was: members may commit, and join again as long as there is room.
                result = rebalance.prepare_rebalance(shard, group, at)
                assert result is None, "no member has joined yet"


def unload(shard: GroupShard) -> None:
    """These groups are coordinated elsewhere."""
    for group in shard.groups.values():
        if isinstance(group, ClassicGroup):
            rebalance.abandon(shard, group, ErrorCode.NOT_COORDINATOR)
