"""ExpireDelegationToken: there are no tokens."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import expire_delegation_token
from strandline.errors import ErrorCode


@pytest.mark.parametrize("version", expire_delegation_token.VERSIONS)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
async def test_it_is_not_allowed(broker, version, listener):
    reply = await broker.call(expire_delegation_token, version, listener, hmac=b"h")
    assert (reply.error_code, reply.expiry_timestamp_ms) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)
