"""ListGroups: the groups of a shard, by state and type.

Always true: a filter that names nothing lets everything through; one that names what does not exist, nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.groups.caller import Caller
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.list_groups import ListGroupsResponse

LIST_GROUPS: Final = 16


def list_groups(
    shard: GroupShard, states: frozenset[str], types: frozenset[str], caller: Caller
) -> list[ListGroupsResponse.ListedGroup]:
    ListedGroup = messages.response(LIST_GROUPS).ListedGroup
    states, types = _lowered(states), _lowered(types)
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name(),
            group_type=group.group_type,
        )
        for group in shard.groups.values()
        if (not states or group.state_name().lower() in states) and (not types or group.group_type in types)
    ]


def _lowered(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
