"""SaslAuthenticate: on listeners without SASL."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import sasl_authenticate
from strandline.errors import ErrorCode


@pytest.mark.parametrize("version", sasl_authenticate.VERSIONS)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
async def test_it_comes_too_late(broker, version, listener):
    reply = await broker.call(sasl_authenticate, version, listener, auth_bytes=b"\0user\0password")
    assert (reply.error_code, reply.auth_bytes) == (ErrorCode.ILLEGAL_SASL_STATE, b"")
    assert reply.error_message == "SaslAuthenticate request received after successful authentication"
