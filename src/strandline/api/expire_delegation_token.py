"""ExpireDelegationToken (40), versions 1-2: have a token expire, now or at a time.

v2 is flexible.
There are no tokens (see CreateDelegationToken): DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as by Kafka on a connection that is not
authenticated.
Left out: delegation tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

if TYPE_CHECKING:
    from strandline.wire.stubs.expire_delegation_token import (
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
    )

KEY: Final = 40
VERSIONS = range(1, 3)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: ExpireDelegationTokenRequest, ctx: RequestContext) -> ExpireDelegationTokenResponse:
    return messages.response(KEY)(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
