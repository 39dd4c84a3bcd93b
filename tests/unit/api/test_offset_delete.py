"""OffsetDelete."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from strandline.api import offset_delete
from strandline.errors import ErrorCode
from strandline.wire import messages

from .group_side import commit, coordinating

Request = messages.request(47)


async def delete(broker, group_id="g", *indexes):
    partitions = [Request.OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
    topics = [Request.OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    return await broker.call(offset_delete, 0, group_id=group_id, topics=topics)


async def test_offsets_go(broker):
    await coordinating(broker)
    await commit(broker, 7)
    reply = await delete(broker, "g", 0, 1, 9)
    assert reply.error_code == 0
    assert [(p.partition_index, p.error_code) for p in reply.topics[0].partitions] == [
        (0, 0),
        (1, 0),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    [shard] = broker.groups.shards()
    assert shard.offsets.count == 0


async def test_refusals(broker):
    assert (await delete(broker)).error_code == ErrorCode.NOT_COORDINATOR
    await coordinating(broker)
    assert (await delete(broker, "")).error_code == ErrorCode.INVALID_GROUP_ID
    assert (await delete(broker, "no", 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
