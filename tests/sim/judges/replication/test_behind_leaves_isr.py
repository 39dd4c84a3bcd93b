from __future__ import annotations

from strandline.histories.judges.replication.behind_leaves_isr import BehindLeavesIsr

from .stage import Stage, broken, stage


def behind(seconds: int) -> Stage:
    """Broker 3 gets nothing while the leader's log grows every second. The lag is ten seconds."""
    story = stage(BehindLeavesIsr)
    for _ in range(seconds):
        write(story, 1, 2)
    return story


def write(story: Stage, *broker_ids: int) -> None:
    story.now += 1
    for broker_id in broker_ids:
        story.append(broker_id, "a")


def test_one_that_is_behind_has_its_time() -> None:
    behind(22)


def test_one_that_is_behind_for_too_long_must_go() -> None:
    with broken(BehindLeavesIsr):
        behind(30)


def test_it_is_enough_to_wish_it() -> None:
    story = behind(20)
    story.propose(1, n1=1, n2=2)
    for _ in range(20):
        write(story, 1, 2)


def test_one_that_lags_a_little_may_stay() -> None:
    story = behind(10)
    for _ in range(40):
        write(story, 1, 2, 3)


def test_a_new_leader_has_its_time() -> None:
    story = behind(20)
    story.publish(leader_epoch=1, partition_epoch=1)
    story.lead(1, 1)
    for _ in range(20):
        write(story, 1, 2)


def rejoined(seconds: int) -> None:
    """Broker 3 was out of the ISR for long, joins with what is committed, and is silent again."""
    story = stage(BehindLeavesIsr)
    story.partition(1).leadership.isr.commit((1, 2), 1)
    for _ in range(30):
        write(story, 1, 2)
    story.partition(1).leadership.isr.commit((1, 2, 3), 2)
    for _ in range(seconds):
        write(story, 1, 2)


def test_one_that_joins_has_its_time_from_then_on() -> None:
    rejoined(20)


def test_one_that_has_joined_must_go_after_it_too() -> None:
    with broken(BehindLeavesIsr):
        rejoined(30)
