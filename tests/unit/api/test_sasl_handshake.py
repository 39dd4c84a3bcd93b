"""SaslHandshake: on listeners without SASL."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import api_versions, sasl_handshake
from strandline.errors import ErrorCode


@pytest.mark.parametrize("version", sasl_handshake.VERSIONS)
@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
async def test_there_is_nothing_to_authenticate(broker, version, listener):
    reply = await broker.call(sasl_handshake, version, listener, mechanism="PLAIN")
    assert (reply.error_code, reply.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("listener", ["PLAINTEXT", "CONTROLLER"])
async def test_it_is_advertised_all_the_same(broker, listener):
    reply = await broker.call(api_versions, 4, listener, client_software_name="a", client_software_version="1")
    served = {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys}
    assert (served[17], served[36]) == ((0, 1), (0, 2))
