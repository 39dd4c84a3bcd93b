"""DescribeGroups: a classic group and its members.

Of one that does not exist Kafka says that it is dead, and since version 6 why. A group of the consumer protocol is
described by `consumer/classic_description.py`.

Always true: what members support is shown while the group is stable, when it is settled which protocol they use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.caller import Caller
from strandline.groups.classic.group import DEAD, STABLE, ClassicGroup
from strandline.groups.classic.member import ClassicMember
from strandline.groups.classic.responses import DESCRIBE_GROUPS
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard
    from strandline.wire.stubs.describe_groups import DescribeGroupsResponse

NOT_FOUND_SINCE = 6


def describe(shard: GroupShard, group_id: str, caller: Caller) -> DescribeGroupsResponse.DescribedGroup:
    try:
        group = shard.classic_group(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    except KafkaError as error:
        described = messages.response(DESCRIBE_GROUPS).DescribedGroup(group_id=group_id, group_state=DEAD.value)
        if caller.version >= NOT_FOUND_SINCE:
            described.error_code, described.error_message = error.code, error.message
        return described
    return messages.response(DESCRIBE_GROUPS).DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(),
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol_name or "") if group.state is STABLE else "",
        members=[_described(group, member) for member in group.members.values()],
    )


def _described(group: ClassicGroup, member: ClassicMember) -> DescribeGroupsResponse.DescribedGroupMember:
    shows_metadata = group.state is STABLE and group.protocol_name is not None
    return messages.response(DESCRIBE_GROUPS).DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol_name or "") if shows_metadata else b"",
        member_assignment=member.assignment,
    )
