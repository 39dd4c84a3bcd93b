"""Brokers that come and go. What one partition becomes is in `test_partition_change.py`."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import pytest

from strandline.controller import broker_changes
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import active_brokers
from strandline.controller.partition_change import PartitionTarget, change
from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import (
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


def test_what_it_led_an_unregistered_broker_leaves_to_the_others_with_its_records_in_one_go() -> None:
    image = image_of("123 isr=123 leader=1")
    gone = after(image, records_of(image, "unregister 1", policy("")))
    assert 1 not in gone.brokers
    assert partition_of(gone).isr == (2, 3)


# The policy
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
    image = after(
        image, [r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="u", name="min.insync.replicas", value="3")]
    )
    rules = ElectionPolicy(2, False, True, image.configs)
    records = broker_changes.broker_fenced(image, 1, rules)
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
