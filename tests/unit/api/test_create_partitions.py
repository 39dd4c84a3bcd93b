"""CreatePartitions: topics that grow."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import create_partitions
from strandline.errors import ErrorCode
from strandline.wire import messages

from .conftest import registration

Request = messages.request(37)


def grow(name, count, *assignments, given=False):
    return Request.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=[Request.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
        if assignments or given
        else None,
    )


@pytest.mark.parametrize("version", create_partitions.VERSIONS)
async def test_a_topic_grows_in_every_version(broker, version):
    broker.create("t")
    reply = await broker.call(create_partitions, version, topics=[grow("t", 3)])
    assert [(result.name, result.error_code, result.error_message) for result in reply.results] == [("t", 0, None)]
    assert len(broker.image.topics["t"].partitions) == 3
    assert ("t", 2) in broker.parts.hosted.by_name


async def test_refusals(broker):
    broker.commit([registration(2)])
    for name in ("same", "less", "minus", "twice", "huge", "few", "none", "stranger", "good", "wide"):
        broker.create(name, (1,), (1,))
    reply = await broker.call(
        create_partitions,
        3,
        topics=[
            grow("no", 3),
            grow("same", 2),
            grow("less", 1),
            grow("minus", -5),
            grow("twice", 3),
            grow("twice", 4),
            grow("huge", 2**31 - 1),
            grow("few", 4, [1]),
            grow("none", 3, given=True),
            grow("stranger", 3, [9]),
            grow("wide", 3, [1, 2]),
            grow("good", 4, [2], [1]),
        ],
    )
    assert {result.name: result.error_code for result in reply.results} == {
        "no": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "same": ErrorCode.INVALID_PARTITIONS,
        "less": ErrorCode.INVALID_PARTITIONS,
        "minus": ErrorCode.INVALID_PARTITIONS,
        "twice": ErrorCode.INVALID_REQUEST,
        "huge": ErrorCode.POLICY_VIOLATION,
        "few": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "none": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "stranger": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "wide": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "good": 0,
    }
    assert [partition.leader for partition in broker.image.topics["good"].partitions] == [1, 1, 2, 1]
    assert {len(topic.partitions) for name, topic in broker.image.topics.items() if name != "good"} == {2}


async def test_validating_changes_nothing(broker):
    broker.create("t")
    reply = await broker.call(create_partitions, 3, topics=[grow("t", 3)], validate_only=True)
    assert reply.results[0].error_code == 0
    assert len(broker.image.topics["t"].partitions) == 1
