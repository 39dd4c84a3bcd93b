"""Images: what can be looked up in them."""

from __future__ import annotations

import dataclasses

import pytest

from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.image import (
    TOPIC_RESOURCE,
    BrokerImage,
    Endpoint,
    MetadataImage,
    PartitionImage,
    TopicImage,
)

TOPIC_ID = Uuid(bytes(range(16)))
PARTITION = PartitionImage((1, 2), (1,), 1, 0, 0)
TOPIC = TopicImage("orders", TOPIC_ID, (PARTITION, PARTITION))
IMAGE = MetadataImage(
    topics={"orders": TOPIC},
    topics_by_id={TOPIC_ID: TOPIC},
    configs={(TOPIC_RESOURCE, "orders"): {"retention.ms": "5"}},
)


def test_a_topic_is_found_by_name_and_by_id() -> None:
    assert IMAGE.topic("orders") is IMAGE.topic(TOPIC_ID) is IMAGE.topic(bytes(range(16))) is TOPIC
    assert IMAGE.topic("other") is None
    assert IMAGE.topic(bytes(16)) is None


@pytest.mark.parametrize(("topic", "index"), [("orders", -1), ("orders", 2), ("other", 0)])
def test_a_partition_that_is_not_there(topic: str, index: int) -> None:
    assert IMAGE.partition(topic, index) is None
    assert IMAGE.absence_of(topic, index) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_that_is_elsewhere() -> None:
    assert IMAGE.partition("orders", 1) is PARTITION
    assert IMAGE.absence_of("orders", 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_overrides_of_a_resource() -> None:
    assert IMAGE.config(TOPIC_RESOURCE, "orders") == {"retention.ms": "5"}
    assert IMAGE.config(TOPIC_RESOURCE, "other") == {}


def test_a_partition_without_a_leader_says_so() -> None:
    assert PARTITION.has_leader
    assert not dataclasses.replace(PARTITION, leader=-1).has_leader


@pytest.mark.parametrize(("fenced", "stopping"), [(False, False), (True, False), (False, True), (True, True)])
def test_an_active_broker_is_neither_fenced_nor_stopping(fenced: bool, stopping: bool) -> None:
    endpoint = Endpoint("PLAINTEXT", "h", 9092, 0)
    broker = BrokerImage(1, 0, TOPIC_ID, (endpoint,), fenced=fenced, in_controlled_shutdown=stopping)
    assert broker.active is (not fenced and not stopping)
    assert broker.endpoint("PLAINTEXT") is endpoint
    assert broker.endpoint("SSL") is None


def test_internal_topics() -> None:
    assert TopicImage("__consumer_offsets", TOPIC_ID).is_internal
    assert not TOPIC.is_internal
