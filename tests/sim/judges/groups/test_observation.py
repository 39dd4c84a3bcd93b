"""What is known of a group beside the judges: its newest coordinator, whom that has served, and what begins anew."""

from __future__ import annotations

from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.histories.coverage import GROUP
from strandline.histories.judges.groups.two_owners import TwoOwners

from .stage import stage


def test_the_newest_coordinator_and_whom_it_has_served() -> None:
    story = stage(TwoOwners)
    story.commit(1, who="a")
    story.sync("b", 1)
    assert story.observed.coordinator == (1, 1)
    assert story.observed.served_at.keys() == {"a", "b"}
    story.coordinate(2, 2)
    story.commit(2, who="a", node_id=2)
    story.commit(3, who="b", node_id=1)
    assert story.observed.coordinator == (2, 2)
    assert story.observed.served_at.keys() == {"a"}
    assert story.replicas.observed.coverage[GROUP, "coordinator change"] == 1


def test_refusals_serve_nobody() -> None:
    story = stage(TwoOwners)
    story.commit(1, who="a", code=27)
    assert story.observed.coordinator is None
    assert story.replicas.observed.coverage[GROUP, "commit refused: REBALANCE_IN_PROGRESS"] == 1


def test_a_new_generation_is_a_rebalance() -> None:
    story = stage(TwoOwners)
    story.sync("a", 1, 0)
    story.sync("b", 1)
    assert story.replicas.observed.coverage[GROUP, "rebalance"] == 0
    story.sync("a", 2, 0)
    story.sync("b", 2)
    assert story.replicas.observed.coverage[GROUP, "rebalance"] == 1
    assert story.observed.newest_generation == 2


def test_generations_begin_anew_when_the_group_does() -> None:
    story = stage(TwoOwners)
    see = story.observed._see_group
    see(ConsumerGroup("g"))
    story.heartbeat("a", 1, [0])
    see(ClassicGroup("g"))  # it was empty
    story.sync("b", 1, 0)
    see(None)
    story.sync("c", 1, 0)
    assert story.observed.newest_generation == 1
