"""SyncGroup (14), versions 0-5: the leader of a classic group says who gets what, the others ask.

v1 has the throttle time; v3 knows static members; v4 is flexible; v5 names the protocol, so that one who missed a change gets an
error (INCONSISTENT_GROUP_PROTOCOL).
The answer comes once the leader's word is committed.
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
    from strandline.wire.stubs.sync_group import SyncGroupRequest, SyncGroupResponse

KEY: Final = 14
VERSIONS = range(6)
PROTOCOL_REQUIRED_SINCE = 5


def handle(request: SyncGroupRequest, ctx: RequestContext) -> MaybePending[SyncGroupResponse]:
    if ctx.version >= PROTOCOL_REQUIRED_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return _refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.group_id:
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    config = ctx.node.config
    if len(request.assignments) > max(config.group_max_size, config.group_consumer_max_size):
        return _refusal(ErrorCode.INVALID_REQUEST)
    return coordinate(ctx, request, GroupShard.sync_group, _refusal)


def _refusal(code: ErrorCode, message: str | None = None) -> SyncGroupResponse:
    return messages.response(KEY)(error_code=code)
