"""DescribeGroups (15), versions 0-6: groups, their members and what each was assigned.

v1 has the throttle time; v3 says what the client may do with the group; v4 static members; v5 is flexible; v6 has an error for a
group that does not exist (GROUP_ID_NOT_FOUND), which is Dead in the others. A KIP-848 group is described in the words of the
classic
protocol; in Kafka it does not exist for those who ask this way. A group that is named twice is described once.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.cluster.authorized_operations import GROUP_OPERATIONS
from strandline.api.context import RequestContext
from strandline.api.groups.coordination import caller, read_each
from strandline.api.requests.pending_reply import MaybePending
from strandline.coordinator.result import Moment, coordinator_error
from strandline.errors import KafkaError
from strandline.groups.shard import GroupShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

KEY: Final = 15
VERSIONS = range(7)
OPERATIONS_SINCE = 3


def handle(request: DescribeGroupsRequest, ctx: RequestContext) -> MaybePending[DescribeGroupsResponse]:
    group_ids, asking = list(dict.fromkeys(request.groups)), caller(ctx)

    def describe(place: int, shard: GroupShard, at: Moment) -> DescribeGroupsResponse.DescribedGroup:
        described: DescribeGroupsResponse.DescribedGroup = shard.describe_group(group_ids[place], asking)
        return described

    def refusal(place: int, error: KafkaError) -> DescribeGroupsResponse.DescribedGroup:
        return messages.response(KEY).DescribedGroup(
            group_id=group_ids[place], error_code=coordinator_error(error.code)
        )

    def reply(groups: list[DescribeGroupsResponse.DescribedGroup]) -> DescribeGroupsResponse:
        if ctx.version >= OPERATIONS_SINCE and request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return messages.response(KEY)(groups=groups)

    return read_each(request, ctx, group_ids, describe, refusal, reply)
