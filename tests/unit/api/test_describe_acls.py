"""DescribeAcls: there is no authorizer."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_acls
from strandline.errors import ErrorCode


@pytest.mark.parametrize("version", describe_acls.VERSIONS)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
async def test_no_authorizer_is_configured(broker, version, listener):
    reply = await broker.call(describe_acls, version, listener, resource_type_filter=1, operation=1, permission_type=1)
    assert (reply.error_code, reply.error_message, reply.resources) == (
        ErrorCode.SECURITY_DISABLED,
        "No Authorizer is configured on the broker",
        [],
    )
