"""DescribeProducers: who writes here."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.api import describe_producers
from strandline.errors import ErrorCode
from strandline.wire import messages

from .conftest import registration

Topic = messages.request(61).TopicRequest


async def test_active_producers(broker):
    broker.create("t")
    broker.append("t", 1000)
    broker.append("t", 1001, 1002, producer_id=5, producer_epoch=2, base_sequence=0)
    broker.append("t", 2000, producer_id=6, producer_epoch=0, base_sequence=4, transactional=True)
    reply = await broker.call(describe_producers, 0, topics=[Topic(name="t", partition_indexes=[0])])
    [answer] = reply.topics[0].partitions
    assert (answer.partition_index, answer.error_code, answer.error_message) == (0, 0, None)
    assert [
        (
            p.producer_id,
            p.producer_epoch,
            p.last_sequence,
            p.last_timestamp,
            p.coordinator_epoch,
            p.current_txn_start_offset,
        )
        for p in answer.active_producers
    ] == [(5, 2, 1, 1002, -1, -1), (6, 0, 4, 2000, -1, 3)]


async def test_partitions_that_are_not_here(broker):
    broker.commit([registration(2)])
    broker.create("other", (2,))
    broker.create("t")
    broker.create("offline")
    broker.parts.hosted.by_name["offline", 0].fail()
    topics = [Topic(name=name, partition_indexes=[0, 1]) for name in ("t", "other", "no", "bad name", "offline")]
    reply = await broker.call(describe_producers, 0, topics=topics)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert {topic.name: [p.error_code for p in topic.partitions] for topic in reply.topics} == {
        "t": [0, unknown],
        "other": [ErrorCode.NOT_LEADER_OR_FOLLOWER, unknown],
        "no": [unknown, unknown],
        "bad name": [ErrorCode.INVALID_TOPIC_EXCEPTION] * 2,
        "offline": [ErrorCode.KAFKA_STORAGE_ERROR, unknown],
    }


async def test_a_follower_describes_what_it_has(broker):
    broker.create("t", (2, 1), leader=2)
    topics = [messages.request(describe_producers.KEY).TopicRequest(name="t", partition_indexes=[0])]
    reply = await broker.call(describe_producers, 0, topics=topics)
    assert reply.topics[0].partitions[0].error_code == 0
