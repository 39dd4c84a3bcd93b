"""ConsumerGroupHeartbeat: the way to a KIP-848 group, and where it is turned off."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from typing import Any

import pytest

from strandline.api import consumer_group_heartbeat
from strandline.errors import ErrorCode
from strandline.metadata import records as r

from .group_side import coordinating


def enabled(broker: Any) -> Any:
    broker.commit([r.FeatureLevelRecord(name="group.version", feature_level=1)])
    return broker


async def beat(broker: Any, version: int = 1, **fields: Any) -> Any:
    given = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 1000, "topic_partitions": [], **fields}
    return await broker.call(consumer_group_heartbeat, version, **{"subscribed_topic_names": ["t"], **given})


@pytest.mark.parametrize("version", consumer_group_heartbeat.VERSIONS)
async def test_a_member_joins_and_gets_everything(broker, version):
    await coordinating(enabled(broker))
    reply = await beat(broker, version)
    assert (reply.error_code, reply.error_message, reply.member_id, reply.member_epoch) == (0, None, "m", 2)
    assert [sorted(topic.partitions) for topic in reply.assignment.topic_partitions] == [[0, 1]]


@pytest.mark.parametrize("version", consumer_group_heartbeat.VERSIONS)
async def test_refusals(broker, version):
    enabled(broker)
    assert (await beat(broker, version)).error_code == ErrorCode.NOT_COORDINATOR
    assert (await beat(broker, version, group_id="")).error_code == ErrorCode.INVALID_REQUEST
    await coordinating(broker)
    refused = await beat(broker, version, member_epoch=7)
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message


@pytest.mark.parametrize("by", ["feature", "config"])
async def test_where_the_protocol_is_turned_off(make_broker, by):
    settings = {"group_coordinator_rebalance_protocols": "classic"} if by == "config" else {}
    broker = make_broker(**settings)
    if by == "config":
        enabled(broker)
    await coordinating(broker)
    assert (await beat(broker)).error_code == ErrorCode.UNSUPPORTED_VERSION
