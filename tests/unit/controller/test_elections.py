"""Brokers that come and go, and elections that are asked for. What one partition becomes is in `test_partition_change.py`."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import pytest

from strandline.config.layers import Layers
from strandline.controller import elections
from strandline.controller.elections import ElectionPolicy, policy_of
from strandline.controller.partition_change import PartitionTarget, active_brokers, change
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    MetadataImage,
    PartitionImage,
    TopicImage,
)

from .conftest import after, broker, cluster
from .partitions import happen, image_of, partition_of, policy, records_of


@pytest.mark.parametrize(
    ("before", "event", "afterwards"),
    [
        ("123 isr=123 leader=1", "fence 1", "123 isr=23 leader=2 epoch+1"),
        ("123 isr=123 leader=1", "stop 1", "123 isr=23 leader=2 epoch+1"),
        ("123 isr=123 leader=1", "crash 1", "123 isr=23 leader=2 epoch+1"),
        ("123 isr=123 leader=1", "unregister 1", "123 isr=23 leader=2 epoch+1"),
        ("123 isr=1 leader=1 elr=2", "fence 2", "123 isr=1 leader=1 elr=2"),
        ("123 isr=1 leader=1 elr=2", "stop 2", "123 isr=1 leader=1 elr=2"),
        ("123 isr=1 leader=1 elr=2", "crash 2", "123 isr=1 leader=1"),
        ("123 isr=1 leader=1 elr=2", "unregister 2", "123 isr=1 leader=1"),
        ("123 isr=12 leader=1", "fence 3", "123 isr=12 leader=1"),
        ("123 isr=1 leader=1", "stop 1", "123 elr=1 last=1 epoch+1"),
        ("123 isr=12 leader=1 down=3", "unfence 3", "123 isr=12 leader=1"),
        ("123 elr=13 last=1 down=13", "unfence 3", "123 isr=3 leader=3 elr=1 epoch+1"),
    ],
)
def test_b13_a_broker_that_goes_or_comes(before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, "min=2 elr") == afterwards


@pytest.mark.parametrize(
    ("before", "event", "afterwards"),
    [
        ("1 isr=1 leader=1", "fence 1", "1 isr=1 epoch+1"),
        ("1 isr=1 down=1", "unfence 1", "1 isr=1 leader=1 epoch+1"),
        ("1 isr=1 leader=1", "crash 1", "1 isr=1 epoch+1"),
        ("12 isr=1 down=12", "unfence 2", "12 isr=1"),
    ],
)
def test_without_elr_the_last_of_the_isr_stays_its_name(before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, "min=2") == afterwards


def test_i5_the_broker_is_judged_by_what_is_becoming_of_it() -> None:
    # The image has it unfenced still; even an unclean election must not choose it.
    assert happen("12 isr=1 leader=1 down=2", "fence 1", "unclean") == "12 isr=1 epoch+1"
    assert happen("12 isr=1 leader=1 down=2", "crash 1", "unclean min=2 elr") == "12 last=1 epoch+1"


@pytest.mark.parametrize(
    ("words", "before", "event", "afterwards"),
    [
        ("", "123 isr=123 leader=2", "elect preferred", "123 isr=123 leader=1 epoch+1"),
        ("", "123 isr=123 leader=1", "elect preferred", "ELECTION_NOT_NEEDED"),
        ("", "123 isr=23 leader=2", "elect preferred", "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("", "123 isr=123 leader=2 stopping=1", "elect preferred", "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("", "123 isr=3", "elect preferred", "123 isr=3 leader=3 epoch+1"),
        ("", "123 isr=3 down=3", "elect preferred", "PREFERRED_LEADER_NOT_AVAILABLE"),
        ("", "123 isr=3 down=3", "elect unclean", "123 isr=1 leader=1 recovering epoch+1"),
        ("", "123 isr=3", "elect unclean", "123 isr=3 leader=3 epoch+1"),
        ("", "123 isr=3 leader=3", "elect unclean", "ELECTION_NOT_NEEDED"),
        ("", "123 isr=3 down=123", "elect unclean", "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
        ("min=2 elr", "123 elr=2 last=2", "elect unclean", "123 isr=2 leader=2 epoch+1"),
        ("min=2 elr", "123 last=2", "elect preferred", "123 isr=2 leader=2 recovering epoch+1"),
    ],
)
def test_b8_elections_that_are_asked_for(words: str, before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, words) == afterwards


def test_a_partition_that_is_not_there_can_not_be_elected_for() -> None:
    image = image_of("123 isr=123 leader=2")
    for topic, index in (("t", 1), ("t", -1), ("u", 0)):
        with pytest.raises(elections.KafkaError) as error:
            elections.elect(image, topic, index, elections.Election.PREFERRED, ElectionPolicy())
        assert error.value.code is elections.ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_it_led_an_unregistered_broker_leaves_to_the_others_with_its_records_in_one_go() -> None:
    image = image_of("123 isr=123 leader=1")
    gone = after(image, records_of(image, "unregister 1", policy("")))
    assert 1 not in gone.brokers
    assert partition_of(gone).isr == (2, 3)


# The policy


def config(kind: int, name: str, key: str, value: str) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def test_the_policy_is_the_topics_then_the_clusters_then_the_files() -> None:
    layers = Layers({"min.insync.replicas": "2"})
    image = MetadataImage()
    assert policy_of(image, layers).min_isr("t") == 2
    image = after(image, [config(BROKER_RESOURCE, CLUSTER_DEFAULT, "min.insync.replicas", "3")])
    image = after(image, [config(BROKER_RESOURCE, CLUSTER_DEFAULT, "unclean.leader.election.enable", "true")])
    image = after(image, [config(TOPIC_RESOURCE, "t", "min.insync.replicas", "4")])
    image = after(image, [config(TOPIC_RESOURCE, "t", "unclean.leader.election.enable", "false")])
    found = policy_of(image, layers)
    assert (found.min_isr("t"), found.min_isr("u")) == (4, 3)
    assert (found.unclean("t"), found.unclean("u")) == (False, True)
    assert not found.elr_enabled
    feature = r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    assert policy_of(after(image, [feature]), layers).elr_enabled


# Many partitions


def many(count: int) -> MetadataImage:
    partition = PartitionImage((1, 2, 3), (1, 2, 3), leader=1, leader_epoch=0, partition_epoch=0)
    topics = [TopicImage(f"t{i}", Uuid(i.to_bytes(16)), (partition,) * 100) for i in range(count // 100)]
    image = cluster(*(broker(i, fenced=i == 4) for i in range(1, 5)))
    return MetadataImage(
        brokers=image.brokers, topics={t.name: t for t in topics}, topics_by_id={t.topic_id: t for t in topics}
    )


def test_partitions_that_are_alike_become_alike_and_others_not() -> None:
    alike = PartitionImage((1, 2, 3), (1, 2, 3), leader=1, leader_epoch=0, partition_epoch=0)
    others = [
        partition_of(image_of(line))
        for line in ("123 isr=12 leader=1", "123 isr=1 leader=1 elr=2", "123 isr=12 leader=2")
    ]
    topics = [TopicImage(name, Uuid(name.encode() * 16), (alike, *others, alike)) for name in "tu"]
    image = MetadataImage(
        brokers=image_of("1").brokers, topics={t.name: t for t in topics}, topics_by_id={t.topic_id: t for t in topics}
    )
    image = after(image, [config(TOPIC_RESOURCE, "u", "min.insync.replicas", "3")])
    rules = ElectionPolicy(2, False, True, image.configs)
    records = elections.broker_fenced(image, 1, rules)
    one_by_one = [
        record
        for topic in topics
        for index, partition in enumerate(topic.partitions)
        if (
            record := change(
                topic.topic_id,
                index,
                partition,
                PartitionTarget(isr=tuple(member for member in partition.isr if member != 1)),
                rules.terms(topic.name, active_brokers(image, but=1)),
            )
        )
    ]
    assert records == one_by_one
    assert len({(record.topic_id, record.partition_id) for record in records}) == 10
    assert all(type(record) is r.PartitionChangeRecord for record in records)
