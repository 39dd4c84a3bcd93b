"""RenewDelegationToken (39), versions 1-2: have a token expire later.

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
    from strandline.wire.stubs.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

KEY: Final = 39
VERSIONS = range(1, 3)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: RenewDelegationTokenRequest, ctx: RequestContext) -> RenewDelegationTokenResponse:
    return messages.response(KEY)(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
