"""LeaveGroup (13), versions 0-5: members leave a classic group, or are removed from it.

v1 has the throttle time; v3 takes several members, and static ones by their group instance id, with an answer for each; v4 is
flexible; v5 takes the reason.
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
    from strandline.wire.stubs.leave_group import LeaveGroupRequest, LeaveGroupResponse

KEY: Final = 13
VERSIONS = range(6)


def handle(request: LeaveGroupRequest, ctx: RequestContext) -> MaybePending[LeaveGroupResponse]:
    if not request.group_id:
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    config = ctx.node.config
    if len(request.members) > max(config.group_max_size, config.group_consumer_max_size):
        return _refusal(ErrorCode.INVALID_REQUEST)
    return coordinate(ctx, request, GroupShard.leave_group, _refusal)


def _refusal(code: ErrorCode, message: str | None = None) -> LeaveGroupResponse:
    return messages.response(KEY)(error_code=code)
