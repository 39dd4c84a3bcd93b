"""DescribeTopicPartitions: page by page."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_topic_partitions
from strandline.api.cluster.authorized_operations import TOPIC_OPERATIONS
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.wire import messages

from .conftest import registration

Request = messages.request(75)


async def ask(broker, *names, limit=2000, cursor=None):
    return await broker.call(
        describe_topic_partitions,
        0,
        topics=[Request.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def pages_of(reply):
    return [(topic.name, [p.partition_index for p in topic.partitions]) for topic in reply.topics]


def cursor_of(reply):
    return None if reply.next_cursor is None else (reply.next_cursor.topic_name, reply.next_cursor.partition_index)


async def test_one_topic(broker):
    broker.commit([registration(2), registration(3, fenced=True)])
    topic_id = broker.create("t", (1, 2, 3))
    broker.commit(
        [
            r.PartitionChangeRecord(
                partition_id=0, topic_id=topic_id, isr=(1,), eligible_leader_replicas=(2,), last_known_elr=(3,)
            )
        ]
    )
    [topic] = (await ask(broker, "t")).topics
    assert (topic.error_code, topic.name, topic.topic_id, topic.is_internal) == (0, "t", topic_id, False)
    assert topic.topic_authorized_operations == TOPIC_OPERATIONS
    [p] = topic.partitions
    assert (p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes) == (1, 0, [1, 2, 3], [1])
    assert (p.eligible_leader_replicas, p.last_known_elr, p.offline_replicas) == ([2], [3], [3])


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7, 100])
@pytest.mark.parametrize("named", [False, True])
async def test_pages_of_any_size_add_up_to_the_whole(broker, limit, named):
    for name, count in (("b", 3), ("a", 1), ("c", 2)):
        broker.create(name, *[(1,)] * count)
    names = ("c", "a", "b") if named else ()
    seen, cursor = [], None
    for _ in range(10):
        reply = await ask(broker, *names, limit=limit, cursor=cursor)
        page = [(name, index) for name, indexes in pages_of(reply) for index in indexes]
        assert 0 < len(page) <= limit
        seen += page
        cursor = cursor_of(reply)
        if cursor is None:
            break
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2), ("c", 0), ("c", 1)]


async def test_the_brokers_own_limit_and_nonsense_limits(make_broker):
    broker = make_broker(max_request_partition_size_limit="2")
    broker.create("t", (1,), (1,), (1,))
    assert cursor_of(await ask(broker, "t")) == ("t", 2)
    for limit in (0, -5, -(2**31)):
        assert cursor_of(await ask(broker, "t", limit=limit)) == ("t", 1)


async def test_unknown_topics_are_told_only_if_they_were_asked_for(broker):
    broker.create("t")
    reply = await ask(broker, "no", "bad name", "t")
    assert [(topic.name, topic.error_code) for topic in reply.topics] == [
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("no", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0),
    ]
    assert pages_of(await ask(broker)) == [("t", [0])]


async def test_cursors_that_point_nowhere(broker):
    broker.create("a")
    broker.create("c")
    assert pages_of(await ask(broker, cursor=("b", 0))) == [("c", [0])], "its topic was deleted meanwhile"
    assert pages_of(await ask(broker, cursor=("c", 7))) == [("c", [])]
    assert pages_of(await ask(broker, cursor=("d", 0))) == []
    for names, cursor in ((("a",), ("b", 0)), (("a",), ("a", -1))):
        reply = await ask(broker, *names, cursor=cursor)
        assert [(topic.name, topic.error_code) for topic in reply.topics] == [("a", ErrorCode.INVALID_REQUEST)]
    assert pages_of(await ask(broker, cursor=("a", -1))) == []
