"""ConsumerGroupDescribe (69), versions 0-1: KIP-848 groups, their members, what each owns and is to own.

v1 tells which members still use the classic protocol.
Where the protocol is turned off, every group gets UNSUPPORTED_VERSION.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.cluster.authorized_operations import GROUP_OPERATIONS
from strandline.api.context import RequestContext
from strandline.api.groups.coordination import caller, read_each, serves_consumer_protocol
from strandline.api.requests.pending_reply import MaybePending
from strandline.coordinator.result import Moment, coordinator_error
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.shard import GroupShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )

KEY: Final = 69
VERSIONS = range(2)


def handle(request: ConsumerGroupDescribeRequest, ctx: RequestContext) -> MaybePending[ConsumerGroupDescribeResponse]:
    group_ids, asking = list(dict.fromkeys(request.group_ids)), caller(ctx)
    if not serves_consumer_protocol(ctx):
        return messages.response(KEY)(
            groups=[_refused(group_id, ErrorCode.UNSUPPORTED_VERSION, None) for group_id in group_ids]
        )

    def describe(place: int, shard: GroupShard, at: Moment) -> ConsumerGroupDescribeResponse.DescribedGroup:
        if not group_ids[place]:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        described: ConsumerGroupDescribeResponse.DescribedGroup = shard.describe_consumer_group(
            group_ids[place], asking
        )
        return described

    def refusal(place: int, error: KafkaError) -> ConsumerGroupDescribeResponse.DescribedGroup:
        if not group_ids[place]:
            return _refused("", ErrorCode.INVALID_GROUP_ID, None)
        return _refused(group_ids[place], coordinator_error(error.code), error.message)

    def reply(groups: list[ConsumerGroupDescribeResponse.DescribedGroup]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = GROUP_OPERATIONS
        return messages.response(KEY)(groups=groups)

    return read_each(request, ctx, group_ids, describe, refusal, reply)


def _refused(group_id: str, code: ErrorCode, message: str | None) -> ConsumerGroupDescribeResponse.DescribedGroup:
    return messages.response(KEY).DescribedGroup(group_id=group_id, error_code=code, error_message=message)
