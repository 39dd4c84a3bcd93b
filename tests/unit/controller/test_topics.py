"""Decisions about topics, and the code for each that can't be made."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from strandline.config.layers import DEFAULTS
from strandline.controller import reassignments, topics
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.placement import UNASSIGNED_DIRECTORY
from strandline.controller.topics import RequestedTopic, TakenNames, TopicDefaults
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, TopicImage

from .conftest import after, broker, cluster
from .partitions import image_of, line_of, partition_of

DIR = Uuid(bytes(15) + b"\x09")
THREE = cluster(broker(1, log_dirs=(DIR,)), broker(2, log_dirs=(DIR, UNASSIGNED_DIRECTORY)), broker(3))


def create(image: MetadataImage, name: str, count: int = 1, factor: int = 1, **fields: Any) -> MetadataImage:
    defaults = TopicDefaults(partition_count=4, replication_factor=2, layers=DEFAULTS)
    return after(image, topics.create(image, RequestedTopic(name, count, factor, **fields), defaults, random.Random(1)))


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
    defaults = TopicDefaults(1, 1, DEFAULTS)
    wanted = RequestedTopic("orders", 2, 1, configs={"retention.ms": "5"})
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


def test_a_topic_that_moves_grows_by_the_factor_it_will_have() -> None:
    image = create(THREE, "orders", -1, -1, assignments={0: [1, 2]})
    record = reassignments.alter(image, "orders", 0, [3, 2], ElectionPolicy())
    assert record is not None
    image = after(image, [record])
    assert len(image.topics["orders"].partitions[0].replicas) == 3
    grown = after(image, topics.add_partitions(image, "orders", 2, None, random.Random(2))).topics["orders"]
    assert len(grown.partitions[1].replicas) == 2


def test_several_brokers_share_the_leadership() -> None:
    image = cluster(*(broker(i, fenced=i == 6) for i in range(1, 7)))
    image = create(image, "orders", 10, 3)
    leaders = Counter(partition.leader for partition in image.topics["orders"].partitions)
    assert leaders == dict.fromkeys(range(1, 6), 2)
    image = after(image, topics.add_partitions(image, "orders", 20, None, random.Random(2)))
    leaders = Counter(partition.leader for partition in image.topics["orders"].partitions)
    assert leaders == dict.fromkeys(range(1, 6), 4)


def test_cordoned_brokers_can_not_be_assigned() -> None:
    cordoned = replace(broker(4, log_dirs=(DIR,)), cordoned_log_dirs=(DIR,))
    image = cluster(*THREE.brokers.values(), cordoned)
    assert code_of(image, "orders", -1, -1, assignments={0: [4, 1]}) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


# min.insync.replicas and who is eligible to lead by it


def min_isr(kind: int, name: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=name, name="min.insync.replicas", value=value)


ELR_ON = r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def with_elr(*lines: str) -> MetadataImage:
    """A topic of partitions like these (`partitions.py`), and another."""
    partitions = tuple(partition_of(image_of(line)) for line in lines)
    found = {name: TopicImage(name, Uuid(name.encode() * 16), partitions) for name in "tu"}
    by_id = {topic.topic_id: topic for topic in found.values()}
    return after(replace(image_of(lines[0]), topics=found, topics_by_id=by_id), [ELR_ON])


@pytest.mark.parametrize(
    ("change", "cleared"),
    [
        (min_isr(TOPIC_RESOURCE, "t", "1"), "t"),
        (min_isr(TOPIC_RESOURCE, "t", None), "t"),
        (min_isr(BROKER_RESOURCE, "", "3"), "tu"),
        (replace(min_isr(TOPIC_RESOURCE, "t", "1"), name="retention.ms"), ""),
    ],
)
def test_another_min_isr_makes_nobody_eligible_but_where_nobody_leads(change: r.ConfigRecord, cleared: str) -> None:
    image = with_elr("123 isr=1 leader=1 elr=2", "123 elr=12 last=1", "123 last=2")
    image = after(image, topics.min_isr_changed(image, [change]))
    for name in "tu":
        led, *others = (line_of(partition) for partition in image.topics[name].partitions)
        assert led == ("123 isr=1 leader=1" if name in cleared else "123 isr=1 leader=1 elr=2")
        assert others == ["123 elr=12 last=1", "123 last=2"]


def test_one_min_isr_for_all_brokers_while_elr_is_on() -> None:
    for change in (
        min_isr(BROKER_RESOURCE, "1", "2"),
        min_isr(BROKER_RESOURCE, "1", None),
        min_isr(BROKER_RESOURCE, "", None),
    ):
        assert topics.min_isr_changed(THREE, [change]) == [], "ELR is off"
        with pytest.raises(KafkaError) as error:
            topics.min_isr_changed(after(THREE, [ELR_ON]), [change])
        assert error.value.code is ErrorCode.INVALID_CONFIG


def test_many_topics_in_one_request_know_each_other() -> None:
    """Names that '.' and '_' make one collide with those before them, too, without all being looked at for each (SEC-L2)."""
    image = cluster(broker(1))
    taken = TakenNames(image)
    defaults = TopicDefaults(1, 1, DEFAULTS)
    topics.create(image, RequestedTopic("a.b", 1, 1), defaults, random.Random(1), taken)
    with pytest.raises(KafkaError, match=r"collides with existing topic: a\.b"):
        topics.create(image, RequestedTopic("a_b", 1, 1), defaults, random.Random(1), taken)
