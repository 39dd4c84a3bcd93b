"""AlterPartitionReassignments: begun and cancelled, each partition with its own answer."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import alter_partition_reassignments
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

from .conftest import registration

Request = messages.request(45)


def topic(name, **partitions):
    """Replicas by index, `p0=[1, 2]`; None cancels."""
    return Request.ReassignableTopic(
        name=name,
        partitions=[
            Request.ReassignablePartition(partition_index=int(index[1:]), replicas=replicas)
            for index, replicas in partitions.items()
        ],
    )


async def alter(broker, version, *topics, **fields):
    return await broker.call(alter_partition_reassignments, version, topics=list(topics), **fields)


def codes(reply):
    return {
        (topic.name, result.partition_index): result.error_code
        for topic in reply.responses
        for result in topic.partitions
    }


@pytest.fixture
def three(broker):
    broker.commit([registration(2), registration(3)])
    broker.create("t", (1, 2), (1, 2), (1, 2))
    return broker


@pytest.mark.parametrize("version", alter_partition_reassignments.VERSIONS)
async def test_begun_and_cancelled_in_every_version(three, version):
    reply = await alter(three, version, topic("t", p0=[1, 3], p1=[3, 2]))
    assert (reply.error_code, reply.error_message) == (0, None)
    assert codes(reply) == {("t", 0): 0, ("t", 1): 0}
    first, second, _ = three.image.topics["t"].partitions
    assert (first.replicas, first.adding_replicas, first.removing_replicas) == ((1, 3, 2), (3,), (2,))
    assert (second.replicas, second.isr) == ((3, 2, 1), (1, 2))
    reply = await alter(three, version, topic("t", p0=None, p2=None))
    assert codes(reply) == {("t", 0): 0, ("t", 2): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
    assert three.image.topics["t"].partitions[0].replicas == (1, 2)


async def test_refusals(three):
    reply = await alter(three, 1, topic("t", p0=[1, 9], p1=[], p2=[3, 2], p7=[1]), topic("u", p0=[1]))
    assert codes(reply) == {
        ("t", 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ("t", 1): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ("t", 2): 0,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert "9" in reply.responses[0].partitions[0].error_message


async def test_the_replication_factor_may_be_fixed(three):
    wanted = topic("t", p0=[1, 2, 3])
    reply = await alter(three, 1, wanted, allow_replication_factor_change=False)
    assert not reply.allow_replication_factor_change
    assert codes(reply) == {("t", 0): ErrorCode.INVALID_REPLICATION_FACTOR}
    assert codes(await alter(three, 1, wanted)) == {("t", 0): 0}


async def test_a_partition_that_is_named_twice_moves_once(three):
    reply = await alter(three, 1, topic("t", p0=[3, 2]), topic("t", p0=[1, 3]))
    assert [topic.partitions[0].error_code for topic in reply.responses] == [0, ErrorCode.INVALID_REQUEST]
    assert three.image.topics["t"].partitions[0].replicas == (3, 2, 1)


async def test_without_a_controller(three):
    three.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await alter(three, 1, topic("t", p0=[3, 2]))
    assert reply.error_code == codes(reply)["t", 0] == ErrorCode.NOT_CONTROLLER
