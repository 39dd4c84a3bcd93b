"""A group moves to the consumer protocol and back while it consumes, one consumer at a time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.errors import ErrorCode
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from tests.unit.groups.driver import Driver
from tests.unit.groups.migration.consumers import (
    GROUP,
    ClassicConsumer,
    Consumer,
    Crowd,
    ModernConsumer,
    driver_of,
    image_of,
)

TOPICS = ("a", "b")


def settled(driver: Driver, count: int, *, eager: bool = False, crowd: Crowd | None = None) -> Crowd:
    """A classic group of so many consumers."""
    crowd = crowd or Crowd(driver)
    crowd.add(*(ClassicConsumer(driver, f"c{index}", TOPICS, eager=eager) for index in range(count)))
    crowd.settle()
    return crowd


def group_of(driver: Driver) -> ClassicGroup | ConsumerGroup:
    return driver.shard.groups[GROUP]


@pytest.mark.parametrize("eager", [False, True])
def test_a_group_is_upgraded_consumer_by_consumer_and_back(eager: bool) -> None:
    driver = driver_of(image_of(a=7, b=5))
    crowd = settled(driver, 3, eager=eager)
    assert isinstance(group_of(driver), ClassicGroup)
    for index in range(3):
        crowd.remove(crowd.consumers[0])
        crowd.add(ModernConsumer(driver, f"n{index}", TOPICS))
        crowd.settle()
        assert isinstance(group_of(driver), ConsumerGroup)
    assert all(isinstance(consumer, ModernConsumer) for consumer in crowd.consumers)
    for index in range(3):
        crowd.remove(crowd.consumers[0])
        crowd.add(ClassicConsumer(driver, f"d{index}", TOPICS, eager=eager))
        crowd.settle()
        assert isinstance(group_of(driver), ConsumerGroup if index < 2 else ClassicGroup)
    assert group_of(driver).state_name() == "Stable"


@pytest.mark.parametrize("eager", [False, True])
def test_static_consumers_go_over_and_back_in_place_without_moving_a_partition(eager: bool) -> None:
    driver = driver_of(image_of(a=6, b=3))
    crowd = Crowd(driver)
    crowd.add(
        *(ClassicConsumer(driver, f"c{index}", TOPICS, eager=eager, instance_id=f"i{index}") for index in range(3))
    )
    crowd.settle()
    modern = [ModernConsumer(driver, f"n{index}", TOPICS, instance_id=f"i{index}") for index in range(3)]
    for old, new in zip(list(crowd.consumers), modern, strict=True):
        had = set(old.owned)
        crowd.kill(old)
        crowd.add(new)
        crowd.settle()
        assert new.owned == had or eager, "range gives each topic out from the start, uniform does not"
    for index, old_modern in enumerate(modern):
        had = set(old_modern.owned)
        old_modern.leave_for_a_while()
        crowd.consumers.remove(old_modern)
        back = ClassicConsumer(driver, f"d{index}", TOPICS, eager=eager, instance_id=f"i{index}")
        crowd.add(back)
        crowd.settle()
        assert back.owned == had
        assert isinstance(group_of(driver), ConsumerGroup if index < 2 else ClassicGroup)
    assert group_of(driver).state_name() == "Stable"


@given(seed=st.integers(0, 2**32), eager=st.booleans(), moves=st.lists(st.sampled_from("umdk"), min_size=3, max_size=8))
@settings(max_examples=40, deadline=None)
def test_no_partition_ever_has_two_owners_whatever_the_order(seed: int, eager: bool, moves: list[str]) -> None:
    """Consumers come, leave and die under either protocol, act in any order and not each in every round."""
    randomness = random.Random(seed)

    def some(consumers: list[Consumer]) -> list[Consumer]:
        return randomness.sample(consumers, randomness.randint(1, len(consumers))) if consumers else []

    driver = driver_of(image_of(a=5, b=4))
    crowd = Crowd(driver, some)
    crowd.add(*(ClassicConsumer(driver, f"c{index}", TOPICS, eager=eager) for index in range(3)))
    for number, move in enumerate(moves):
        for _ in range(randomness.randint(0, 12)):
            crowd.round()
        gone = randomness.choice(crowd.consumers)
        if move == "k":
            crowd.kill(gone)
        else:
            crowd.remove(gone)
        if move == "u":
            crowd.add(ModernConsumer(driver, f"n{number}", TOPICS))
        else:
            crowd.add(ClassicConsumer(driver, f"d{number}", TOPICS, eager=eager))
        crowd.check()
    crowd.settle(rounds_max=2000)


def test_a_coordinator_that_takes_over_in_between_knows_who_speaks_what() -> None:
    driver = driver_of(image_of(a=4, b=2))
    crowd = settled(driver, 3)
    crowd.remove(crowd.consumers[0])
    crowd.add(ModernConsumer(driver, "n", TOPICS))
    for _ in range(4):
        crowd.round()
        driver.reload()
    crowd.settle()
    group = group_of(driver)
    assert isinstance(group, ConsumerGroup)
    assert group.classic_members_count == 2
    crowd.remove(crowd.consumers[-1])
    driver.reload()
    crowd.settle()
    assert isinstance(group_of(driver), ClassicGroup)


def test_a_classic_consumer_that_dies_is_fenced_when_its_session_ends_and_the_rest_takes_over() -> None:
    driver = driver_of(image_of(a=4, b=2))
    crowd = settled(driver, 2)
    crowd.add(ModernConsumer(driver, "n", TOPICS))
    crowd.settle()
    crowd.kill(crowd.consumers[0])
    crowd.settle(rounds_max=100)
    assert len(group_of(driver).members) == 2


def test_a_classic_consumer_that_does_not_join_when_told_to_is_fenced_in_the_end() -> None:
    """Its heartbeats keep its session, but not its place in a rebalance."""
    driver = driver_of(image_of(a=4, b=2))
    crowd = settled(driver, 2)
    stubborn = crowd.consumers[0]
    assert isinstance(stubborn, ClassicConsumer)
    crowd.consumers.remove(stubborn)
    crowd.add(ModernConsumer(driver, "n", TOPICS))
    for _ in range(310):
        stubborn._heartbeat()
        crowd.round()
    assert stubborn.heard[-1] is ErrorCode.UNKNOWN_MEMBER_ID
    assert stubborn.member_id == ""
    crowd.settle()
    assert len(group_of(driver).members) == 2


def test_the_last_modern_consumer_dies_and_the_group_is_classic_again() -> None:
    driver = driver_of(image_of(a=4, b=2))
    crowd = settled(driver, 2)
    modern = ModernConsumer(driver, "n", TOPICS)
    crowd.add(modern)
    crowd.settle()
    crowd.kill(modern)
    crowd.settle(rounds_max=100)
    assert isinstance(group_of(driver), ClassicGroup)
