"""OffsetForLeaderEpoch: where logs part."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.api import offset_for_leader_epoch
from strandline.errors import ErrorCode
from strandline.wire import messages

from .conftest import registration

Request = messages.request(23)


async def ask(broker, version, leader_epoch, *, topic="t", index=0, current=-1, listener="PLAINTEXT", **fields):
    partition = Request.OffsetForLeaderPartition(
        partition=index, current_leader_epoch=current, leader_epoch=leader_epoch
    )
    reply = await broker.call(
        offset_for_leader_epoch,
        version,
        listener,
        topics=[Request.OffsetForLeaderTopic(topic=topic, partitions=[partition])],
        **fields,
    )
    [answer] = reply.topics[0].partitions
    assert (reply.topics[0].topic, answer.partition) == (topic, index)
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.fixture
def filled(broker):
    """Epoch 1 from offset 0, epoch 4 from offset 2, epoch 5 from offset 3 on."""
    broker.create("t", leader_epoch=1)
    partition = broker.parts.hosted.by_name["t", 0]
    broker.append("t", 1000, 1001)
    for epoch in (4, 5):
        partition.apply(
            replace(partition.state, leader_epoch=epoch, partition_epoch=partition.state.partition_epoch + 1)
        )
        broker.append("t", 1000)
    return broker


@pytest.mark.parametrize("version", offset_for_leader_epoch.VERSIONS)
@pytest.mark.parametrize(
    ("leader_epoch", "end"),
    [(0, (0, 0)), (1, (1, 2)), (2, (1, 2)), (3, (1, 2)), (4, (4, 3)), (5, (5, 4)), (6, (-1, -1)), (-1, (-1, -1))],
)
async def test_the_largest_epoch_at_most_the_asked_one_and_its_end(filled, version, leader_epoch, end):
    assert await ask(filled, version, leader_epoch) == (0, *end)


async def test_the_current_leader_epoch_fences(filled):
    """Rule A6."""
    assert await ask(filled, 2, 5, current=5) == (0, 5, 4)
    assert await ask(filled, 2, 5, current=4) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
    assert await ask(filled, 2, 5, current=6) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


async def test_partitions_that_are_not_here(filled):
    filled.commit([registration(2)])
    filled.create("other", (2,))
    assert (await ask(filled, 4, 1, topic="no"))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await ask(filled, 4, 1, index=7))[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await ask(filled, 4, 1, topic="other"))[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    filled.parts.hosted.by_name["t", 0].fail()
    assert (await ask(filled, 4, 1))[0] == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize(
    ("listener", "replica_id", "error"),
    [
        ("PLAINTEXT", 2, ErrorCode.NONE),
        ("OTHER", 2, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("OTHER", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("OTHER", -1, ErrorCode.NONE),
        ("OTHER", -2, ErrorCode.NONE),
    ],
)
async def test_sec_t6_a_brokers_question_is_answered_to_brokers_only(filled, listener, replica_id, error):
    told = await ask(filled, 4, 1, listener=listener, replica_id=replica_id)
    assert told == ((error, -1, -1) if error else (error, 1, 2))
    assert await ask(filled, 2, 1, listener=listener) == (ErrorCode.NONE, 1, 2), "which names no replica"
