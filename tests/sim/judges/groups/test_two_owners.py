from __future__ import annotations

from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.member import ConsumerGroupMember
from strandline.histories.judges.groups.two_owners import TwoOwners
from strandline.ids import ZERO_UUID

from .stage import broken, stage


def test_each_generation_has_its_own() -> None:
    story = stage(TwoOwners)
    story.sync("a", 1, 0, 1)
    story.sync("a", 2, 0)
    story.sync("b", 2, 1)
    story.sync("b", 2, 1)


def test_two_in_one_generation() -> None:
    story = stage(TwoOwners)
    story.sync("a", 2, 0, 1)
    with broken(TwoOwners):
        story.sync("b", 2, 1)


def test_a_static_member_under_another_id_is_the_same() -> None:
    story = stage(TwoOwners)
    story.sync("a-1", 2, 0, instance="a")
    story.sync("a-2", 2, 0, instance="a")
    story.heartbeat("b-1", 3, [1], instance="b")
    story.heartbeat("b-2", 3, [1], instance="b")


def test_two_in_one_member_epoch() -> None:
    story = stage(TwoOwners)
    story.heartbeat("a", 1, [0, 1])
    story.heartbeat("a", 1, [0])
    story.heartbeat("b", 2, [1])
    story.heartbeat("a", 2)
    with broken(TwoOwners):
        story.heartbeat("b", 2, [0, 1])


def test_what_is_told_once_holds_in_later_epochs() -> None:
    story = stage(TwoOwners)
    story.heartbeat("a", 1, [0])
    story.heartbeat("a", 2)
    with broken(TwoOwners):
        story.heartbeat("b", 2, [0])


def test_who_has_left_has_nothing() -> None:
    story = stage(TwoOwners)
    story.heartbeat("a", 1, [0])
    story.heartbeat("a", -1)
    story.heartbeat("a", 2)
    story.heartbeat("b", 2, [0])


def group(**partitions: dict[str, list[int]]) -> ConsumerGroup:
    """Members with what is assigned to them, and what they still have to let go of."""
    made = ConsumerGroup("g")
    for name, has in partitions.items():
        assigned, pending = (
            {ZERO_UUID: dict.fromkeys(has[part], 1)} if part in has else {} for part in ("assigned", "pending")
        )
        made.members[name] = ConsumerGroupMember(
            name, 1, assigned_partitions=assigned, partitions_pending_revocation=pending
        )
    return made


def test_a_coordinator_gives_a_partition_once() -> None:
    story = stage(TwoOwners)
    story.shard(g=group(a={"assigned": [0], "pending": [1]}, b={"assigned": [2]}))
    with broken(TwoOwners):
        story.shard(g=group(a={"assigned": [0], "pending": [1]}, b={"assigned": [1]}))


def test_a_former_coordinator_that_changes_nothing_means_what_a_member_had_by_that_epoch() -> None:
    """Seed 1000401: it had stood still, and answered heartbeats of an epoch that the next coordinator had left
    behind."""
    story = stage(TwoOwners)
    story.heartbeat("a", 9, [])
    story.heartbeat("b", 9, [0])
    story.heartbeat("b", 11, [])
    story.heartbeat("a", 11, [0])
    story.heartbeat("a", 9, None)
    story.heartbeat("b", 9, None)
    with broken(TwoOwners):
        story.heartbeat("b", 11, [0])
