"""DescribeDelegationToken: there are no tokens."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_delegation_token
from strandline.errors import ErrorCode


@pytest.mark.parametrize("version", describe_delegation_token.VERSIONS)
@pytest.mark.parametrize("owners", [None, []])
async def test_it_is_not_allowed(broker, version, owners):
    reply = await broker.call(describe_delegation_token, version, owners=owners)
    assert (reply.error_code, reply.tokens) == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, [])
