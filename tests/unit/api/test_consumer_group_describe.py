"""ConsumerGroupDescribe: what can be seen of a KIP-848 group."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import consumer_group_describe
from strandline.errors import ErrorCode

from .group_side import coordinating
from .test_consumer_group_heartbeat import beat, enabled


@pytest.mark.parametrize("version", consumer_group_describe.VERSIONS)
async def test_groups_that_exist_and_that_do_not(broker, version):
    await coordinating(enabled(broker))
    assert (await beat(broker)).error_code == 0
    fields = {"group_ids": ["g", "no", ""], "include_authorized_operations": True}
    group, absent, nameless = (await broker.call(consumer_group_describe, version, **fields)).groups
    assert (group.error_code, group.group_state, group.authorized_operations) == (0, "Stable", 3400)
    assert [(m.member_id, m.client_host) for m in group.members] == [("m", "/127.0.0.1")]
    assert (absent.group_id, absent.error_code) == ("no", ErrorCode.GROUP_ID_NOT_FOUND)
    assert (nameless.group_id, nameless.error_code) == ("", ErrorCode.INVALID_GROUP_ID)


async def test_elsewhere_and_turned_off(broker):
    for error in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.NOT_COORDINATOR):
        groups = (await broker.call(consumer_group_describe, 1, group_ids=["g", "h"])).groups
        assert [(group.group_id, group.error_code) for group in groups] == [("g", error), ("h", error)]
        enabled(broker)
