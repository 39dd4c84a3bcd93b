"""SyncGroup in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import sync_group
from strandline.errors import ErrorCode

from .group_side import coordinating, joined


@pytest.fixture
def broker(make_broker):
    return make_broker(group_initial_rebalance_delay_ms="0")


@pytest.mark.parametrize("version", sync_group.VERSIONS)
async def test_every_version(broker, version):
    await coordinating(broker)
    member_id = await joined(broker)
    names = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    reply = await broker.call(sync_group, version, group_id="g", generation_id=1, member_id=member_id, **names)
    assert (reply.error_code, reply.assignment) == (0, b"a")
    if version >= 5:
        assert (reply.protocol_type, reply.protocol_name) == ("consumer", "range")
        nameless = await broker.call(sync_group, version, group_id="g", generation_id=1, member_id=member_id)
        assert nameless.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    stale = await broker.call(sync_group, version, group_id="g", generation_id=0, member_id=member_id, **names)
    assert stale.error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", sync_group.VERSIONS)
async def test_refusals(broker, version):
    names = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    elsewhere = await broker.call(sync_group, version, group_id="g", member_id="m", **names)
    assert elsewhere.error_code == ErrorCode.NOT_COORDINATOR
    empty = await broker.call(sync_group, version, group_id="", member_id="m", **names)
    assert empty.error_code == ErrorCode.INVALID_GROUP_ID
