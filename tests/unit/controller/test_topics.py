"""Decisions about topics, and the code for each that can't be made."""

from __future__ import annotations

import random
from typing import Any

import pytest

from strandline.config.layers import DEFAULTS
from strandline.controller import topics
from strandline.controller.topics import UNASSIGNED_DIRECTORY, Defaults, NewTopic
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage

from .conftest import after, broker, cluster

DIR = Uuid(bytes(15) + b"\x09")
THREE = cluster(broker(1, log_dirs=(DIR,)), broker(2, log_dirs=(DIR, UNASSIGNED_DIRECTORY)), broker(3))


def create(image: MetadataImage, name: str, count: int = 1, factor: int = 1, **fields: Any) -> MetadataImage:
    defaults = Defaults(partition_count=4, replication_factor=2, layers=DEFAULTS)
    return after(image, topics.create(image, NewTopic(name, count, factor, **fields), defaults, random.Random(1)))


def code_of(image: MetadataImage, name: str, count: int = 1, factor: int = 1, **fields: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        create(image, name, count, factor, **fields)
    return error.value.code


def test_a_new_topic() -> None:
    image = create(THREE, "orders", 3, 2, configs={"retention.ms": "5"})
    topic = image.topics["orders"]
    assert len(topic.partitions) == 3
    assert image.config(TOPIC_RESOURCE, "orders") == {"retention.ms": "5"}
    for partition in topic.partitions:
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_the_order_of_its_records_is_kafkas() -> None:
    defaults = Defaults(1, 1, DEFAULTS)
    wanted = NewTopic("orders", 2, 1, configs={"retention.ms": "5"})
    kinds = [type(record) for record in topics.create(THREE, wanted, defaults, random.Random(1))]
    assert kinds == [r.TopicRecord, r.ConfigRecord, r.PartitionRecord, r.PartitionRecord]


def test_defaults_stand_in_for_minus_one() -> None:
    topic = create(THREE, "orders", -1, -1).topics["orders"]
    assert [len(partition.replicas) for partition in topic.partitions] == [2, 2, 2, 2]


def test_a_topic_as_its_creator_assigns_it() -> None:
    topic = create(THREE, "orders", -1, -1, assignments={1: [3, 2], 0: [1, 3]}).topics["orders"]
    assert [partition.replicas for partition in topic.partitions] == [(1, 3), (3, 2)]


def test_a_replicas_directory_is_known_where_its_broker_has_one_only() -> None:
    (partition,) = create(THREE, "orders", -1, -1, assignments={0: [1, 2, 3]}).topics["orders"].partitions
    assert partition.directories == (DIR, UNASSIGNED_DIRECTORY, UNASSIGNED_DIRECTORY)


def test_fenced_and_stopping_brokers_neither_lead_nor_are_in_sync() -> None:
    image = cluster(broker(1, fenced=True), broker(2, stopping=True), broker(3), broker(4))
    (partition,) = create(image, "orders", -1, -1, assignments={0: [1, 2, 3, 4]}).topics["orders"].partitions
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2, 3, 4), (3, 4), 3)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "é", "x" * 250])
def test_illegal_names(name: str) -> None:
    assert code_of(THREE, name) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_metadata_log_can_not_be_made_a_topic() -> None:
    assert code_of(THREE, "__cluster_metadata") is ErrorCode.INVALID_REQUEST


def test_names_that_are_taken() -> None:
    image = create(THREE, "a.b")
    assert code_of(image, "a.b") is ErrorCode.TOPIC_ALREADY_EXISTS
    assert code_of(image, "a_b") is ErrorCode.INVALID_TOPIC_EXCEPTION
    create(image, "a-b")


@pytest.mark.parametrize(
    ("count", "factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 4, ErrorCode.INVALID_REPLICATION_FACTOR),
        (10_001, 1, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_numbers_that_can_not_be(count: int, factor: int, code: ErrorCode) -> None:
    assert code_of(THREE, "orders", count, factor) is code


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ({1: [1]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: [1], 2: [2]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: []}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: [1, 1]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: [1], 1: [1, 2]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: [1, 9]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: [4]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=["not from 0", "not in a row", "empty", "twice", "unequal", "unknown broker", "all fenced"],
)
def test_assignments_that_can_not_be(assignments: dict[int, list[int]], code: ErrorCode) -> None:
    image = cluster(*THREE.brokers.values(), broker(4, fenced=True))
    assert code_of(image, "orders", -1, -1, assignments=assignments) is code


def test_an_assignment_replaces_both_numbers() -> None:
    assert code_of(THREE, "orders", 1, -1, assignments={0: [1]}) is ErrorCode.INVALID_REQUEST
    assert code_of(THREE, "orders", -1, 1, assignments={0: [1]}) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "configs",
    [
        {"no.such.key": "1"},
        {"retention.ms": "soon"},
        {"retention.ms": None},
        {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
    ],
)
def test_configs_that_can_not_be(configs: dict[str, str | None]) -> None:
    assert code_of(THREE, "orders", configs=configs) is ErrorCode.INVALID_CONFIG


def test_no_active_broker_takes_no_topic() -> None:
    assert code_of(cluster(broker(1, fenced=True)), "orders") is ErrorCode.INVALID_REPLICATION_FACTOR


def test_deleting() -> None:
    image = create(THREE, "orders", configs={"retention.ms": "5"})
    records = topics.delete(image, image.topics["orders"], enabled=True)
    gone = after(image, records)
    assert (gone.topics, gone.topics_by_id, gone.configs) == ({}, {}, {})
    for topic, enabled, code in (
        (None, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (image.topics["orders"], False, ErrorCode.TOPIC_DELETION_DISABLED),
    ):
        with pytest.raises(KafkaError) as error:
            topics.delete(image, topic, enabled=enabled)
        assert error.value.code is code


def test_adding_partitions() -> None:
    image = create(THREE, "orders", 2, 2)
    before = image.topics["orders"].partitions
    grown = after(image, topics.add_partitions(image, "orders", 5, None, random.Random(2))).topics["orders"].partitions
    assert grown[:2] == before
    assert [len(partition.replicas) for partition in grown] == [2] * 5
    records = topics.add_partitions(image, "orders", 3, [[3, 1]], random.Random(2))
    assert after(image, records).topics["orders"].partitions[2].replicas == (3, 1)


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code"),
    [
        ("other", 3, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", 2, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 1, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", -1, None, ErrorCode.INVALID_PARTITIONS),
        ("orders", 10_003, None, ErrorCode.POLICY_VIOLATION),
        ("orders", 4, [[1, 2]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[1, 9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("orders", 3, [[1, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_partitions_that_can_not_be_added(
    name: str, count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    image = create(THREE, "orders", 2, 2)
    with pytest.raises(KafkaError) as error:
        topics.add_partitions(image, name, count, assignments, random.Random(2))
    assert error.value.code is code
