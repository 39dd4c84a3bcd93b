"""Reassignments: begun, changed, cancelled. How they end is in `test_partition_change.py` (rule B15)."""

from __future__ import annotations

import pytest

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.reassignments import alter, under_way
from strandline.controller.topics import delete
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage

from .conftest import after, broker, cluster
from .partitions import TOPIC, directory, happen, image_of, partition_of


@pytest.mark.parametrize(
    ("rule", "words", "before", "event", "afterwards"),
    [
        # begun
        ("to others", "", "123 isr=123 leader=1", "reassign 456", "456123 isr=123 leader=1 adding=456 removing=123"),
        ("to one other", "", "123 isr=123 leader=1", "reassign 124", "1243 isr=123 leader=1 adding=4 removing=3"),
        ("to where it is", "", "123 isr=12 leader=1", "reassign 123", "123 isr=12 leader=1"),
        ("to more", "", "12 isr=1 leader=1", "reassign 2134", "2134 isr=1 leader=1 adding=34"),
        ("to fewer, at once", "", "123 isr=123 leader=3", "reassign 12", "12 isr=12 leader=1 epoch+1"),
        ("to fewer, when it can be", "", "123 isr=23 leader=2", "reassign 12", "123 isr=23 leader=2 removing=3"),
        ("a fenced one may be meant", "", "12 isr=12 leader=1 down=4", "reassign 14",
         "142 isr=12 leader=1 adding=4 removing=2"),
        ("nobody leads", "min=2 elr", "12 elr=1 last=1 down=12", "reassign 34",
         "3412 elr=1 last=1 adding=34 removing=12"),
        # changed
        ("to others again", "", "45123 isr=123 leader=1 adding=45 removing=123", "reassign 46",
         "461235 isr=123 leader=1 adding=46 removing=1235"),
        ("back", "", "45123 isr=123 leader=1 adding=45 removing=123", "reassign 123", "123 isr=123 leader=1 epoch+1"),
        ("back, but one got in sync", "min=2", "45123 isr=14 leader=1 adding=45 removing=123", "reassign 123",
         "12345 isr=14 leader=1 removing=45"),
        ("to keep all", "", "412 isr=12 leader=1 adding=4 removing=1", "reassign 412",
         "412 isr=12 leader=1 adding=4"),
        # cancelled
        ("the order is the old one", "", "456312 isr=312 leader=3 adding=456 removing=312", "cancel",
         "312 isr=312 leader=3 epoch+1"),
        ("who got in sync goes", "", "4123 isr=1234 leader=1 adding=4 removing=3", "cancel",
         "123 isr=123 leader=1 epoch+1"),
        ("who leads goes", "", "4123 isr=1234 leader=4 adding=4 removing=3", "cancel", "123 isr=123 leader=1 epoch+1"),
        ("only those that came have all", "", "4123 isr=4 leader=4 adding=4 removing=3", "cancel",
         "INVALID_REPLICA_ASSIGNMENT"),
        ("and records may be lost", "unclean", "4123 isr=4 leader=4 adding=4 removing=3 down=1", "cancel",
         "123 isr=2 leader=2 recovering epoch+1"),
        ("and nobody is there", "unclean", "4123 isr=4 leader=4 adding=4 removing=3 down=123", "cancel",
         "INVALID_REPLICA_ASSIGNMENT"),
        ("nobody leads", "min=2 elr", "412 elr=1 last=1 adding=4 down=12", "cancel", "12 elr=1 last=1 epoch+1"),
        ("the last leader came", "min=2 elr", "412 last=4 adding=4 down=4", "cancel", "INVALID_REPLICA_ASSIGNMENT"),
        ("there is none", "", "123 isr=123 leader=1", "cancel", "NO_REASSIGNMENT_IN_PROGRESS"),
    ],
)  # fmt: skip
def test_a_reassignment(rule: str, words: str, before: str, event: str, afterwards: str) -> None:
    assert happen(before, event, words) == afterwards, rule


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([-1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], ErrorCode.INVALID_REPLICATION_FACTOR),
        ([1, 2, 3, 4], ErrorCode.INVALID_REPLICATION_FACTOR),
        ([4, 5, 6], ErrorCode.NONE),
    ],
)
@pytest.mark.parametrize("line", ["123 isr=123 leader=1", "4123 isr=123 leader=1 adding=4 removing=1"])
def test_replicas_that_can_not_be(replicas: list[int], code: ErrorCode, line: str) -> None:
    def attempt() -> None:
        alter(image_of(line), TOPIC, 0, replicas, ElectionPolicy(), allow_replication_factor_change=False)

    if code is ErrorCode.NONE:
        attempt()
        return
    with pytest.raises(KafkaError) as error:
        attempt()
    assert error.value.code is code


@pytest.mark.parametrize(("topic", "index"), [("u", 0), (TOPIC, 1), (TOPIC, -1)])
def test_a_partition_that_is_not_there(topic: str, index: int) -> None:
    with pytest.raises(KafkaError) as error:
        alter(image_of("1 isr=1 leader=1"), topic, index, None, ElectionPolicy())
    assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def moving() -> MetadataImage:
    image = image_of("123 isr=123 leader=1")
    record = alter(image, TOPIC, 0, [1, 2, 4], ElectionPolicy())
    assert record is not None
    return after(image, [record])


def test_a_new_replica_has_the_log_dir_of_a_broker_that_has_one_only() -> None:
    image = image_of("1 isr=1 leader=1")
    with_one = cluster(*image.brokers.values(), broker(5, log_dirs=(directory(5),)))
    image = MetadataImage(topics=image.topics, topics_by_id=image.topics_by_id, brokers=with_one.brokers)
    record = alter(image, TOPIC, 0, [1, 5], ElectionPolicy())
    assert record is not None
    assert record.directories == (directory(1), directory(5))


def test_what_is_under_way() -> None:
    topic = moving().topics[TOPIC]
    assert [index for index, _ in under_way(topic)] == [0]
    assert [index for index, _ in under_way(topic, [3, 0, -1])] == [0]
    assert list(under_way(image_of("1 isr=1 leader=1").topics[TOPIC])) == []


def test_a_topic_may_be_deleted_while_it_moves() -> None:
    image = moving()
    assert after(image, delete(image, image.topics[TOPIC], enabled=True)).topics == {}
    assert partition_of(image).adding_replicas == (4,)
