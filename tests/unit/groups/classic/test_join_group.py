"""Members come, and come back."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.errors import ErrorCode
from strandline.wire import messages
from tests.unit.groups.classic.transcript import Stage, play, subscription
from tests.unit.groups.driver import Driver
from tests.unit.groups.migration.consumers import image_of


def join_request(**values: Any) -> Any:
    Request = messages.request(11)
    protocol = Request.JoinGroupRequestProtocol(name="range", metadata=subscription("t"))
    given = {"group_id": "g", "session_timeout_ms": 10_000, "protocol_type": "consumer", "protocols": [protocol]}
    return Request(**{**given, **values})


def test_an_empty_group_waits_a_little_for_its_first_generation() -> None:
    play("""
        join a
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join a
        tick 2.9
        status
            PreparingRebalance generation 0, leader a, members a
        tick 0.1
            a join: generation 1 range, leader a, members a
        status
            CompletingRebalance generation 1 range, leader a, members a
    """)


def test_it_waits_longer_as_long_as_members_come() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 2
        join b v=3
        tick 3
        join c v=3
        # Had c come after three seconds of quiet, it would have been too late.
        tick 3
        status
            PreparingRebalance generation 0, leader a, members a,b,c
        tick 3
            a join: generation 1 range, leader a, members a,b,c
            b join: generation 1 range, leader a
            c join: generation 1 range, leader a
    """)


def test_it_waits_no_longer_than_the_members_would() -> None:
    play("""
        join a v=3 rebalance=7
            log: generation 0, empty
        tick 2
        join b v=3 rebalance=7
        tick 3
        join c v=3 rebalance=7
        tick 1.9
        status
            PreparingRebalance generation 0, leader a, members a,b,c
        tick 0.1
            a join: generation 1 range, leader a, members a,b,c
            b join: generation 1 range, leader a
            c join: generation 1 range, leader a
    """)


def test_without_a_delay_the_first_generation_begins_at_once() -> None:
    play(
        """
        join a v=3
            log: generation 0, empty
        tick 0
            a join: generation 1 range, leader a, members a
    """,
        group_initial_rebalance_delay_ms="0",
    )


def test_the_id_of_a_dynamic_member_is_required_since_version_4() -> None:
    play("""
        join a v=4
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join b v=3
        status
            PreparingRebalance generation 0, leader b, members b, pending a
    """)


def test_a_member_begins_with_its_client_id_a_static_one_with_its_instance_id() -> None:
    driver = Driver()
    dynamic = driver.call("join_group", join_request(), 9, client_id="app")
    static = driver.call("join_group", join_request(group_instance_id="i"), 9, client_id="app")
    driver.advance(3)
    assert dynamic.response.member_id.startswith("app-")
    assert len(dynamic.response.member_id) == len("app-") + 36
    driver.advance(60)
    assert static.response.member_id.startswith("i-")


def test_who_joins_with_an_id_must_be_known() -> None:
    play("""
        join a id=nobody
            a join: UNKNOWN_MEMBER_ID
        status
            no group
        join b
            b join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join a id=nobody
            a join: UNKNOWN_MEMBER_ID
    """)


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_a_session_timeout_out_of_bounds(timeout_ms: int) -> None:
    driver = Driver()
    joined = driver.call("join_group", join_request(session_timeout_ms=timeout_ms, member_id="m"), 9)
    assert joined.code is ErrorCode.INVALID_SESSION_TIMEOUT
    assert joined.response.member_id == "m"
    assert not driver.log


def test_a_group_without_a_name() -> None:
    assert Driver().call("join_group", join_request(group_id=""), 9).code is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(("version", "shown"), [(6, ""), (7, None)])
def test_no_protocol_is_null_since_version_7(version: int, shown: str | None) -> None:
    joined = Driver().call("join_group", join_request(session_timeout_ms=1), version)
    assert joined.response.protocol_name == shown
    assert messages.encode_response(11, version, joined.response)


def test_version_0_has_as_much_time_to_join_again_as_its_session() -> None:
    driver = Driver()
    driver.call("join_group", join_request(), 0)
    (member,) = driver.shard.groups["g"].members.values()
    assert member.rebalance_timeout_ms == 10_000


def test_protocols_must_have_something_in_common() -> None:
    play("""
        join a type=
            a join: INCONSISTENT_GROUP_PROTOCOL
        join a protocols=none type=consumer
            a join: INCONSISTENT_GROUP_PROTOCOL
        status
            no group
        join b protocols=range,roundrobin
            b join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join b
        join c protocols=roundrobin,sticky
            c join: MEMBER_ID_REQUIRED
        join c
        join d type=connect protocols=range
            d join: INCONSISTENT_GROUP_PROTOCOL
        join e protocols=sticky
            e join: INCONSISTENT_GROUP_PROTOCOL
        tick 6
            b join: generation 1 roundrobin, leader b, members b,c
            c join: generation 1 roundrobin, leader b
    """)


def test_most_votes_decide_which_protocol() -> None:
    play("""
        join a v=3 protocols=range,roundrobin,sticky
            log: generation 0, empty
        join b v=3 protocols=roundrobin,range,sticky
        join c v=3 protocols=sticky,roundrobin
        tick 6
            a join: generation 1 roundrobin, leader a, members a,b,c
            b join: generation 1 roundrobin, leader a
            c join: generation 1 roundrobin, leader a
        # range isn't supported by c: a likes roundrobin better than sticky.
        status
            CompletingRebalance generation 1 roundrobin, leader a, members a,b,c
    """)


def test_an_id_that_was_given_out_is_waited_for_as_long_as_a_session() -> None:
    play("""
        join a session=30
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join a
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join b session=6
            b join: MEMBER_ID_REQUIRED
        join c
            c join: MEMBER_ID_REQUIRED
        join c
        # a has to join again; b could, and isn't a member yet.
        join a
        tick 5
        status
            PreparingRebalance generation 1 range, leader a, members a,c, pending b
        tick 1
            a join: generation 2 range, leader a, members a,c
            c join: generation 2 range, leader a
        status
            CompletingRebalance generation 2 range, leader a, members a,c
    """)


def test_a_group_whose_only_member_never_came_back_stays_empty() -> None:
    play("""
        join a
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        tick 9
        status
            Empty generation 0, pending a
        tick 1
        status
            Empty generation 0
        join a
            a join: UNKNOWN_MEMBER_ID
    """)


def test_a_follower_that_joins_again_unchanged_disturbs_nobody() -> None:
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
        join b
            b join: generation 1 range, leader a
        status
            Stable generation 1 range, leader a, members a,b
        sync b
            b sync: assigned 1
    """)


def test_a_leader_that_joins_again_has_seen_something() -> None:
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
        join a
        beat b
            b heartbeat: REBALANCE_IN_PROGRESS
        join b
            a join: generation 2 range, leader a, members a,b
            b join: generation 2 range, leader a
    """)


def test_a_member_that_supports_something_else_now() -> None:
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
        join b topics=other
        join a
            a join: generation 2 range, leader a, members a,b
            b join: generation 2 range, leader a
    """)


def test_a_join_whose_answer_was_lost_is_answered_again() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        join a
            a join: generation 1 range, leader a, members a,b
        join b
            b join: generation 1 range, leader a
        sync b
        # With something new to say, it begins a rebalance; who waits for an assignment is told.
        join b topics=other
            b sync: REBALANCE_IN_PROGRESS
    """)


def test_a_second_join_while_the_first_waits() -> None:
    play("""
        join a
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join a
        tick 1
        join a
            a join: REBALANCE_IN_PROGRESS
        tick 2
            a join: generation 1 range, leader a, members a
    """)


def test_there_is_no_room_for_a_third() -> None:
    play(
        """
        join a
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join b
            b join: MEMBER_ID_REQUIRED
        join c
            c join: MEMBER_ID_REQUIRED
        # Three were given ids.
        join a
        join b
        join c
            c join: GROUP_MAX_SIZE_REACHED
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        join d
            d join: GROUP_MAX_SIZE_REACHED
    """,
        group_max_size="2",
    )


def test_those_who_join_last_leave_if_the_limit_is_lower_than_it_was() -> None:
    stage = play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        join c v=3
        tick 6
            a join: generation 1 range, leader a, members a,b,c
            b join: generation 1 range, leader a
            c join: generation 1 range, leader a
        sync a a=0 b=1 c=2
            log: generation 1 range, leader a: a=0 b=1 c=2
            a sync: assigned 0
        sync b
            b sync: assigned 1
        sync c
            c sync: assigned 2
    """)
    group = stage.group
    stage.driver.around.config = Driver(group_max_size="2").around.config
    stage.lines.clear()
    stage.perform("join a")
    stage.perform("join c")
    assert not [line for line in stage.lines if line.startswith(" ")]
    stage.perform("join b")
    assert stage.lines[-3:] == [
        "    b join: GROUP_MAX_SIZE_REACHED",
        "    a join: generation 2 range, leader a, members a,c",
        "    c join: generation 2 range, leader a",
    ]
    assert len(group.members) == 2


def test_a_static_member_comes_back_to_a_full_group() -> None:
    play(
        """
        join a instance=i
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        restart a
        join a
            log: generation 1 range, leader a/2: a/2=0
            a join: generation 1 range, leader a/2, members a/2, skip assignment
        join b
            b join: GROUP_MAX_SIZE_REACHED
    """,
        group_max_size="1",
    )


def test_a_group_that_can_not_be_written_does_not_come_to_be() -> None:
    play("""
        refuse NOT_ENOUGH_REPLICAS
        join a v=3
            a join: COORDINATOR_NOT_AVAILABLE
        status
            no group
        accept
        join a
            log: generation 0, empty
    """)


def test_a_group_that_was_not_committed_is_no_more() -> None:
    stage = play("""
        hold
        join a v=3
            log: generation 0, empty
        join b v=3
        fail REQUEST_TIMED_OUT
            a join: COORDINATOR_NOT_AVAILABLE
            b join: COORDINATOR_NOT_AVAILABLE
        status
            no group
    """)
    assert len(stage.driver.shard.timers) == 0


def test_ids_come_from_the_shards_randomness() -> None:
    ids = set()
    for _ in range(2):
        stage = Stage()
        stage.perform("join a")
        ids |= stage.group.pending_join
    assert len(ids) == 1


def test_offsets_that_came_meanwhile_keep_a_group_whose_creation_failed() -> None:
    driver = Driver(image_of(t=1))
    driver.hold()
    joining = driver.call("join_group", join_request(), version=9)
    Commit = messages.request(8)
    partition = Commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = Commit.OffsetCommitRequestTopic(name="t", partitions=[partition])
    driver.call("commit_offsets", Commit(group_id="g", topics=[topic]), version=9)
    driver.commit_one(ErrorCode.REQUEST_TIMED_OUT)
    assert joining.is_answered
    assert "g" in driver.shard.groups
    driver.commit()
    assert driver.shard.offsets.has("g")
