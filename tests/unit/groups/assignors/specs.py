"""Specs of groups to assign: built by hand, or drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from strandline.groups.assignors.spec import Assignment, GroupSpec, MemberSpec, TopicSpec
from strandline.ids import Uuid


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def topics(*partitions: int) -> dict[Uuid, TopicSpec]:
    """Topics 1, 2, … with so many partitions each."""
    return {topic_id(number): TopicSpec(f"t{number}", count) for number, count in enumerate(partitions, start=1)}


def member(
    subscribed: Iterable[int], assigned: Mapping[int, Iterable[int]] | None = None, instance_id: str | None = None
) -> MemberSpec:
    return MemberSpec(
        instance_id=instance_id,
        subscribed_topic_ids=frozenset(topic_id(number) for number in subscribed),
        assigned={topic_id(number): frozenset(partitions) for number, partitions in (assigned or {}).items()},
    )


def with_assignment(spec: GroupSpec, assignment: Assignment) -> GroupSpec:
    """The same group after the assignment was taken as its target."""
    members = {
        member_id: MemberSpec(
            found.instance_id, found.rack_id, found.subscribed_topic_ids, assignment.get(member_id, {})
        )
        for member_id, found in spec.members.items()
    }
    return GroupSpec(members, spec.topics)


def owners(assignment: Assignment) -> dict[tuple[Uuid, int], str]:
    """Who has each partition; an assertion that nobody else has it."""
    found: dict[tuple[Uuid, int], str] = {}
    for member_id, assigned in assignment.items():
        for topic, partitions in assigned.items():
            assert partitions, "a topic without partitions is left out"
            for partition in partitions:
                assert (topic, partition) not in found
                found[topic, partition] = member_id
    return found


def loads(assignment: Assignment) -> dict[str, int]:
    return {
        member_id: sum(len(partitions) for partitions in assigned.values())
        for member_id, assigned in assignment.items()
    }


def moved(before: Assignment, after: Assignment) -> int:
    """How many partitions that had an owner have another one now."""
    was, now = owners(before), owners(after)
    return sum(1 for partition, owner in was.items() if partition in now and now[partition] != owner)


def assert_complete(spec: GroupSpec, assignment: Assignment) -> None:
    """Every partition of a subscribed topic has one owner, who subscribes to it; nothing else is assigned."""
    found = owners(assignment)
    subscribed = {topic for one in spec.members.values() for topic in one.subscribed_topic_ids if topic in spec.topics}
    assert set(found) == {
        (topic, partition) for topic in subscribed for partition in range(spec.topics[topic].partitions)
    }
    assert all(topic in spec.members[owner].subscribed_topic_ids for (topic, _), owner in found.items())
    assert set(assignment) == set(spec.members)


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False, members_min: int = 1) -> GroupSpec:
    """Up to ten members and six topics; what members had before may be anything, even twice or no longer there."""
    spec_topics = topics(*draw(st.lists(st.integers(1, 12), min_size=1, max_size=6)))
    numbers = range(1, len(spec_topics) + 2)  # One more than there are: a topic that doesn't exist.
    subscriptions = st.frozensets(st.sampled_from(list(numbers)))
    shared = draw(subscriptions)
    previous = st.dictionaries(st.sampled_from(list(numbers)), st.frozensets(st.integers(0, 13)), max_size=3)
    members = {
        f"m{index}": member(
            shared if alike else draw(subscriptions), draw(previous), draw(st.none() | st.just(f"i{index}"))
        )
        for index in range(draw(st.integers(members_min, 10)))
    }
    return GroupSpec(members, spec_topics)
