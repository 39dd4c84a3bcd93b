"""FindCoordinator, before there are coordinators."""

from __future__ import annotations

import pytest

from strandline.api import find_coordinator
from strandline.errors import ErrorCode

GROUP, TRANSACTION, SHARE = range(3)


@pytest.mark.parametrize("version", range(4))
async def test_one_key(broker, version):
    fields = {"key_type": TRANSACTION} if version else {}
    reply = await broker.call(find_coordinator, version, key="k", **fields)
    assert (reply.error_code, reply.node_id, reply.host, reply.port) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        -1,
        "",
        -1,
    )


@pytest.mark.parametrize("version", range(4, 7))
async def test_several_keys(broker, version):
    reply = await broker.call(find_coordinator, version, key_type=GROUP, coordinator_keys=["a", "b", ""])
    assert [(c.key, c.error_code, c.node_id, c.port) for c in reply.coordinators] == [
        (key, ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1) for key in ("a", "b", "")
    ]
    assert (await broker.call(find_coordinator, version, key_type=GROUP, coordinator_keys=[])).coordinators == []


@pytest.mark.parametrize(("version", "key_type"), [(1, 2), (3, 9), (4, -1), (5, SHARE), (6, 3)])
async def test_types_that_do_not_exist_in_a_version(broker, version, key_type):
    fields = {"coordinator_keys": ["k"]} if version >= 4 else {"key": "k"}
    reply = await broker.call(find_coordinator, version, key_type=key_type, **fields)
    error = reply.coordinators[0].error_code if version >= 4 else reply.error_code
    assert error == ErrorCode.INVALID_REQUEST


async def test_share_coordinators_since_v6(broker):
    reply = await broker.call(find_coordinator, 6, key_type=SHARE, coordinator_keys=["k"])
    assert reply.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
