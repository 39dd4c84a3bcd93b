"""Heartbeat (12), versions 0-4: a member of a classic group is alive.

v1 has the throttle time; v3 knows static members; v4 is flexible.
While the coordinator is still reading the group back, any member is taken to be alive.
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
    from strandline.wire.stubs.heartbeat import HeartbeatRequest, HeartbeatResponse

KEY: Final = 12
VERSIONS = range(5)


def handle(request: HeartbeatRequest, ctx: RequestContext) -> MaybePending[HeartbeatResponse]:
    if not request.group_id:
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    return coordinate(ctx, request, GroupShard.heartbeat, _refusal)


def _refusal(code: ErrorCode, message: str | None = None) -> HeartbeatResponse:
    return messages.response(KEY)(error_code=ErrorCode.NONE if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)
