"""CreateDelegationToken (38), versions 1-3: a token to authenticate with.

v2 is flexible; v3 may name an owner other than the one who asks.
Tokens are for connections that have authenticated; a client of a PLAINTEXT listener, or of an SSL listener without a
certificate, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as by Kafka. Nobody else can have any here either.
Left out: delegation tokens.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

KEY, VERSIONS = 38, range(1, 4)
LISTENERS, FORWARDED = ("broker", "controller"), True

NEVER = -1


def handle(request: Any, ctx: RequestContext) -> Any:
    asked_by = {"type": "User", "name": "ANONYMOUS"}
    owner = {"type": request.owner_principal_type, "name": request.owner_principal_name}
    owner = owner if ctx.version >= 3 and owner["name"] else asked_by
    return messages.response(KEY)(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=owner["type"] or "",
        principal_name=owner["name"],
        token_requester_principal_type=asked_by["type"],
        token_requester_principal_name=asked_by["name"],
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
