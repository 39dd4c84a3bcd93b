"""DescribeGroups in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import pytest

from strandline.api import describe_groups
from strandline.errors import ErrorCode

from .group_side import coordinating, joined

NOT_ASKED = -(1 << 31)


@pytest.mark.parametrize("version", describe_groups.VERSIONS)
async def test_every_version(make_broker, version):
    broker = await coordinating(make_broker(group_initial_rebalance_delay_ms="0"))
    member_id = await joined(broker)
    fields = {"include_authorized_operations": True} if version >= 3 else {}
    group, absent = (await broker.call(describe_groups, version, groups=["g", "no"], **fields)).groups
    assert (group.error_code, group.group_state, group.protocol_type, group.protocol_data) == (
        0,
        "Stable",
        "consumer",
        "range",
    )
    [member] = group.members
    assert (member.member_id, member.client_id, member.client_host) == (member_id, "test", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"a")
    assert group.authorized_operations == (3400 if version >= 3 else NOT_ASKED)
    assert absent.group_state == "Dead"
    assert absent.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


async def test_elsewhere(broker):
    [group] = (await broker.call(describe_groups, 5, groups=["g"])).groups
    assert (group.group_id, group.error_code) == ("g", ErrorCode.NOT_COORDINATOR)
