"""RenewDelegationToken (39), versions 1-2: have a token expire later.

v2 is flexible.
There are no tokens (see CreateDelegationToken): DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as by Kafka on a connection that is not
authenticated.
Left out: delegation tokens.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

KEY, VERSIONS = 39, range(1, 3)
LISTENERS, FORWARDED = ("broker", "controller"), True


def handle(request: Any, ctx: RequestContext) -> Any:
    return messages.response(KEY)(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=-1)
