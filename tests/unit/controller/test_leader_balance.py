"""Leadership goes back to the preferred replicas."""

from __future__ import annotations

import pytest

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_balance import balance
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage

from .conftest import after, broker, cluster
from .partitions import happen


@pytest.mark.parametrize(
    ("before", "afterwards"),
    [
        ("123 isr=123 leader=2", "123 isr=123 leader=1 epoch+1"),
        ("123 isr=123 leader=1", "123 isr=123 leader=1"),
        ("123 isr=23 leader=2", "123 isr=23 leader=2"),
        ("123 isr=123 leader=2 stopping=1", "123 isr=123 leader=2"),
        ("123 isr=1 down=1", "123 isr=1"),
    ],
)
def test_b8_only_a_preferred_replica_that_may_lead(before: str, afterwards: str) -> None:
    assert happen(before, "balance") == afterwards


def test_a_step_is_bounded_and_says_whether_to_go_on() -> None:
    partition = PartitionImage((1, 2), (1, 2), leader=2, leader_epoch=0, partition_epoch=0)
    topic = TopicImage("t", Uuid(b"t" * 16), (partition,) * 5)
    image = MetadataImage(
        topics={"t": topic}, topics_by_id={topic.topic_id: topic}, brokers=cluster(broker(1), broker(2)).brokers
    )
    steps = []
    more = True
    while more:
        records, more = balance(image, ElectionPolicy(), most=2)
        steps.append(len(records))
        image = after(image, records)
    assert steps == [2, 2, 1]
    assert {partition.leader for partition in image.topics["t"].partitions} == {1}
