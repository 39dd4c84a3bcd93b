"""JoinGroup in all its versions. What joining means is told in tests/unit/groups."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import join_group
from strandline.errors import ErrorCode

from .group_side import coordinating, join


@pytest.fixture
def broker(make_broker):
    return make_broker(group_initial_rebalance_delay_ms="0")


@pytest.mark.parametrize("version", join_group.VERSIONS)
async def test_a_member_in_every_version(broker, version):
    await coordinating(broker)
    reply = await join(broker, version)
    if version >= 4:
        assert (reply.error_code, reply.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
        reply = await join(broker, version, member_id=reply.member_id)
    assert (reply.error_code, reply.generation_id, reply.protocol_name) == (0, 1, "range")
    assert reply.leader == reply.member_id
    assert [(member.member_id, member.metadata) for member in reply.members] == [(reply.member_id, b"m")]
    assert reply.member_id.startswith("test-")


@pytest.mark.parametrize("version", join_group.VERSIONS)
async def test_refusals_in_every_version(broker, version):
    reply = await join(broker, version, member_id="m")
    assert (reply.error_code, reply.member_id) == (ErrorCode.NOT_COORDINATOR, "m")
    await coordinating(broker)
    assert (await join(broker, version, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
    assert (await join(broker, version, session_timeout_ms=1)).error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert (await join(broker, version, member_id="m")).error_code == ErrorCode.UNKNOWN_MEMBER_ID
