"""DeleteGroups in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import delete_groups
from strandline.errors import ErrorCode

from .group_side import commit, coordinating, joined


@pytest.mark.parametrize("version", delete_groups.VERSIONS)
async def test_each_group_for_itself_and_once(make_broker, version):
    broker = await coordinating(make_broker(group_initial_rebalance_delay_ms="0"))
    await joined(broker)
    for group_id in ("h", "i"):
        await commit(broker, 1, group_id)
    reply = await broker.call(delete_groups, version, groups_names=["i", "g", "no", "h", "i"])
    assert [(result.group_id, result.error_code) for result in reply.results] == [
        ("i", 0),
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("no", ErrorCode.GROUP_ID_NOT_FOUND),
        ("h", 0),
    ]
    [shard] = broker.groups.shards()
    assert set(shard.groups) == {"g"}
    assert shard.offsets.count == 0


async def test_elsewhere(broker):
    reply = await broker.call(delete_groups, 2, groups_names=["g"])
    assert reply.results[0].error_code == ErrorCode.NOT_COORDINATOR
    assert (await broker.call(delete_groups, 2, groups_names=[])).results == []
