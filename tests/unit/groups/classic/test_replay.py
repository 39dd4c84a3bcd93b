"""Another coordinator goes on with what the log says."""

# mypy: disable-error-code="comparison-overlap"

from __future__ import annotations

import pytest

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups import framing
from strandline.groups.classic import replay
from strandline.groups.classic.group import EMPTY, STABLE, ClassicGroup
from strandline.groups.records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.unit.groups.classic.transcript import play, subscription
from tests.unit.groups.driver import START_WALL_MS, Driver


def test_members_go_on_and_have_to_be_heard_from() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        reload
        status
            Stable generation 1 range, leader a, members a,b
        tick 9
        beat a
            a heartbeat: NONE
        sync b
            b sync: assigned 1
        tick 1
        # b was not heard from since.
        status
            PreparingRebalance generation 1 range, leader a, members a
        beat a
            a heartbeat: REBALANCE_IN_PROGRESS
        join a
            a join: generation 2 range, leader a, members a
    """)


def test_whoever_waits_for_a_join_is_sent_to_the_other_coordinator() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b
            b join: MEMBER_ID_REQUIRED
        reload
            a join: NOT_COORDINATOR
        status
            Empty generation 0
        join b
            b join: UNKNOWN_MEMBER_ID
    """)


def test_whoever_waits_for_an_assignment_too() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        reload
            b sync: NOT_COORDINATOR
        # The generation before it was the last one that was written.
        status
            Empty generation 0
        join a
            a join: UNKNOWN_MEMBER_ID
    """)


def test_a_write_that_was_under_way() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        hold
        sync a a=0
            log: generation 1 range, leader a: a=0
        reload
            a sync: NOT_COORDINATOR
        # It may have been written nevertheless.
        status
            Stable generation 1 range, leader a, members a
        sync a
            a sync: assigned 0
    """)


def test_a_static_member_that_waits_for_its_new_id() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        restart a
        hold
        join a
            log: generation 1 range, leader a/2: a/2=0
        reload
            a join: NOT_COORDINATOR
        status
            Stable generation 1 range, leader a/2, members a/2
    """)


def test_a_group_that_is_larger_than_it_may_be_now() -> None:
    stage = play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
    """)
    stage.driver.around.config = Driver(group_max_size="1").around.config
    stage.lines.clear()
    for line in ("reload", "beat a", "join b", "join a"):
        stage.perform(line)
    assert stage.lines == [
        "reload",
        "beat a",
        "    a heartbeat: REBALANCE_IN_PROGRESS",
        "join b",
        "join a",
        "    a join: GROUP_MAX_SIZE_REACHED",
        "    b join: generation 2 range, leader b, members b",
    ]


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_the_record(version: int) -> None:
    member = MemberMetadata(
        member_id="m",
        group_instance_id="i",
        client_id="client",
        client_host="/127.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=subscription("t"),
        assignment=b"0",
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m",
        current_state_timestamp=7,
        members=(member,),
    )
    record = framing.decode(*framing.encode(CoordinatorRecord(GroupMetadataKey(group="g"), value), version))
    assert record is not None
    assert isinstance(record.value, GroupMetadataValue)
    group = replay.group_of("g", record.value)
    (loaded,) = group.members.values()
    assert (group.state, group.generation_id, group.protocol_name, group.leader_id) == (STABLE, 3, "range", "m")
    assert group.state_since_ms == (7 if version >= 2 else None)
    assert loaded.rebalance_timeout_ms == (60_000 if version >= 1 else 10_000)
    assert loaded.group_instance_id == ("i" if version >= 3 else None)
    assert (loaded.client_id, loaded.client_host, loaded.session_timeout_ms) == ("client", "/127.0.0.1", 10_000)
    assert (loaded.metadata("range"), loaded.assignment) == (subscription("t"), b"0")
    assert group.is_subscribed_to("t")


def test_a_group_is_read_back_as_it_was() -> None:
    stage = play("""
        join a instance=1
            log: generation 0, empty
        join b v=3 topics=t,u
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
    """)
    before = stage.group
    stage.driver.reload()
    after = stage.group
    assert after is not before
    assert list(after.members) == list(before.members)
    assert after.static_members == before.static_members
    assert after.subscribed_topics == before.subscribed_topics == {"t", "u"}
    assert after.state_since_ms == START_WALL_MS + 6_000


def test_an_empty_group_is_read_back_with_when_it_became_empty() -> None:
    stage = play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        tick 2
        leave a
            log: generation 2, empty
            a leave: NONE
        reload
        status
            Empty generation 2
    """)
    group = stage.group
    assert (group.state, group.protocol_type, group.state_since_ms) == (EMPTY, "consumer", START_WALL_MS + 5_000)


def test_a_leader_that_is_no_member_does_not_lead() -> None:
    value = GroupMetadataValue(protocol_type="", generation=0, protocol=None, leader="m", members=())
    assert replay.group_of("g", value).leader_id is None


def test_a_tombstone_removes_the_group() -> None:
    driver = Driver()
    replay.replay(driver.shard, GroupMetadataKey(group="g"), None)
    driver.shard.groups["g"] = ClassicGroup("g")
    replay.replay(driver.shard, GroupMetadataKey(group="g"), None)
    assert "g" not in driver.shard.groups
