"""AlterPartition's answers: who may change an ISR, and to what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from strandline.controller.alter_partition import ANY_EPOCH, NewIsr, alter
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.partition_change import RECOVERING
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid

from .conftest import after
from .partitions import LEADER_EPOCH, PARTITION_EPOCH, TOPIC_ID, happen, image_of, partition_of

IMAGE = image_of("1234 isr=12 leader=1 down=4 stopping=3")
GOOD = NewIsr(TOPIC_ID, 0, LEADER_EPOCH, PARTITION_EPOCH, [(1, 1), (2, 2)])


def code_of(wanted: NewIsr, sender: int = 1, image: Any = IMAGE) -> ErrorCode:
    records, (answer,) = alter(image, sender, sender, [wanted], ElectionPolicy())
    if isinstance(answer, ErrorCode):
        assert records == []
        return answer
    return ErrorCode.NONE


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"topic_id": Uuid(b"x" * 16)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"partition_index": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition_index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": LEADER_EPOCH + 1}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": PARTITION_EPOCH + 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": LEADER_EPOCH - 1, "partition_epoch": PARTITION_EPOCH + 1}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": LEADER_EPOCH - 1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": PARTITION_EPOCH - 1}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"isr": [(1, 1), (5, 5)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, 1), (1, 1)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(2, 2)]}, ErrorCode.INVALID_REQUEST),
        ({"isr": []}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, 1)], "leader_recovery_state": RECOVERING}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, 1)], "leader_recovery_state": 2}, ErrorCode.INVALID_REQUEST),
        ({"isr": [(1, 1), (4, 4)]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [(1, 1), (3, 3)]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [(1, 1), (2, 1)]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [(1, 1), (2, 3)]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"isr": [(1, 1), (2, ANY_EPOCH)]}, ErrorCode.NONE),
    ],
)
def test_b4_who_may_change_it_to_what(wanted: dict[str, Any], code: ErrorCode) -> None:
    assert code_of(GOOD._replace(**wanted)) is code


def test_b4_only_the_leader_may() -> None:
    assert code_of(GOOD, sender=2) is ErrorCode.INVALID_REQUEST
    # Who is not the leader is told so before its partition epoch is looked at, but after its leader epoch.
    assert code_of(GOOD._replace(partition_epoch=PARTITION_EPOCH - 1), sender=2) is ErrorCode.INVALID_REQUEST
    assert code_of(GOOD._replace(leader_epoch=LEADER_EPOCH - 1), sender=2) is ErrorCode.FENCED_LEADER_EPOCH


def test_b4_a_recovering_leader_is_alone() -> None:
    image = image_of("123 isr=1 leader=1 recovering")
    assert code_of(GOOD._replace(leader_recovery_state=RECOVERING), image=image) is ErrorCode.INVALID_REQUEST
    assert code_of(GOOD._replace(isr=[(1, 1)], leader_recovery_state=RECOVERING), image=image) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("before", "event", "afterwards"),
    [
        ("123 isr=1 leader=1 recovering", "isr 1", "123 isr=1 leader=1"),
        ("123 isr=1 leader=1 recovering", "isr 12", "123 isr=12 leader=1"),
        ("123 isr=1 leader=1 recovering", "isr 1 recovering", "123 isr=1 leader=1 recovering"),
        ("123 isr=12 leader=1", "isr 12", "123 isr=12 leader=1"),
        ("123 isr=12 leader=1 stopping=2", "isr 123", "INELIGIBLE_REPLICA"),
        ("412 isr=12 leader=1 adding=4 removing=1", "isr 124", "42 isr=24 leader=4 epoch+1"),
    ],
)
def test_what_follows(before: str, event: str, afterwards: str) -> None:
    assert happen(before, event) == afterwards


@pytest.mark.parametrize(("sender", "epoch"), [(1, 2), (1, -1), (9, 9)])
def test_an_older_incarnation_is_not_heard(sender: int, epoch: int) -> None:
    with pytest.raises(KafkaError) as error:
        alter(IMAGE, sender, epoch, [GOOD], ElectionPolicy())
    assert error.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_a_leader_that_its_own_isr_deposes_is_told_so() -> None:
    image = image_of("412 isr=12 leader=1 adding=4 removing=1")
    records, answers = alter(image, 1, 1, [GOOD._replace(isr=[(1, 1), (2, 2), (4, 4)])], ElectionPolicy())
    assert answers == [ErrorCode.NEW_LEADER_ELECTED]
    assert partition_of(after(image, records)).leader == 4


def test_the_answer_is_the_partition_as_it_is_now() -> None:
    _, (same, shrunk) = alter(IMAGE, 1, 1, [GOOD, GOOD._replace(isr=[(1, 1)])], ElectionPolicy())
    assert same == replace(partition_of(IMAGE), isr=(1,), partition_epoch=PARTITION_EPOCH + 1)
    assert shrunk == same


def test_the_second_of_two_changes_came_too_late() -> None:
    records, answers = alter(IMAGE, 1, 1, [GOOD._replace(isr=[(1, 1)]), GOOD], ElectionPolicy())
    assert len(records) == 1
    assert answers[1] is ErrorCode.INVALID_UPDATE_VERSION
