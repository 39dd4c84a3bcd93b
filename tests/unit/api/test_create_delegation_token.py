"""CreateDelegationToken: nobody has authenticated."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import create_delegation_token
from strandline.errors import ErrorCode


@pytest.mark.parametrize("version", create_delegation_token.VERSIONS)
async def test_it_is_not_allowed(broker, version):
    reply = await broker.call(create_delegation_token, version, max_lifetime_ms=1000)
    assert reply.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (reply.principal_type, reply.principal_name) == ("User", "ANONYMOUS")
    assert (reply.issue_timestamp_ms, reply.expiry_timestamp_ms, reply.max_timestamp_ms) == (-1, -1, -1)
    assert (reply.token_id, reply.hmac) == ("", b"")


async def test_the_owner_is_named_as_it_was(broker):
    reply = await broker.call(
        create_delegation_token, 3, owner_principal_type="User", owner_principal_name="o", max_lifetime_ms=1
    )
    assert (reply.principal_type, reply.principal_name) == ("User", "o")
    assert (reply.token_requester_principal_type, reply.token_requester_principal_name) == ("User", "ANONYMOUS")
