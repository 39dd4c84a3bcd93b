"""DescribeDelegationToken (41), versions 1-3: the tokens of these owners, or all that one may see.

v2 is flexible; v3 tells who asked for each.
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
    from strandline.wire.stubs.describe_delegation_token import (
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
    )

KEY: Final = 41
VERSIONS = range(1, 4)
LISTENERS = ("broker", "controller")


def handle(request: DescribeDelegationTokenRequest, ctx: RequestContext) -> DescribeDelegationTokenResponse:
    return messages.response(KEY)(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
