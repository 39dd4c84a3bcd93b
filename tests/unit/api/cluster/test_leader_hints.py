"""Who leads, told to a client that asked the wrong broker (KIP-951)."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import fetch, produce
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.wire import messages

from .. import test_fetch as fetching
from .. import test_produce as producing
from ..conftest import registration


@pytest.fixture
def deposed(broker):
    """Node 1 has the partition, and node 2 leads it in epoch 1."""
    broker.commit([registration(2, rack="r2"), registration(3)])
    broker.create("t", (1, 2))
    broker.create("u", (3,), leader_epoch=4)
    broker.change(leader=2)
    return broker


def topic_of(broker, version, since, name):
    return broker.image.topics[name].topic_id if version >= since else name


def produced(broker, version, topic="t"):
    topic = topic_of(broker, version, 13, topic)
    reply = producing.handled(broker, version, producing.batch(), topic=topic)
    return messages.decode_response(produce.KEY, version, reply)


def fetched(broker, version, topic="t", epoch=-1):
    topic = topic_of(broker, version, 13, topic)
    asked = fetching.part(0, current_leader_epoch=epoch)
    return fetching.read(version, fetching.handled(broker, version, asked, topic=topic))


def endpoints(reply):
    return [(e.node_id, e.host, e.port, e.rack) for e in reply.node_endpoints]


@pytest.mark.parametrize("version", [10, 11, 12, 13])
async def test_a_producer_hears_who_leads_and_where(deposed, version):
    reply = produced(deposed, version)
    [answer] = reply.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
    assert endpoints(reply) == [(2, "host2", 9092, "r2")]


@pytest.mark.parametrize("version", [10, 13])
async def test_a_producer_hears_it_of_partitions_that_are_elsewhere(deposed, version):
    reply = produced(deposed, version, "u")
    [answer] = reply.responses[0].partition_responses
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (3, 4)
    assert endpoints(reply) == [(3, "host3", 9093, None)]


async def test_a_producer_that_waited_hears_it_too(broker):
    broker.commit([registration(2)])
    broker.create("t", (1, 2))
    replies = producing.delivered(producing.handled(broker, 12, producing.batch()))
    broker.change(leader=2)
    reply = messages.decode_response(produce.KEY, 12, replies[0])
    leader = reply.responses[0].partition_responses[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (2, 1)
    assert endpoints(reply) == [(2, "host2", 9092, None)]


@pytest.mark.parametrize("version", [16, 17, 18])
@pytest.mark.parametrize("epoch", [-1, 0])
async def test_a_consumer_hears_who_leads_and_where(deposed, version, epoch):
    topic = "u" if epoch < 0 else "t"
    reply = fetched(deposed, version, topic, epoch)
    [answer] = reply.responses[0].partitions
    expected = ErrorCode.NOT_LEADER_OR_FOLLOWER if epoch < 0 else ErrorCode.FENCED_LEADER_EPOCH
    assert answer.error_code == expected
    leader = (3, 4) if epoch < 0 else (2, 1)
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == leader
    assert [node_id for node_id, *_ in endpoints(reply)] == [leader[0]]


async def test_before_v16_a_consumer_hears_who_and_not_where(deposed):
    reply = fetched(deposed, 12, "u")
    assert reply.responses[0].partitions[0].current_leader.leader_id == 3
    assert not endpoints(reply)


async def test_nobody_is_named_when_nobody_leads(deposed):
    deposed.change(leader=-1)
    reply = produced(deposed, 12)
    assert reply.responses[0].partition_responses[0].current_leader.leader_id == -1
    assert not endpoints(reply)


async def test_a_fenced_leader_has_no_address(deposed):
    deposed.commit([r.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1)])
    reply = produced(deposed, 12)
    assert not endpoints(reply)


async def test_each_leader_is_named_once(deposed):
    deposed.create("v", (2,), (2,), (2,))
    reply = messages.decode_response(
        produce.KEY, 12, producing.handled(deposed, 12, *[producing.batch()] * 3, topic="v")
    )
    assert [node_id for node_id, *_ in endpoints(reply)] == [2]


async def test_what_is_right_has_no_hint(deposed):
    deposed.create("mine")
    assert not endpoints(produced(deposed, 12, "mine"))
    assert not endpoints(fetched(deposed, 17, "mine"))


@pytest.mark.parametrize(("listener", "host", "port"), [("PLAINTEXT", "host", 9090), ("OTHER", "other", 9190)])
async def test_leaders_are_named_where_the_asked_listener_reaches_them(deposed, listener, host, port):
    """Two leaders in one answer, each with two listeners: a client of one may not be able to reach the other at all."""
    deposed.commit([registration(4, listener="ELSEWHERE")])
    deposed.create("v", (2,), (3,), (4,), (2,))
    told = [(2, f"{host}2", port + 2), (3, f"{host}3", port + 3)]
    if listener == "OTHER":
        told.append((4, "other4", port + 4))
    request = messages.request(produce.KEY)
    data = [request.PartitionProduceData(index=index, records=bytes(producing.batch())) for index in range(4)]
    message = request(acks=-1, timeout_ms=1000, topic_data=[request.TopicProduceData(name="v", partition_data=data)])
    frame = memoryview(bytearray(messages.encode_request(produce.KEY, 12, message)))
    body = produce.handle(frame, deposed.context(produce.KEY, 12, listener), 0)
    assert isinstance(body, bytes)
    reply = messages.decode_response(produce.KEY, 12, body)
    assert [endpoint[:3] for endpoint in endpoints(reply)] == told
    request = messages.request(fetch.KEY)
    parts = [request.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=100) for index in range(4)]
    topic_id = deposed.image.topics["v"].topic_id
    message = request(max_bytes=100, topics=[request.FetchTopic(topic_id=topic_id, partitions=parts)])
    frame = memoryview(bytearray(messages.encode_request(fetch.KEY, 16, message)))
    reply = fetching.read(16, fetch.handle(frame, deposed.context(fetch.KEY, 16, listener), 0))
    assert [endpoint[:3] for endpoint in endpoints(reply)] == told
