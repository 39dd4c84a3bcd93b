"""CreateTopics: what comes into being, and what is said about the rest."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import create_topics
from strandline.config.layers import ConfigSource
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID
from strandline.wire import messages

from .conftest import registration

Request = messages.request(19)


def topic(name, partitions=1, factor=1, assignments=None, **configs):
    return Request.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            Request.CreatableReplicaAssignment(partition_index=index, broker_ids=broker_ids)
            for index, broker_ids in assignments or ()
        ],
        configs=[
            Request.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


async def create(broker, version, *topics, **fields):
    reply = await broker.call(create_topics, version, topics=list(topics), **fields)
    return {result.name: result for result in reply.topics}


def errors(results):
    return {name: result.error_code for name, result in results.items()}


@pytest.mark.parametrize("version", create_topics.VERSIONS)
async def test_a_topic_in_every_version(broker, version):
    [result] = (await create(broker, version, topic("t", 3, retention_ms="5"))).values()
    assert (result.error_code, result.error_message) == (0, None)
    made = broker.image.topics["t"]
    assert len(made.partitions) == 3
    assert broker.image.config(2, "t") == {"retention.ms": "5"}
    assert ("t", 2) in broker.parts.hosted.by_name
    if version >= 5:
        assert (result.num_partitions, result.replication_factor, result.topic_config_error_code) == (3, 1, 0)
        configs = {config.name: config for config in result.configs}
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == (
            "5",
            ConfigSource.TOPIC_CONFIG,
        )
        assert configs["segment.bytes"].config_source == ConfigSource.DEFAULT_CONFIG
        assert not configs["retention.ms"].read_only
    if version >= 7:
        assert result.topic_id == made.topic_id != ZERO_UUID


async def test_defaults_are_the_brokers(make_broker):
    broker = make_broker(num_partitions="4")
    [result] = (await create(broker, 5, topic("t", -1, -1))).values()
    assert (result.num_partitions, result.replication_factor) == (4, 1)


async def test_validating_changes_nothing(broker):
    results = await create(broker, 7, topic("t", 2), topic("bad name"), validate_only=True)
    assert errors(results) == {"t": 0, "bad name": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert results["t"].num_partitions == 2
    assert not broker.image.topics


async def test_one_bad_topic_does_not_stop_the_others(broker):
    broker.create("there")
    broker.create("a.b")
    results = await create(
        broker,
        7,
        topic("good"),
        topic("there"),
        topic("a_b"),
        topic("c.d"),
        topic("c_d"),
        topic("twice"),
        topic("twice", 2),
        topic("__cluster_metadata"),
        topic(""),
        topic("x" * 250),
        topic("zero", 0),
        topic("minus", -2),
        topic("factor0", 1, 0),
        topic("factor9", 1, 9),
        topic("config", retention_ms="soon"),
        topic("null", retention_ms=None),
        topic("unknown", retention_mss="5"),
        topic("also good"[:4]),
    )
    assert errors(results) == {
        "good": 0,
        "there": ErrorCode.TOPIC_ALREADY_EXISTS,
        "a_b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "c.d": 0,
        "c_d": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "twice": ErrorCode.INVALID_REQUEST,
        "__cluster_metadata": ErrorCode.INVALID_REQUEST,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "x" * 250: ErrorCode.INVALID_TOPIC_EXCEPTION,
        "zero": ErrorCode.INVALID_PARTITIONS,
        "minus": ErrorCode.INVALID_PARTITIONS,
        "factor0": ErrorCode.INVALID_REPLICATION_FACTOR,
        "factor9": ErrorCode.INVALID_REPLICATION_FACTOR,
        "config": ErrorCode.INVALID_CONFIG,
        "null": ErrorCode.INVALID_CONFIG,
        "unknown": ErrorCode.INVALID_CONFIG,
        "also": 0,
    }
    assert results["there"].error_message == "Topic 'there' already exists."
    assert set(broker.image.topics) == {"there", "a.b", "good", "c.d", "also"}


async def test_assignments(broker):
    broker.commit([registration(2)])
    results = await create(
        broker,
        7,
        topic("t", -1, -1, [(1, [2, 1]), (0, [1, 2])]),
        topic("gap", -1, -1, [(0, [1]), (2, [1])]),
        topic("double", -1, -1, [(0, [1]), (0, [2])]),
        topic("nobody", -1, -1, [(0, [])]),
        topic("stranger", -1, -1, [(0, [9])]),
        topic("uneven", -1, -1, [(0, [1]), (1, [1, 2])]),
        topic("same", -1, -1, [(0, [1, 1])]),
        topic("both", 1, -1, [(0, [1])]),
    )
    assert errors(results) == {
        "t": 0,
        "gap": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "double": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "nobody": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "stranger": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "uneven": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "same": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "both": ErrorCode.INVALID_REQUEST,
    }
    assert [partition.replicas for partition in broker.image.topics["t"].partitions] == [(1, 2), (2, 1)]
    assert (results["t"].num_partitions, results["t"].replication_factor) == (2, 2)


async def test_a_request_for_very_many_partitions_creates_nothing(broker):
    too_many = ErrorCode.POLICY_VIOLATION
    results = await create(broker, 7, topic("a", 5_000), topic("b", 5_001), topic("c", -7), validate_only=True)
    assert errors(results) == {"a": too_many, "b": too_many, "c": too_many}
    assert errors(await create(broker, 7, topic("huge", 2**31 - 1))) == {"huge": too_many}
    assert not broker.image.topics


async def test_no_controller(broker):
    broker.controller_error = KafkaError(ErrorCode.NOT_CONTROLLER)
    assert errors(await create(broker, 7, topic("t"))) == {"t": ErrorCode.NOT_CONTROLLER}
    assert await create(broker, 7) == {}
