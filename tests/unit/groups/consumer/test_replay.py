"""What a group is read back as, and what begins then."""

from __future__ import annotations

from dataclasses import replace

from strandline.groups.classic.group import ClassicGroup
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_records import assignment_record, group_tombstones, member_record
from strandline.groups.consumer.member import ConsumerGroupMember, ConsumerGroupMemberState
from strandline.groups.consumer.replay import apply
from strandline.ids import Uuid
from tests.unit.groups.consumer.transcript import play
from tests.unit.groups.driver import Driver

TOPIC = Uuid(b"t" * 16)


def test_a_new_coordinator_goes_on_where_the_old_one_was_and_hears_from_everyone_or_fences_them() -> None:
    play(
        """
        topics t=2
        join a topics=t instance=i
            log: member a, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        join b topics=t
            log: member b, group 3, target a, target b, target@3, current b
            b: epoch 3, -
        beat a
            log: current a
            a: epoch 2, t:0
        status
            Reconciling, group 3, target 3
            a 2 UNREVOKED t:0, revoking t:1
            b 3 UNRELEASED -
        reload
        status
            Reconciling, group 3, target 3
            a 2 UNREVOKED t:0, revoking t:1
            b 3 UNRELEASED -
        tick 44
        ack a
            log: current a
            a: epoch 3
        ack b
            log: current b
            b: epoch 3, t:1
        reload
        tick 60
            log: -current a, -target a, -member a, group 4, -current b, -target b, -member b, group 5, target@5
        status
            Empty, group 5, target 5
        """
    )


def test_a_deleted_group_leaves_nothing() -> None:
    stage = play(
        """
        topics t=2
        join a regex=t
            log: member a, regex t, group 2, target a, target@2, current a
            a: epoch 2, t:0,1
        """
    )
    for record in stage.group.tombstones():
        stage.driver.shard.replay(record, 0)
    assert stage.driver.shard.groups == {}


def test_a_tombstone_of_what_is_not_there_changes_nothing() -> None:
    shard = Driver().shard
    for record in group_tombstones("g", ["a"], ["t"]):
        shard.replay(record, 0)
    assert shard.groups == {}


def test_a_group_takes_the_place_of_one_that_is_no_more_than_its_offsets() -> None:
    shard = Driver().shard
    shard.groups["g"] = ClassicGroup("g")
    shard.replay(member_record("g", ConsumerGroupMember("a")), 0)
    assert isinstance(shard.groups["g"], ConsumerGroup)


def test_the_newest_record_tells_the_owner_when_compaction_has_taken_the_one_before() -> None:
    group = ConsumerGroup("g")
    apply(group, assignment_record("g", ConsumerGroupMember("a", member_epoch=5, assigned_partitions={TOPIC: {0: 5}})))
    apply(group, assignment_record("g", ConsumerGroupMember("b", member_epoch=7, assigned_partitions={TOPIC: {0: 7}})))
    apply(group, assignment_record("g", ConsumerGroupMember("a", member_epoch=8)))
    assert group.owner(TOPIC, 0) == "b"
    assert group.current_partition_epoch(TOPIC, 0) == 7
    assert group.current_partition_epoch(TOPIC, 1) == -1


def test_what_was_written_before_assignment_epochs_is_of_the_members_epoch() -> None:
    written = ConsumerGroupMember("a", member_epoch=5, assigned_partitions={TOPIC: {0: 3, 1: 5}}).assignment_value()
    (topic,) = written.assigned_partitions
    assert topic.assignment_epochs == (3, 5)
    older = replace(written, assigned_partitions=(replace(topic, assignment_epochs=None),))
    assert ConsumerGroupMember("a").with_assignment(older).assigned_partitions == {TOPIC: {0: 5, 1: 5}}


def test_a_state_that_is_newer_than_we_are_is_unknown() -> None:
    written = replace(ConsumerGroupMember("a").assignment_value(), state=9)
    assert ConsumerGroupMember("a").with_assignment(written).state is ConsumerGroupMemberState.UNKNOWN
