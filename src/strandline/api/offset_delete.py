"""OffsetDelete (47), version 0: remove committed offsets of topics that the group does not consume.

Left out: nothing.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.api.groups.coordination import coordinate
from strandline.errors import ErrorCode
from strandline.groups.shard import Shard
from strandline.wire import messages

KEY, VERSIONS = 47, range(1)


def handle(request: Any, ctx: RequestContext) -> Any:
    if not request.group_id:
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    return coordinate(ctx, request, Shard.delete_offsets, _refusal)


def _refusal(code: ErrorCode, message: str | None = None) -> Any:
    return messages.response(KEY)(error_code=code)
