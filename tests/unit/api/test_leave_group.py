"""LeaveGroup in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import leave_group
from strandline.errors import ErrorCode
from strandline.wire import messages

from .group_side import coordinating, joined

Identity = messages.request(13).MemberIdentity


@pytest.fixture
def broker(make_broker):
    return make_broker(group_initial_rebalance_delay_ms="0")


@pytest.mark.parametrize("version", leave_group.VERSIONS)
async def test_every_version(broker, version):
    await coordinating(broker)
    member_id = await joined(broker)
    if version < 3:
        replies = [await broker.call(leave_group, version, group_id="g", member_id=m) for m in ("no", member_id)]
        assert [reply.error_code for reply in replies] == [ErrorCode.UNKNOWN_MEMBER_ID, 0]
    else:
        members = [Identity(member_id="no"), Identity(member_id=member_id)]
        reply = await broker.call(leave_group, version, group_id="g", members=members)
        assert reply.error_code == 0
        assert [(m.member_id, m.error_code) for m in reply.members] == [
            ("no", ErrorCode.UNKNOWN_MEMBER_ID),
            (member_id, 0),
        ]
    [shard] = broker.groups.shards()
    assert shard.groups["g"].is_empty()


@pytest.mark.parametrize("version", leave_group.VERSIONS)
async def test_refusals(broker, version):
    assert (await broker.call(leave_group, version, group_id="g")).error_code == ErrorCode.NOT_COORDINATOR
    assert (await broker.call(leave_group, version, group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
