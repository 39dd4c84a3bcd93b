"""CreateDelegationToken (38), versions 1-3: a token to authenticate with.

v2 is flexible; v3 may name an owner other than the one who asks.
Tokens are for connections that have authenticated; a client of a PLAINTEXT listener, or of an SSL listener without a
certificate, gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as by Kafka. Nobody else can have any here either.
Left out: delegation tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.create_delegation_token import (
        CreateDelegationTokenRequest,
        CreateDelegationTokenResponse,
    )

KEY: Final = 38
VERSIONS = range(1, 4)
LISTENERS, FORWARDED = ("broker", "controller"), True

NEVER = -1


def handle(request: CreateDelegationTokenRequest, ctx: RequestContext) -> CreateDelegationTokenResponse:
    asked_by = owner_type, owner_name = "User", "ANONYMOUS"
    if ctx.version >= 3 and request.owner_principal_name:
        owner_type, owner_name = request.owner_principal_type or "", request.owner_principal_name
    return messages.response(KEY)(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=asked_by[0],
        token_requester_principal_name=asked_by[1],
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
