"""Histories: what each has at least, what is left out, what the budget spares, and that no nemesis is only there on
paper."""

from __future__ import annotations

import pytest

from strandline.histories import setting as settings
from strandline.histories.budget import Budget
from strandline.histories.fault_injector import KINDS
from strandline.histories.history import FAULTS, OPERATIONS, VIRTUAL_S, first_nemesis, play
from strandline.histories.nemeses import NEMESES
from strandline.histories.nemeses.nemesis import deck, durable
from strandline.histories.replica_observation import PermittedLoss
from strandline.histories.setting import ClusterTimers, HistorySetting, TopicPlan
from strandline.histories.shape import Shape

SEEDS = 400
TIMERS = ClusterTimers(1_000, 6_000, 1_000, 4_000, 4_000, 2_000, is_brisk=False)
CACHED = TopicPlan("cached", 1, 3, 2, is_synced=False, segment_bytes=4_096)
SYNCED = TopicPlan("synced", 1, 3, 2, is_synced=True, segment_bytes=4_096)


def setting(
    *topics: TopicPlan, shape: Shape | None = None, may_lose: PermittedLoss = PermittedLoss.NOTHING
) -> HistorySetting:
    return HistorySetting(shape or Shape.combined(3), TIMERS, topics, may_lose)


@pytest.mark.parametrize("seed", range(4))
def test_a_history_has_what_it_must_have(seed: int) -> None:
    outcome = play(seed)
    assert outcome.problems == []
    assert outcome.virtual_s >= VIRTUAL_S
    assert outcome.operations >= OPERATIONS
    assert len(outcome.faults) >= FAULTS
    assert outcome.nemeses[0] == first_nemesis(seed).name
    assert sum(count for _, count in outcome.coverage.of("fault")) == len(outcome.faults)


def test_what_is_left_out_shifts_nothing_else() -> None:
    whole = play(7)
    numbers = [fault.number for fault in whole.faults]
    assert len(set(numbers)) == len(numbers)
    last = whole.faults[-1]
    without = play(7, without=frozenset({last.number}))
    before = [fault for fault in whole.faults if fault.at < last.at]
    assert [fault for fault in without.faults if fault.at < last.at] == before
    assert last.number not in {fault.number for fault in without.faults}
    assert without.problems == []


def test_without_any_fault_there_is_a_history_all_the_same() -> None:
    outcome = play(3, without=frozenset(range(10_000)))
    assert outcome.faults == []
    assert outcome.problems == []


def test_the_budget_spares_the_second_page_cache() -> None:
    budget = Budget(setting(CACHED, SYNCED))
    assert budget.take_power(1)
    assert budget.take_power(1)
    assert not budget.take_power(2)
    budget.made_whole()
    assert budget.take_power(2)


def test_what_is_synced_survives_any_power_loss() -> None:
    budget = Budget(setting(SYNCED))
    assert all(budget.take_power(node_id) for node_id in (1, 2, 3))


def test_who_goes_past_the_promise_says_so() -> None:
    budget = Budget(setting(CACHED, may_lose=PermittedLoss.UNSYNCED))
    assert all(budget.take_power(node_id) for node_id in (1, 2, 3))


def test_one_disk_of_three_and_a_minority_of_the_voters() -> None:
    budget = Budget(setting(CACHED, SYNCED))
    assert budget.take_disk(1)
    assert not budget.take_disk(2)
    assert not budget.take_power(2)
    apart = Budget(setting(SYNCED, shape=Shape.apart(5, 3)))
    assert apart.take_disk(101)
    assert apart.take_disk(102)
    assert not apart.take_disk(103)


def test_not_all_replicas_rot() -> None:
    budget = Budget(setting(CACHED, SYNCED))
    assert budget.let_rot(1)
    assert budget.let_rot(2)
    assert not budget.let_rot(3)


def test_every_act_has_a_setting_and_every_seed_an_act() -> None:
    assert len(NEMESES) >= 60
    first = {first_nemesis(seed).name: seed for seed in reversed(range(10 * SEEDS))}
    for nemesis in NEMESES.values():
        assert nemesis.fits(settings.draw(first[nemesis.name], nemesis.fits))
        assert nemesis.meaning


def test_seeds_walk_through_the_acts_that_every_setting_has() -> None:
    """Those of a group or a compacted topic leave out the nemesis whose turn it would be: it comes again."""
    found = {first_nemesis(seed).name for seed in range(10 * SEEDS)}
    assert {nemesis.name for nemesis in deck()} <= found
    assert len({first_nemesis(seed).name for seed in range(100)}) > 50


def test_some_settings_have_a_group_and_some_a_compacted_topic() -> None:
    drawn = [settings.draw(seed, lambda _: True) for seed in range(SEEDS)]
    assert 0.2 < sum(each.group is not None for each in drawn) / SEEDS < 0.35
    assert 0.13 < sum(each.compaction is not None for each in drawn) / SEEDS < 0.27
    assert any(each.group or each.compaction for each in drawn[:10])
    assert {each.group.protocol for each in drawn if each.group} == {"classic", "consumer"}
    assert all(each.may_lose is PermittedLoss.NOTHING for each in drawn if each.group or each.compaction)


def test_settings_are_of_one_to_seven_nodes() -> None:
    drawn = [settings.draw(seed, lambda _: True) for seed in range(300)]
    assert {len(each.shape.ids) for each in drawn} >= {1, 2, 3, 4, 5, 7}
    assert all(len(each.shape.ids) <= 7 for each in drawn)
    assert all(topic.replicas == min(3, each.brokers) for each in drawn for topic in each.main)


def test_topics_of_one_setting_are_unlike_each_other() -> None:
    drawn = [settings.draw(seed, lambda _: True) for seed in range(300)]
    assert sum(len({topic.min_isr for topic in each.topics}) > 1 for each in drawn) > 50
    assert sum(len({topic.replicas for topic in each.topics}) > 1 for each in drawn) > 30
    assert sum(len({topic.unclean for topic in each.topics}) > 1 for each in drawn) > 10
    orders = [{replicas for topic in each.topics for replicas in topic.assignments} for each in drawn]
    assert sum(len(each) > 1 for each in orders) > 100
    assert {each.log_dirs for each in drawn} == {1, 2, 3}
    assert {each.shape.two_listeners for each in drawn} == {False, True}


def test_where_one_replica_in_sync_is_enough_it_is_on_a_device() -> None:
    """So power losses need not spare it; disks do."""
    drawn = [settings.draw(seed, lambda _: True) for seed in range(300)]
    lax = [topic for each in drawn for topic in each.topics if topic not in each.main]
    assert lax
    assert all(topic.is_synced for topic in lax)
    for each in drawn:
        if each.brokers == 3 and any(topic not in each.main and topic.min_isr == 1 for topic in each.topics):
            budget = Budget(each)
            assert not budget.take_disk(1)
            assert durable(each) is False


def test_a_topic_that_allows_unclean_elections_has_a_twin_that_does_not() -> None:
    drawn = [
        each for seed in range(300) if (each := settings.draw(seed, lambda _: True)).may_lose is PermittedLoss.ANYTHING
    ]
    assert drawn
    for each in drawn:
        first, second, *_ = each.topics
        assert (first.unclean, second.unclean) == (True, False)
        assert (first.replicas, first.min_isr, first.assignments) == (
            second.replicas,
            second.min_isr,
            second.assignments,
        )


def test_kinds_are_named_once() -> None:
    assert len(set(KINDS)) == len(KINDS)
