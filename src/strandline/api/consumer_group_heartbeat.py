"""ConsumerGroupHeartbeat (68), versions 0-1: a member of a KIP-848 group lives, says what it owns, and hears what to own.

With epoch 0 it joins, with -1 it leaves, with -2 it leaves for a while, as a static member may.
v1 takes a subscription by pattern (RE2) and has the member make its own id.
Where `group.coordinator.rebalance.protocols` or the feature `group.version` turn the protocol off, the answer is
UNSUPPORTED_VERSION.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import coordinate, serves_consumer_protocol
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode
from strandline.groups.shard import GroupShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.consumer_group_heartbeat import (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
    )

KEY: Final = 68
VERSIONS = range(2)


def handle(request: ConsumerGroupHeartbeatRequest, ctx: RequestContext) -> MaybePending[ConsumerGroupHeartbeatResponse]:
    if not serves_consumer_protocol(ctx):
        return _refusal(ErrorCode.UNSUPPORTED_VERSION, "The consumer group protocol is not enabled.")
    if not request.group_id:
        return _refusal(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    return coordinate(ctx, request, GroupShard.consumer_group_heartbeat, _refusal)


def _refusal(code: ErrorCode, message: str | None) -> ConsumerGroupHeartbeatResponse:
    return messages.response(KEY)(error_code=code, error_message=message)
