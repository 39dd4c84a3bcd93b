from __future__ import annotations

import contextlib

import pytest

from strandline.histories.judges.replication.shrunk_only_late import ShrunkOnlyLate
from strandline.wire.fetch import FetchedPartition

from .stage import Stage, broken, stage

RECORDS = FetchedPartition(0, 0, 0, records=b"r")


def level_at_20() -> Stage:
    """Broker 3 has everything at its Fetch of second 20; then the leader's log grows. The lag is ten seconds."""
    story = stage(ShrunkOnlyLate)
    story.append(1, "a")
    story.now = 20.1
    story.fetch(3, 1, at=20.0)
    story.append(1, "b")
    return story


def test_one_that_was_level_long_ago_may_go() -> None:
    story = level_at_20()
    story.now = 30.2
    story.propose(1, n1=1, n2=2)


def test_one_of_which_nothing_is_known_may_go() -> None:
    story = level_at_20()
    story.propose(1, n1=1, n3=3)


def test_one_that_was_level_just_now_may_not() -> None:
    story = level_at_20()
    story.now = 22.0
    with broken(ShrunkOnlyLate):
        story.propose(1, n1=1, n2=2)


def test_what_is_written_during_a_fetch_is_no_lag() -> None:
    story = level_at_20()
    for second in range(21, 40):
        story.now = second
        story.fetch(3, second - 20, at=second - 0.1, answer=RECORDS)
        story.append(1, "c")
    with broken(ShrunkOnlyLate):
        story.propose(1, n1=1, n2=2)


def test_a_fetch_that_crossed_the_records_does_not_make_it_late() -> None:
    """It does not name the partition, whose records were sent just before it came."""
    story = level_at_20()
    story.now = 25.0
    story.fetch(3, 1, at=24.9, answer=RECORDS)
    story.append(1, "c")
    story.fetch(3, 1, at=24.95, is_named=False)
    story.append(1, "d")
    story.now = 33.0
    story.fetch(3, 2, at=32.9, answer=RECORDS)
    with broken(ShrunkOnlyLate):
        story.propose(1, n1=1, n2=2)


def test_one_that_falls_behind_ever_more_may_go() -> None:
    story = level_at_20()
    for second in range(21, 40):
        story.now = second
        story.append(1, "c", "d", "e")
        story.fetch(3, second - 20, at=second - 0.1, answer=RECORDS)
    story.propose(1, n1=1, n2=2)


@pytest.mark.parametrize("answer", [FetchedPartition(0, 74), FetchedPartition(0, 0, diverging_epoch=(0, 0))])
def test_a_fetch_that_was_not_served_does_not_count(answer: FetchedPartition) -> None:
    story = stage(ShrunkOnlyLate)
    story.now = 20.0
    story.fetch(3, 0, at=19.9, answer=answer)
    story.append(1, "a")
    story.propose(1, n1=1, n2=2)


def test_one_that_asks_beyond_the_leaders_end_is_not_level() -> None:
    """It will hear that their logs part; a Fetch that a newer one of the session overtakes says nothing of it."""
    story = stage(ShrunkOnlyLate)
    story.now = 20.0
    story.fetch(3, 9, at=19.9)
    story.append(1, "a")
    story.propose(1, n1=1, n2=2)


def test_a_fetch_in_another_epoch_does_not_count() -> None:
    story = stage(ShrunkOnlyLate)
    story.now = 20.0
    story.fetch(3, 0, at=19.9, epoch=4)
    story.append(1, "a")
    story.propose(1, n1=1, n2=2)


@pytest.mark.parametrize("is_registered", [False, True])
def test_a_fetch_of_an_incarnation_that_the_leader_does_not_know_does_not_count(*, is_registered: bool) -> None:
    """The follower has restarted; the leader may have an older image."""
    story = level_at_20()
    story.now = 30.2
    story.members[3].broker_epoch = 33
    if is_registered:
        story.publish(brokers={3: 33})
    story.fetch(3, 2, at=30.1)
    with broken(ShrunkOnlyLate) if is_registered else contextlib.nullcontext():
        story.propose(1, n1=1, n2=2)
