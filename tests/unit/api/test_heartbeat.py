"""Heartbeat in all its versions."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import heartbeat
from strandline.errors import ErrorCode

from .group_side import OFFSETS, coordinating, joined


@pytest.fixture
def broker(make_broker):
    return make_broker(group_initial_rebalance_delay_ms="0")


@pytest.mark.parametrize("version", heartbeat.VERSIONS)
async def test_every_version(broker, version):
    await coordinating(broker)
    member_id = await joined(broker)

    async def beat(**fields):
        given = {"group_id": "g", "generation_id": 1, "member_id": member_id, **fields}
        return (await broker.call(heartbeat, version, **given)).error_code

    assert await beat() == 0
    assert await beat(generation_id=2) == ErrorCode.ILLEGAL_GENERATION
    assert await beat(member_id="m") == ErrorCode.UNKNOWN_MEMBER_ID
    assert await beat(group_id="no") == ErrorCode.UNKNOWN_MEMBER_ID
    assert await beat(group_id="") == ErrorCode.INVALID_GROUP_ID


async def test_a_coordinator_that_still_reads_takes_everybody_to_be_alive(broker):
    assert (await broker.call(heartbeat, 4, group_id="g")).error_code == ErrorCode.NOT_COORDINATOR
    broker.create(OFFSETS, (1,))
    assert (await broker.call(heartbeat, 4, group_id="g")).error_code == ErrorCode.NONE
