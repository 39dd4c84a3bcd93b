"""DescribeQuorum: who votes, who observes, how far each has come."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import describe_quorum
from strandline.errors import ErrorCode
from strandline.ids import ZERO_UUID, Uuid
from strandline.raft.messages import Address, ReplicaKey
from strandline.raft.replicas import QuorumDescription, ReplicaDescription
from strandline.wire import messages

from .quorum_member import RecordingMember, ask

Request = messages.request(55)
ID = Uuid(bytes(range(16)))


def facts(broker, leader_id=1):
    now = broker.clock.monotonic()
    endpoints = {"CONTROLLER": Address("n1", 9093)}
    return QuorumDescription(
        leader_id,
        5,
        100,
        (
            ReplicaDescription(ReplicaKey(1, ID), 120, now, now, endpoints),
            ReplicaDescription(ReplicaKey(2), -1, None, None, {"CONTROLLER": Address("n2", 9093)}),
        ),
        (ReplicaDescription(ReplicaKey(7), 110, now - 2.0, now - 5.0, {}),),
    )


def describe(broker, version, leader_id=1, topic="__cluster_metadata", indexes=(0,)):
    partitions = [Request.PartitionData(partition_index=index) for index in indexes]
    request = Request(topics=[Request.TopicData(topic_name=topic, partitions=partitions)])
    return ask(broker, describe_quorum, version, request, RecordingMember(facts=facts(broker, leader_id)))


@pytest.mark.parametrize("version", describe_quorum.VERSIONS)
async def test_the_leader_tells_of_all(broker, version):
    reply = describe(broker, version)
    [partition] = reply.topics[0].partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 5)
    assert partition.high_watermark == 100
    assert [(state.replica_id, state.log_end_offset) for state in partition.current_voters] == [(1, 120), (2, -1)]
    [observer] = partition.observers
    assert (observer.replica_id, observer.log_end_offset) == (7, 110)
    if version >= 1:
        now_ms = broker.clock.wall_ms()
        assert partition.current_voters[1].last_fetch_timestamp == -1
        assert 1900 <= now_ms - observer.last_fetch_timestamp <= 2900
        assert 4900 <= now_ms - observer.last_caught_up_timestamp <= 5900
    if version >= 2:
        assert [state.replica_directory_id for state in partition.current_voters] == [ID, ZERO_UUID]
        assert [(node.node_id, node.listeners[0].name, node.listeners[0].host) for node in reply.nodes] == [
            (1, "CONTROLLER", "n1"),
            (2, "CONTROLLER", "n2"),
        ]


async def test_others_do_not_know(broker):
    [partition] = describe(broker, 2, leader_id=3).topics[0].partitions
    assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("topic", "indexes"), [("t", (0,)), ("__cluster_metadata", (1,)), ("__cluster_metadata", (0, 1))]
)
async def test_there_is_one_partition(broker, topic, indexes):
    answers = describe(broker, 2, topic=topic, indexes=indexes).topics[0].partitions
    assert [answer.partition_index for answer in answers] == list(indexes)
    assert {answer.error_code for answer in answers} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_nothing_asked_nothing_told(broker):
    reply = ask(broker, describe_quorum, 2, Request(topics=[]), RecordingMember(facts=facts(broker)))
    assert reply.topics == []
