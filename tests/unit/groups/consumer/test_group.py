"""A group of the consumer protocol that is not as it should be finds that out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.groups.consumer.group import ConsumerGroup, ResolvedRegularExpression
from strandline.groups.consumer.member import ConsumerGroupMember, ConsumerGroupMemberState
from strandline.groups.migration.upgrade import classic_metadata
from strandline.ids import Uuid

TOPIC = Uuid(b"t" * 16)
A = ConsumerGroupMember(
    "a",
    member_epoch=4,
    instance_id="i",
    subscribed_topic_names=frozenset({"t"}),
    subscribed_topic_regex="t.*",
    server_assignor_name="uniform",
    assigned_partitions={TOPIC: {0: 4}},
    partitions_pending_revocation={TOPIC: {1: 3}},
    state=ConsumerGroupMemberState.UNREVOKED_PARTITIONS,
)
B = ConsumerGroupMember(
    "b",
    member_epoch=5,
    subscribed_topic_names=frozenset({"t", "u"}),
    assigned_partitions={TOPIC: {2: 5}},
    classic_member_metadata=classic_metadata([("range", b"")], 10_000),
)


def group_of(*members: ConsumerGroupMember) -> ConsumerGroup:
    group = ConsumerGroup("g")
    group.group_epoch, group.assignment_epoch = 6, 5
    for member in members:
        group.put_member(member)
    group.put_resolved_regular_expression("t.*", ResolvedRegularExpression(frozenset({"t", "t2"}), 1, 1))
    group.session_deadlines["a"] = 1.0
    return group


def add_twice(group: ConsumerGroup) -> None:
    group.members["x"] = group.members["a"]


def lose_instance(group: ConsumerGroup) -> None:
    group.static_members.clear()


def keep_a_session(group: ConsumerGroup) -> None:
    group.session_deadlines["x"] = 1.0


def be_behind_the_target(group: ConsumerGroup) -> None:
    group.group_epoch = 4


def be_behind_a_member(group: ConsumerGroup) -> None:
    group.assignment_epoch = 4


def own_twice(group: ConsumerGroup) -> None:
    group.put_member(replace(B, assigned_partitions={TOPIC: {1: 5, 2: 5}}))


def lose_an_owner(group: ConsumerGroup) -> None:
    del group.owners[TOPIC][1]


def own_without_being_responsible(group: ConsumerGroup) -> None:
    group.owners[TOPIC][3] = "a"


def miscount_topics(group: ConsumerGroup) -> None:
    group.subscribed_topic_names.add(["t"])


def miscount_resolved_topics(group: ConsumerGroup) -> None:
    group.subscribed_topic_names.remove(["t2"])


def miscount_patterns(group: ConsumerGroup) -> None:
    group.subscribed_regular_expressions.clear()


def miscount_assignors(group: ConsumerGroup) -> None:
    group.server_assignors.add(["range"])


def miscount_protocols(group: ConsumerGroup) -> None:
    group.classic_protocols.clear()


def miscount_classic_members(group: ConsumerGroup) -> None:
    group.classic_members_count = 2


@pytest.mark.parametrize(
    ("break_it", "what"),
    [
        (add_twice, "'x'"),
        (lose_instance, "instance ids lead to {}"),
        (keep_a_session, "sessions of"),
        (be_behind_the_target, "assignment epoch 5, group epoch 4"),
        (be_behind_a_member, "member epoch 5, assignment epoch 4"),
        (own_twice, "is both a's and b's"),
        (lose_an_owner, "responsible are"),
        (own_without_being_responsible, "responsible are"),
        (miscount_topics, "topics"),
        (miscount_resolved_topics, "topics"),
        (miscount_patterns, "patterns {}"),
        (miscount_assignors, "assignors"),
        (miscount_protocols, "protocols {}"),
        (miscount_classic_members, "1 classic members, not 2"),
    ],
)
def test_a_group_that_is_not_as_it_should_be(break_it: Callable[[ConsumerGroup], None], what: str) -> None:
    group = group_of(A, B)
    group.check_invariants()
    break_it(group)
    with pytest.raises(AssertionError, match=what):
        group.check_invariants()


def test_a_group_without_members_is_as_it_should_be() -> None:
    ConsumerGroup("g").check_invariants()
    group = group_of(A, B)
    group.remove_member("a")
    group.remove_member("b")
    group.check_invariants()
