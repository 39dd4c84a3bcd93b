from __future__ import annotations

import pytest

from strandline.errors import ErrorCode
from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from tests.unit.groups.driver import Driver
from tests.unit.groups.migration.consumers import (
    GROUP,
    ClassicConsumer,
    Crowd,
    ModernConsumer,
    assigned_in,
    driver_of,
    image_of,
)

TOPICS = ("a", "b")


def mixed(**settings: str) -> tuple[Driver, Crowd, ModernConsumer]:
    """Two consumers of the classic protocol and one of the other, in a group that is settled."""
    driver = driver_of(image_of(a=8, b=4), **settings)
    crowd = Crowd(driver)
    modern = ModernConsumer(driver, "n", TOPICS, instance_id="i")
    crowd.add(ClassicConsumer(driver, "c1", TOPICS), ClassicConsumer(driver, "c2", TOPICS), modern)
    crowd.settle()
    return driver, crowd, modern


def classic_group(driver: Driver) -> ClassicGroup:
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ClassicGroup)
    return group


def test_when_the_last_of_the_consumer_protocol_leaves_the_rest_is_a_classic_group_that_rebalances() -> None:
    driver, crowd, modern = mixed()
    owned = {consumer.name: set(consumer.owned) for consumer in crowd.consumers}
    epoch = driver.shard.groups[GROUP].group_epoch  # type: ignore[union-attr]
    crowd.remove(modern)
    group = classic_group(driver)
    assert (group.state_name(), group.generation_id, group.protocol_type) == ("PreparingRebalance", epoch, "consumer")
    assert {member.client_id for member in group.members.values()} == {"c1", "c2"}
    for member in group.members.values():
        assert assigned_in(member.assignment) == owned[member.client_id]
    crowd.round()
    for consumer in crowd.consumers:
        assert isinstance(consumer, ClassicConsumer)
        assert consumer.heard[-1] is ErrorCode.REBALANCE_IN_PROGRESS, "its generation is still good"
        assert consumer.owned == owned[consumer.name]
    crowd.settle()
    assert classic_group(driver).state_name() == "Stable"


def test_a_coordinator_that_takes_over_before_the_rebalance_has_them_join_again() -> None:
    driver, crowd, modern = mixed()
    crowd.remove(modern)
    driver.reload()
    assert classic_group(driver).state_name() == "Stable"
    crowd.settle()
    assert classic_group(driver).state_name() == "Stable"


def test_a_coordinator_that_takes_over_before_their_assignment_has_those_who_joined_join_again() -> None:
    """They are in the next generation, of which nothing was written."""
    driver, crowd, modern = mixed()
    crowd.remove(modern)
    driver.hold()
    while classic_group(driver).state_name() != "CompletingRebalance":
        crowd.round()
    driver.reload(loses_uncommitted=True)
    crowd.settle()
    assert classic_group(driver).state_name() == "Stable"


def test_an_upgrade_right_after_a_downgrade_does_not_forget_what_members_still_have() -> None:
    driver, crowd, modern = mixed()
    crowd.add(ModernConsumer(driver, "n2", TOPICS))
    crowd.consumers[-1].step()  # a new target, which nobody has acted on
    crowd.remove(crowd.consumers[-1])
    crowd.remove(modern)
    crowd.add(ModernConsumer(driver, "n3", TOPICS))
    crowd.consumers[-1].step()
    crowd.check()
    crowd.settle()


def test_a_member_that_does_not_come_to_the_rebalance_is_dropped_by_its_session() -> None:
    driver, crowd, modern = mixed()
    crowd.remove(modern)
    crowd.kill(crowd.consumers[0])
    crowd.settle(rounds_max=100)
    assert len(classic_group(driver).members) == 1


@pytest.mark.parametrize("settings", [{"group_consumer_migration_policy": "upgrade"}, {"group_max_size": "1"}])
def test_without_leave_to_do_so_it_stays_a_group_of_the_consumer_protocol(settings: dict[str, str]) -> None:
    driver = driver_of(image_of(a=4, b=2), **settings)
    crowd = Crowd(driver)
    modern = ModernConsumer(driver, "n", TOPICS)
    crowd.add(modern)
    crowd.settle()
    crowd.add(ClassicConsumer(driver, "c1", TOPICS), ClassicConsumer(driver, "c2", TOPICS))
    crowd.settle()
    crowd.remove(modern)
    crowd.settle()
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert group.classic_members_count == 2


def test_a_group_that_nobody_is_left_in_is_not_downgraded() -> None:
    driver = driver_of(image_of(a=4, b=2))
    modern = ModernConsumer(driver, "n", TOPICS)
    modern.step()
    modern.leave()
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert group.is_empty()


def test_nothing_changes_if_the_records_are_refused_and_it_is_tried_again() -> None:
    driver, crowd, modern = mixed()
    crowd.kill(modern)
    driver.refuses = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(60):
        crowd.round()
    group = driver.shard.groups[GROUP]
    assert isinstance(group, ConsumerGroup)
    assert modern.member_id in group.members
    driver.refuses = None
    crowd.settle(rounds_max=100)
    assert classic_group(driver).state_name() == "Stable"


def test_the_downgrade_is_there_before_its_records_are_committed() -> None:
    """As with every classic group; nobody is told of an assignment that isn't committed."""
    driver, crowd, modern = mixed()
    driver.hold()
    crowd.remove(modern)
    assert classic_group(driver).state_name() == "PreparingRebalance"
    for _ in range(5):
        crowd.round()
    driver.commit()
    crowd.settle()


def test_the_last_static_member_comes_back_as_a_classic_one_and_nobody_rebalances() -> None:
    driver, crowd, modern = mixed()
    owned = {consumer.name: set(consumer.owned) for consumer in crowd.consumers}
    modern.leave_for_a_while()
    crowd.consumers.remove(modern)
    back = ClassicConsumer(driver, "back", TOPICS, instance_id="i")
    generation_id = crowd.consumers[0].generation_id  # type: ignore[attr-defined]
    crowd.add(back)
    crowd.settle()
    assert back.owned == owned["n"]
    group = classic_group(driver)
    assert (group.state_name(), group.generation_id) == ("Stable", generation_id)
    assert set(group.static_members.values()) == {back.member_id}
    assert back.member_id != modern.member_id


def test_the_last_static_member_comes_back_with_other_topics_and_all_rebalance() -> None:
    driver, crowd, modern = mixed()
    modern.leave_for_a_while()
    crowd.consumers.remove(modern)
    back = ClassicConsumer(driver, "back", ["b"], instance_id="i")
    crowd.add(back)
    crowd.settle()
    assert {topic for topic, _ in back.owned} == {"b"}
    assert classic_group(driver).state_name() == "Stable"


def test_the_last_static_member_comes_back_while_others_have_not_got_their_targets_and_all_rebalance() -> None:
    """A member of a stable classic group would never hear of what it is still to get."""
    driver, crowd, modern = mixed()
    crowd.consumers.remove(modern)
    late = ClassicConsumer(driver, "late", TOPICS)
    crowd.add(late)
    for _ in range(12):
        crowd.round()
    assert (late.owned, late.heard[-1]) == (set(), ErrorCode.NONE), "a part of it is with the one that does not act"
    modern.leave_for_a_while()
    crowd.add(ClassicConsumer(driver, "back", TOPICS, instance_id="i"))
    crowd.settle()
    assert len(late.owned) == 3
    assert classic_group(driver).state_name() == "Stable"


def test_a_former_self_of_the_static_member_is_fenced() -> None:
    driver, crowd, modern = mixed()
    modern.leave_for_a_while()
    crowd.consumers.remove(modern)
    back = ClassicConsumer(driver, "back", TOPICS, instance_id="i")
    back.member_id = "somebody"
    back.step()
    assert back._joining is not None
    assert back._joining.code is ErrorCode.FENCED_INSTANCE_ID
    assert isinstance(driver.shard.groups[GROUP], ConsumerGroup)
