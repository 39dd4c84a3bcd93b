"""A broker that comes back: its epoch, and what it leads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.controller.brokers import Registration, register_alone
from strandline.ids import Uuid
from strandline.metadata.image import Endpoint, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import NO_LEADER

from .conftest import after, broker, cluster

TOPIC_ID, DIR = Uuid(bytes(15) + b"\x07"), Uuid(bytes(15) + b"\x08")
WANTED = Registration(1, Uuid(bytes([9]) * 16), [Endpoint("PLAINTEXT", "n1", 9092, 0)], [("f", 0, 3)], [DIR], "rack")
LED = PartitionImage(replicas=(1,), isr=(1,), leader=1, leader_epoch=4, partition_epoch=6)


def hosting(*partitions: PartitionImage) -> MetadataImage:
    topic = TopicImage("t", TOPIC_ID, partitions)
    return replace(cluster(broker(1)), end_offset=42, topics={"t": topic}, topics_by_id={TOPIC_ID: topic})


def registered(image: MetadataImage) -> MetadataImage:
    return after(image, register_alone(image, WANTED)[0])


def test_a_broker_is_registered_and_unfenced_at_once() -> None:
    records, epoch = register_alone(replace(MetadataImage(), end_offset=42), WANTED)
    found = after(MetadataImage(), records).brokers[1]
    assert epoch == found.epoch == 42, "the offset of the record"
    assert found.active
    assert (found.incarnation_id, found.rack, found.log_dirs) == (WANTED.incarnation_id, "rack", (DIR,))
    assert (list(found.endpoints), list(found.features)) == (WANTED.endpoints, WANTED.features)


def test_what_it_led_it_leads_in_a_new_epoch() -> None:
    one, two = registered(hosting(LED, replace(LED, leader=NO_LEADER))).topics["t"].partitions
    assert (one.leader, one.leader_epoch, one.partition_epoch, one.isr) == (1, 5, 7, (1,))
    assert (two.leader, two.leader_epoch, two.isr) == (1, 5, (1,))


def test_from_the_elr_it_becomes_the_whole_isr() -> None:
    lost = replace(LED, replicas=(1, 2), isr=(), elr=(2, 1), last_known_elr=(2,), leader=NO_LEADER)
    (partition,) = registered(hosting(lost)).topics["t"].partitions
    assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 5)
    assert (partition.elr, partition.last_known_elr) == ((), ())


@pytest.mark.parametrize(
    "other",
    [
        replace(LED, replicas=(1, 2), isr=(2,), leader=2),
        replace(LED, replicas=(1, 2), isr=(2,), elr=(1,), leader=2),
        replace(LED, replicas=(1, 2), isr=(), elr=(2,), leader=NO_LEADER),
    ],
    ids=["isr elsewhere", "elr beside an isr", "elr elsewhere"],
)
def test_what_it_may_not_lead_stays_as_it_is(other: PartitionImage) -> None:
    assert registered(hosting(other)).topics["t"].partitions == (other,)
