"""DescribeDelegationToken (41), versions 1-3: the tokens of these owners, or all that one may see.

v2 is flexible; v3 tells who asked for each.
There are no tokens (see CreateDelegationToken): DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as by Kafka on a connection that is not
authenticated.
Left out: delegation tokens.
"""

from __future__ import annotations

from typing import Any

from strandline.api.context import RequestContext
from strandline.errors import ErrorCode
from strandline.wire import messages

KEY, VERSIONS = 41, range(1, 4)
LISTENERS = ("broker", "controller")


def handle(request: Any, ctx: RequestContext) -> Any:
    return messages.response(KEY)(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
