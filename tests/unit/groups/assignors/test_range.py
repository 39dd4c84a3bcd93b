from __future__ import annotations

from hypothesis import given

from strandline.groups.assignors import by_name
from strandline.groups.assignors.spec import GroupSpec
from tests.unit.groups.assignors.specs import assert_complete, groups, member, topic_id, topics

assign = by_name("range").assign


def test_ranges_follow_one_another_and_the_first_members_have_one_more() -> None:
    assignment = assign(GroupSpec({"c": member([1]), "a": member([1]), "b": member([1])}, topics(8)))
    assert assignment == {"a": {topic_id(1): {0, 1, 2}}, "b": {topic_id(1): {3, 4, 5}}, "c": {topic_id(1): {6, 7}}}


def test_topics_with_as_many_partitions_are_co_partitioned() -> None:
    assignment = assign(GroupSpec({name: member([1, 2]) for name in "abc"}, topics(7, 7)))
    for assigned in assignment.values():
        assert assigned[topic_id(1)] == assigned[topic_id(2)]


def test_members_beyond_the_partitions_get_nothing() -> None:
    assignment = assign(GroupSpec({name: member([1]) for name in "abc"}, topics(2)))
    assert assignment == {"a": {topic_id(1): {0}}, "b": {topic_id(1): {1}}, "c": {}}


def test_each_topic_is_spread_over_those_who_subscribe_to_it() -> None:
    assignment = assign(GroupSpec({"a": member([1]), "b": member([1, 2]), "c": member([2])}, topics(4, 3)))
    assert assignment == {
        "a": {topic_id(1): {0, 1}},
        "b": {topic_id(1): {2, 3}, topic_id(2): {0, 1}},
        "c": {topic_id(2): {2}},
    }


def test_static_members_go_first_and_keep_their_place_under_a_new_member_id() -> None:
    before = assign(GroupSpec({"m1": member([1]), "m9": member([1], instance_id="i")}, topics(4)))
    after = assign(GroupSpec({"m1": member([1]), "m5": member([1], instance_id="i")}, topics(4)))
    assert before["m9"] == after["m5"] == {topic_id(1): {0, 1}}


def test_a_group_without_members_or_topics() -> None:
    assert assign(GroupSpec({}, topics(3))) == {}
    assert assign(GroupSpec({"a": member([])}, topics(3))) == {"a": {}}
    assert assign(GroupSpec({"a": member([2])}, topics(3))) == {"a": {}}, "topic 2 does not exist"


@given(groups())
def test_every_partition_has_one_owner_and_each_topic_is_balanced(spec: GroupSpec) -> None:
    assignment = assign(spec)
    assert_complete(spec, assignment)
    for topic in spec.topics:
        counts = [
            len(assignment[member_id].get(topic, ()))
            for member_id, found in spec.members.items()
            if topic in found.subscribed_topic_ids
        ]
        assert not counts or max(counts) - min(counts) <= 1


@given(groups(alike=True))
def test_the_order_of_members_and_topics_does_not_matter(spec: GroupSpec) -> None:
    backwards = GroupSpec(
        dict(sorted(spec.members.items(), reverse=True)), dict(sorted(spec.topics.items(), reverse=True))
    )
    assert assign(spec) == assign(backwards)
