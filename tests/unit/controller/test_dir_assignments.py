"""Replicas in log dirs: known to the controller, and followed if the log dir is lost."""

from __future__ import annotations

import pytest

from strandline.controller.dir_assignments import ReplicaDirAssignment, assign
from strandline.controller.election_policy import ElectionPolicy
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid

from .conftest import after
from .partitions import TOPIC_ID, directory, image_of, line_of, partition_of, policy, records_of, registration


def test_a_replica_that_is_moved_keeps_its_place() -> None:
    image = image_of("123 isr=12 leader=1")
    moved = partition_of(after(image, records_of(image, "place 1", ElectionPolicy())))
    assert moved.directories == (directory(1, 1), directory(2), directory(3))
    assert line_of(moved) == "123 isr=12 leader=1"
    assert assign(image, 1, 1, [ReplicaDirAssignment(directory(1), TOPIC_ID, 0)], ElectionPolicy()) == (
        [],
        [ErrorCode.NONE],
    )


def test_a_replica_in_a_lost_log_dir_leaves() -> None:
    image = image_of("123 isr=12 leader=1")
    records, codes = assign(image, 1, 1, [ReplicaDirAssignment(directory(1, 7), TOPIC_ID, 0)], ElectionPolicy())
    assert codes == [ErrorCode.NONE]
    left = partition_of(after(image, records))
    assert line_of(left) == "123 isr=2 leader=2 epoch+1"
    assert left.directories[0] == directory(1, 7)


def test_a_replica_that_began_anew_elsewhere_is_not_eligible() -> None:
    rules = policy("min=2 elr")
    image = image_of("123 isr=1 leader=1 elr=2")
    kept = partition_of(after(image, records_of(image, "place 2", rules)))
    assert line_of(kept) == "123 isr=1 leader=1 elr=2"
    without_its_disk = after(image, [registration(2, log_dirs=(directory(2, 1),))])
    anew = partition_of(after(without_its_disk, records_of(without_its_disk, "place 2", rules)))
    assert line_of(anew) == "123 isr=1 leader=1"


def test_refusals() -> None:
    image = image_of("123 isr=12 leader=1")
    wanted = [
        ReplicaDirAssignment(directory(4), Uuid(b"x" * 16), 0),
        ReplicaDirAssignment(directory(4), TOPIC_ID, 1),
        ReplicaDirAssignment(directory(4), TOPIC_ID, -1),
        ReplicaDirAssignment(directory(4), TOPIC_ID, 0),
    ]
    assert assign(image, 4, 4, wanted, ElectionPolicy()) == (
        [],
        [
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ],
    )
    with pytest.raises(KafkaError) as error:
        assign(image, 4, 3, wanted, ElectionPolicy())
    assert error.value.code is ErrorCode.STALE_BROKER_EPOCH
