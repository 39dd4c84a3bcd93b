from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.groups.assignors import by_name
from strandline.groups.assignors.spec import GroupSpec, MemberSpec
from tests.unit.groups.assignors.specs import (
    assert_complete,
    groups,
    loads,
    member,
    moved,
    owners,
    topic_id,
    topics,
    with_assignment,
)

assign = by_name("uniform").assign


def without(spec: GroupSpec, member_id: str) -> GroupSpec:
    return GroupSpec({name: found for name, found in spec.members.items() if name != member_id}, spec.topics)


def test_partitions_of_all_topics_are_dealt_out_evenly() -> None:
    assignment = assign(GroupSpec({name: member([1, 2, 3]) for name in "abc"}, topics(1, 1, 2)))
    assert sorted(loads(assignment).values()) == [1, 1, 2]


def test_members_keep_what_they_have() -> None:
    spec = GroupSpec({"a": member([1], {1: {0, 2}}), "b": member([1], {1: {1, 3}})}, topics(4))
    assert assign(spec) == {"a": {topic_id(1): {0, 2}}, "b": {topic_id(1): {1, 3}}}


def test_whoever_already_has_one_more_keeps_it() -> None:
    spec = GroupSpec(
        {"a": member([1], {1: {4}}), "b": member([1], {1: {0, 1}}), "c": member([1], {1: {2, 3}})}, topics(5)
    )
    assert moved({name: dict(found.assigned) for name, found in spec.members.items()}, assign(spec)) == 0


def test_a_topic_that_nobody_wants_any_more_is_given_up() -> None:
    spec = GroupSpec({"a": member([1], {1: {0}, 2: {0}}), "b": member([1], {2: {1}})}, topics(2, 2))
    assert assign(spec) == {"a": {topic_id(1): {0}}, "b": {topic_id(1): {1}}}


def test_new_partitions_go_to_whoever_has_fewest() -> None:
    spec = GroupSpec({"a": member([1], {1: {0, 1}}), "b": member([1], {1: {2}})}, topics(4))
    assert assign(spec) == {"a": {topic_id(1): {0, 1}}, "b": {topic_id(1): {2, 3}}}


def test_a_partition_that_two_had_goes_on_with_one() -> None:
    spec = GroupSpec({"a": member([1], {1: {0, 1}}), "b": member([1], {1: {1}})}, topics(2))
    assert assign(spec) == {"a": {topic_id(1): {0}}, "b": {topic_id(1): {1}}}


def test_members_with_other_subscriptions_leave_the_shared_topic_to_the_rest() -> None:
    spec = GroupSpec({"a": member([1, 2]), "b": member([2])}, topics(4, 4))
    assert assign(spec) == {"a": {topic_id(1): {0, 1, 2, 3}}, "b": {topic_id(2): {0, 1, 2, 3}}}


def test_an_uneven_shared_topic_moves_to_the_emptier_subscriber() -> None:
    spec = GroupSpec({"a": member([1, 2], {1: {0, 1}, 2: {0, 1}}), "b": member([2])}, topics(2, 2))
    assert loads(assign(spec)) == {"a": 2, "b": 2}


@given(groups())
def test_every_partition_has_one_owner_and_no_move_would_balance_better(spec: GroupSpec) -> None:
    assignment = assign(spec)
    assert_complete(spec, assignment)
    count = loads(assignment)
    for (topic, _), owner in owners(assignment).items():
        for member_id, found in spec.members.items():
            assert topic not in found.subscribed_topic_ids or count[owner] - count[member_id] <= 1


@given(groups(alike=True))
def test_members_who_subscribe_alike_are_within_one(spec: GroupSpec) -> None:
    count = loads(assign(spec)).values()
    assert max(count) - min(count) <= 1


@given(groups())
def test_assigning_again_changes_nothing(spec: GroupSpec) -> None:
    assignment = assign(spec)
    assert assign(with_assignment(spec, assignment)) == assignment


@given(groups(alike=True))
def test_a_member_that_joins_takes_its_share_and_nothing_else_moves(spec: GroupSpec) -> None:
    before = assign(spec)
    settled = with_assignment(spec, before)
    subscribed = next(iter(spec.members.values())).subscribed_topic_ids
    after = assign(GroupSpec({**settled.members, "new": MemberSpec(subscribed_topic_ids=subscribed)}, spec.topics))
    assert moved(before, after) == loads(after)["new"] == len(owners(after)) // len(after)


@given(groups(alike=True, members_min=2), st.data())
def test_when_a_member_leaves_only_what_it_had_moves(spec: GroupSpec, data: st.DataObject) -> None:
    before = assign(spec)
    leaver = data.draw(st.sampled_from(sorted(spec.members)))
    after = assign(without(with_assignment(spec, before), leaver))
    assert moved(before, after) == loads(before)[leaver]


MANY_MEMBERS, MANY_PARTITIONS = 1_000, 10_000


def large(topic_count: int, kinds: int) -> GroupSpec:
    """A thousand members of so many kinds, ten thousand partitions in so many topics;
    each kind skips some of the topics.
    """
    spec_topics = topics(*[MANY_PARTITIONS // topic_count] * topic_count)
    numbers = range(1, topic_count + 1)
    subscribed = [
        frozenset(topic_id(number) for number in numbers if kinds == 1 or number % kinds != kind)
        for kind in range(kinds)
    ]
    members = {
        f"m{index:04}": MemberSpec(subscribed_topic_ids=subscribed[index % kinds]) for index in range(MANY_MEMBERS)
    }
    return GroupSpec(members, spec_topics)


@pytest.mark.parametrize("name", ["uniform", "range"])
@pytest.mark.parametrize(("topic_count", "kinds"), [(1, 1), (100, 1), (100, 7), (1000, 1), (1000, 7)])
def test_a_thousand_members_and_ten_thousand_partitions_take_well_under_a_second(
    name: str, topic_count: int, kinds: int
) -> None:
    spec = large(topic_count, kinds)
    started = time.process_time()
    assignment = by_name(name).assign(spec)
    settled = by_name(name).assign(with_assignment(without(spec, "m0500"), assignment))
    assert time.process_time() - started < 1.0, "both together"
    assert len(owners(assignment)) == len(owners(settled)) == MANY_PARTITIONS


SHOW = """
from strandline.groups.assignors import by_name
from tests.unit.groups.assignors.specs import member, topics
from strandline.groups.assignors.spec import GroupSpec

members = {f"m{n}": member({1, 2, 3} if n % 2 else {1, 2, 3, 4, 5}, {5: {n, n + 1}}) for n in range(9)}
for name in ("uniform", "range"):
    assignment = by_name(name).assign(GroupSpec(members, topics(7, 5, 9, 4, 11)))
    print([(m, [(str(t), sorted(p)) for t, p in sorted(a.items())]) for m, a in sorted(assignment.items())])
"""


def test_the_hash_seed_does_not_matter() -> None:
    shown = {
        subprocess.run(
            [sys.executable, "-c", SHOW],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(shown) == 1
