"""OffsetDelete (47), version 0: remove committed offsets of topics that the group does not consume.

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
    from strandline.wire.stubs.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

KEY: Final = 47
VERSIONS = range(1)


def handle(request: OffsetDeleteRequest, ctx: RequestContext) -> MaybePending[OffsetDeleteResponse]:
    if not request.group_id:
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    return coordinate(ctx, request, GroupShard.delete_offsets, _refusal)


def _refusal(code: ErrorCode, message: str | None = None) -> OffsetDeleteResponse:
    return messages.response(KEY)(error_code=code)
