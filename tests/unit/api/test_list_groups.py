"""ListGroups in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import list_groups
from strandline.errors import ErrorCode

from .group_side import OFFSETS, commit, coordinating, joined


@pytest.mark.parametrize("version", list_groups.VERSIONS)
async def test_every_version(make_broker, version):
    broker = await coordinating(make_broker(group_initial_rebalance_delay_ms="0"))
    await joined(broker)
    await commit(broker, 1, "h")
    groups = (await broker.call(list_groups, version)).groups
    assert {(group.group_id, group.protocol_type) for group in groups} == {("g", "consumer"), ("h", "")}
    if version >= 4:
        assert {(group.group_id, group.group_state) for group in groups} == {("g", "Stable"), ("h", "Empty")}
        [only] = (await broker.call(list_groups, version, states_filter=["EMPTY"])).groups
        assert only.group_id == "h"
    if version >= 5:
        assert {group.group_type for group in groups} == {"classic"}
        assert not (await broker.call(list_groups, version, types_filter=["consumer"])).groups


async def test_a_broker_without_groups_and_one_that_still_reads_them(broker):
    reply = await broker.call(list_groups, 4)
    assert (reply.error_code, reply.groups) == (0, [])
    broker.create(OFFSETS, (1,))
    assert (await broker.call(list_groups, 4)).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
