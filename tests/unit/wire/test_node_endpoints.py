"""Where brokers are, in replies: as the generic codec reads it."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.wire import fetch, messages, produce
from strandline.wire.fetch import FetchedPartition
from strandline.wire.node_endpoints import NodeEndpoint, tagged
from strandline.wire.produce import PartitionResponse

ENDPOINTS = [
    NodeEndpoint(2, "host2", 9092, None),
    NodeEndpoint(2**31 - 1, "ü" * 200, 65535, "rack-a"),
    NodeEndpoint(0, "", 0, ""),
]
TOPIC_ID = bytes(range(16))


def told(reply):
    return [NodeEndpoint(e.node_id, e.host, e.port, e.rack) for e in reply.node_endpoints]


def produced(version, endpoints):
    topic = TOPIC_ID if version >= 13 else "t"
    refused = PartitionResponse(0, 6, -1, leader_id=2, leader_epoch=7)
    data = produce.write_response(version, [(topic, [refused])], endpoints=endpoints)
    return messages.decode_response(produce.KEY, version, data)


def fetched(version, endpoints):
    topic = TOPIC_ID if version >= 13 else "t"
    refused = FetchedPartition(0, 6, current_leader=(2, 7))
    data = fetch.write_response(version, [(topic, [refused])], endpoints=endpoints)
    return messages.decode_response(fetch.KEY, version, b"".join(data))


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("version", range(10, 14))
def test_in_a_produce_reply(version, count):
    reply = produced(version, ENDPOINTS[:count])
    assert told(reply) == ENDPOINTS[:count]
    leader = reply.responses[0].partition_responses[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (2, 7)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("version", [16, 17, 18])
def test_in_a_fetch_reply(version, count):
    reply = fetched(version, ENDPOINTS[:count])
    assert told(reply) == ENDPOINTS[:count]
    leader = reply.responses[0].partitions[0].current_leader
    assert (leader.leader_id, leader.leader_epoch) == (2, 7)


@pytest.mark.parametrize("version", [3, 8, 9])
def test_produce_replies_before_have_none(version):
    assert not produced(version, ENDPOINTS).node_endpoints


@pytest.mark.parametrize("version", [4, 11, 12, 15])
def test_fetch_replies_before_have_none(version):
    assert not fetched(version, ENDPOINTS).node_endpoints


def test_many_brokers_need_a_longer_length():
    endpoints = [NodeEndpoint(i, f"host{i}", 9092, None) for i in range(1000)]
    assert told(produced(12, endpoints)) == endpoints
    assert tagged([]) == b"\0"
