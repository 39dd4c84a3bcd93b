"""FindCoordinator (10), versions 0-6: which broker looks after this group or transactional id?

v1 asks for transactional ids too; v3 is flexible; v4 asks for several keys at once; v5 knows TRANSACTION_ABORTABLE; v6 asks for
share coordinators.
Left out: coordinators: until there are some, every key gets COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

KEY, VERSIONS = 10, range(7)

GROUP, TRANSACTION, SHARE = 0, 1, 2
NO_NODE: dict[str, Any] = {"node_id": -1, "host": "", "port": -1}

_SENTENCES = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: "There is no coordinator of this type in this version.",
}


def handle(request: Any, ctx: RequestContext) -> Any:
    response = messages.response(KEY)
    known = request.key_type in (GROUP, TRANSACTION) or (request.key_type == SHARE and ctx.version >= 6)
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST
    if ctx.version < 4:
        return response(error_code=error, error_message=_SENTENCES[error], **NO_NODE)
    return response(
        coordinators=[
            response.Coordinator(key=key, error_code=error, error_message=_SENTENCES[error], **NO_NODE)
            for key in request.coordinator_keys
        ]
    )
