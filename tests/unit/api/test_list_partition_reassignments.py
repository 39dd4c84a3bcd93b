"""ListPartitionReassignments: what is under way, and nothing else."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import list_partition_reassignments
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.reassignments import alter
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages

from .conftest import registration

Request = messages.request(46)


def named(**topics):
    return [
        Request.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
        for name, indexes in topics.items()
    ]


@pytest.fixture
def moving(broker):
    broker.commit([registration(2), registration(3)])
    broker.create("t", (1, 2), (1, 2), (1, 2))
    broker.create("still", (1, 2))
    for index in (0, 2):
        broker.commit([alter(broker.image, "t", index, [1, 3], ElectionPolicy())])
    return broker


async def listed(broker, topics):
    reply = await broker.call(list_partition_reassignments, 0, topics=topics)
    assert (reply.error_code, reply.error_message) == (0, None)
    return {
        (topic.name, found.partition_index): (found.replicas, found.adding_replicas, found.removing_replicas)
        for topic in reply.topics
        for found in topic.partitions
    }


async def test_all(moving):
    on_its_way = ([1, 3, 2], [3], [2])
    assert await listed(moving, None) == {("t", 0): on_its_way, ("t", 2): on_its_way}


async def test_those_that_are_named(moving):
    assert set(await listed(moving, named(t=[1, 2, 9], still=[0], no=[0]))) == {("t", 2)}
    assert await listed(moving, []) == {}


async def test_without_a_controller(moving):
    moving.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    reply = await moving.call(list_partition_reassignments, 0, topics=None)
    assert (reply.error_code, reply.topics) == (ErrorCode.NOT_CONTROLLER, [])
