"""JoinGroup (11), versions 0-9: become a member of a classic group, or say that something has changed.

v1 has the rebalance timeout; v2 the throttle time; v4 gives a member its id before it may join (MEMBER_ID_REQUIRED); v5 knows
static members; v6 is flexible; v7 tells the protocol type; v8 takes the reason; v9 lets a leader skip the assignment.
The answer comes when the others have joined too, or had their time. Members of this protocol may be in a group of the consumer
protocol, too, while it moves from one to the other.
Left out: nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import coordinate
from strandline.api.requests.pending_reply import MaybePending
from strandline.errors import ErrorCode
from strandline.groups.shard import GroupShard
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.join_group import JoinGroupRequest, JoinGroupResponse

KEY: Final = 11
VERSIONS = range(10)
NULL_PROTOCOL_SINCE = 7


def handle(request: JoinGroupRequest, ctx: RequestContext) -> MaybePending[JoinGroupResponse]:
    def refusal(code: ErrorCode, message: str | None = None) -> JoinGroupResponse:
        name = None if ctx.version >= NULL_PROTOCOL_SINCE else ""
        return messages.response(KEY)(error_code=code, member_id=request.member_id, protocol_name=name)

    if not request.group_id:
        return refusal(ErrorCode.INVALID_GROUP_ID)
    return coordinate(ctx, request, GroupShard.join_group, refusal)
