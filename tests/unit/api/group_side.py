"""A broker that coordinates all groups, and a member of them."""

from __future__ import annotations

import asyncio
from typing import Any

from strandline.api import join_group, offset_commit, sync_group
from strandline.wire import messages

from .conftest import TestBroker

OFFSETS = "__consumer_offsets"


async def coordinating(broker: TestBroker, topic: str = "t") -> TestBroker:
    broker.create(topic, (1,), (1,))
    broker.create(OFFSETS, (1,))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not broker.groups.loading
    return broker


async def commit(broker: TestBroker, offset: int, group_id: str = "g", version: int = 8, **fields: Any) -> Any:
    """The answer for the only partition."""
    Request = messages.request(offset_commit.KEY)
    partition = Request.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    named = {"topic_id": broker.image.topics["t"].topic_id} if version >= 10 else {"name": "t"}
    topic = Request.OffsetCommitRequestTopic(partitions=[partition], **named)
    reply = await broker.call(offset_commit, version, group_id=group_id, topics=[topic], **fields)
    return reply.topics[0].partitions[0]


async def join(broker: TestBroker, version: int = 3, group_id: str = "g", **fields: Any) -> Any:
    Request = messages.request(join_group.KEY)
    protocols = [Request.JoinGroupRequestProtocol(name="range", metadata=b"m")]
    given = {"session_timeout_ms": 10_000, "protocol_type": "consumer", "protocols": protocols, **fields}
    if version:
        given.setdefault("rebalance_timeout_ms", 10_000)
    return await broker.call(join_group, version, group_id=group_id, **given)


async def joined(broker: TestBroker, version: int = 3) -> str:
    """The only member of a stable group `g` in its first generation."""
    reply = await join(broker, version)
    assert reply.error_code == 0
    Request = messages.request(sync_group.KEY)
    given = [Request.SyncGroupRequestAssignment(member_id=reply.member_id, assignment=b"a")]
    synced = await broker.call(
        sync_group, 3, group_id="g", generation_id=1, member_id=reply.member_id, assignments=given
    )
    assert (synced.error_code, synced.assignment) == (0, b"a")
    return str(reply.member_id)
