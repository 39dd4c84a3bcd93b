# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.cli.reassignment.reassignment_plan import PlanError
from strandline.cli.reassignment.reassignment_proposal import propose, racks_of
from strandline.ids import TopicPartition

Assignment = Mapping[TopicPartition, Sequence[int]]


def alone(*brokers: int) -> dict[int, str]:
    return {broker: f"broker {broker}" for broker in brokers}


def held(assignment: Assignment) -> Counter[int]:
    return Counter(replica for replicas in assignment.values() for replica in replicas)


def copies(current: Assignment, proposed: Assignment) -> int:
    return sum(len(set(proposed[key]) - set(current[key])) for key in proposed)


def test_what_is_even_stays():
    current = {("t", 0): [1, 2], ("t", 1): [2, 3], ("t", 2): [3, 1]}
    assert propose(current, alone(1, 2, 3)) == current


def test_a_broker_that_is_not_wanted_gives_only_what_it_has():
    current = {("t", 0): [1, 2], ("t", 1): [2, 3], ("t", 2): [3, 1]}
    proposed = propose(current, alone(1, 2, 4))
    assert held(proposed) == {1: 2, 2: 2, 4: 2}
    assert copies(current, proposed) == 2


def test_a_new_broker_gets_its_share_and_no_more():
    current = {("t", i): [1, 2] if i % 2 else [2, 1] for i in range(6)}
    proposed = propose(current, alone(1, 2, 3))
    assert held(proposed) == {1: 4, 2: 4, 3: 4}
    assert copies(current, proposed) == 4
    assert set(Counter(replicas[0] for replicas in proposed.values()).values()) == {2}


def test_leaders_are_evened_out_by_order_alone():
    current = {("t", i): [1, 2, 3] for i in range(3)}
    proposed = propose(current, alone(1, 2, 3))
    assert copies(current, proposed) == 0
    assert {replicas[0] for replicas in proposed.values()} == {1, 2, 3}


def test_small_topics_are_even_together():
    current = {(f"t{i}", 0): [1] for i in range(6)}
    assert held(propose(current, alone(1, 2, 3))) == {1: 2, 2: 2, 3: 2}


def test_racks_go_before_evenness():
    racks = {1: "a", 2: "b", 3: "b"}
    proposed = propose({("t", i): [2, 3] for i in range(4)}, racks)
    assert all(1 in replicas for replicas in proposed.values())
    assert held(proposed) == {1: 4, 2: 2, 3: 2}


def test_more_and_fewer_replicas():
    wider = propose({("t", 0): [1], ("t", 1): [2]}, {1: "a", 2: "a", 3: "b"}, 2)
    assert {1, 3} == set(wider["t", 0])
    assert {2, 3} == set(wider["t", 1])
    narrower = propose({("t", 0): [1, 2, 3], ("t", 1): [2, 3, 1]}, alone(1, 2, 3), 1)
    assert narrower == {("t", 0): [1], ("t", 1): [2]}


def test_too_few_brokers():
    with pytest.raises(PlanError, match=r"replication factor of 3 cannot be reached because only 2 broker\(s\)"):
        propose({("t", 0): [1, 2, 3]}, alone(1, 2))
    assert propose({}, {}) == {}


def test_racks():
    assert racks_of({1: "a", 2: "b"}, rack_aware=True) == {1: "a", 2: "b"}
    assert racks_of({1: "a", 2: None}, rack_aware=False) == alone(1, 2)
    assert racks_of({1: None, 2: None}, rack_aware=True) == alone(1, 2)
    with pytest.raises(PlanError, match="Add --disable-rack-aware"):
        racks_of({1: "a", 2: None}, rack_aware=True)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[dict[TopicPartition, list[int]], dict[int, str]]:
    factor = draw(st.integers(1, 3))
    wanted = draw(st.lists(st.integers(1, 7), min_size=factor, max_size=7, unique=True))
    racks = {broker: draw(st.sampled_from("abc")) for broker in wanted}
    replicas = st.lists(st.integers(1, 7), min_size=factor, max_size=factor, unique=True)
    keys = st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 5))
    return draw(st.dictionaries(keys, replicas, min_size=1)), racks


@given(clusters())
def test_any_proposal(cluster):
    current, racks = cluster
    proposed = propose(current, racks)
    assert proposed.keys() == current.keys()
    on = Counter(racks.values())
    for key, replicas in proposed.items():
        assert len(set(replicas)) == len(replicas) == len(current[key])
        assert set(replicas) <= racks.keys()
        assert len({racks[replica] for replica in replicas}) == min(len(on), len(replicas))
    assert propose(current, racks) == proposed
    assert propose(proposed, racks) == proposed


@given(clusters())
def test_without_racks_every_topic_is_even(cluster):
    current, racks = cluster
    proposed = propose(current, alone(*racks))
    for topic in {topic for topic, _ in proposed}:
        loads = held({key: replicas for key, replicas in proposed.items() if key[0] == topic})
        counts = [loads[broker] for broker in racks]
        assert max(counts) - min(counts) <= 1
