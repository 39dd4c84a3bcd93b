"""A generation ends, and the next begins."""

from __future__ import annotations

from tests.unit.groups.classic.transcript import Stage, play

TWO_MEMBERS = ("join a v=3", "join b v=3", "tick 6", "sync a a=0 b=1", "sync b")


def two_members() -> Stage:
    """a leads, b follows."""
    stage = Stage()
    for line in TWO_MEMBERS:
        stage.perform(line)
    stage.lines.clear()
    return stage


def test_who_does_not_join_again_in_time_is_left_behind() -> None:
    play("""
        join a v=3 session=40
            log: generation 0, empty
        join b v=3 session=40
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        join c v=3
        tick 30
        beat b
            b heartbeat: REBALANCE_IN_PROGRESS
        join a
        tick 29.9
        beat b
            b heartbeat: REBALANCE_IN_PROGRESS
        tick 0.1
            a join: generation 2 range, leader a, members a,c
            c join: generation 2 range, leader a
        beat b
            b heartbeat: UNKNOWN_MEMBER_ID
        status
            CompletingRebalance generation 2 range, leader a, members a,c
    """)


def test_another_leads_if_the_leader_does_not_join_again() -> None:
    play("""
        join a v=3 session=100
            log: generation 0, empty
        join b v=3 session=100
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        join b topics=other
        tick 60
            b join: generation 2 range, leader b, members b
    """)


def test_the_slowest_member_says_how_long_the_others_are_waited_for() -> None:
    play("""
        join a v=3 session=100 rebalance=20
            log: generation 0, empty
        join b v=3 session=100 rebalance=80
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        join a
        tick 79.9
        status
            PreparingRebalance generation 1 range, leader a, members a,b
        tick 0.1
            a join: generation 2 range, leader a, members a
    """)


def test_who_never_syncs_is_left_behind() -> None:
    play("""
        join a v=3 session=100
            log: generation 0, empty
        join b v=3 session=100
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        tick 59.9
        beat a
            a heartbeat: NONE
        tick 0.1
        beat a
            a heartbeat: REBALANCE_IN_PROGRESS
        join a
            a join: generation 2 range, leader a, members a
    """)


def test_a_leader_that_never_syncs_is_left_behind() -> None:
    play("""
        join a v=3 session=100
            log: generation 0, empty
        join b v=3 session=100
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        tick 60
            b sync: REBALANCE_IN_PROGRESS
        status
            PreparingRebalance generation 1 range, leader b, members b
        join b
            b join: generation 2 range, leader b, members b
    """)


def test_once_all_have_synced_nobody_is_left_behind() -> None:
    stage = two_members()
    assert ("sync", "g") not in stage.driver.shard.timers


def test_a_silent_member_leaves_when_its_session_ends() -> None:
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
        tick 6
        beat a
            a heartbeat: NONE
        tick 3.9
        status
            Stable generation 1 range, leader a, members a,b
        tick 0.1
        beat a
            a heartbeat: REBALANCE_IN_PROGRESS
        join a
            a join: generation 2 range, leader a, members a
    """)


def test_a_group_whose_members_are_all_silent_is_empty() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        tick 10
            log: generation 2, empty
        status
            Empty generation 2
    """)


def test_heartbeats_keep_a_session_and_set_no_timer() -> None:
    stage = two_members()
    timers = stage.driver.shard.timers
    due = timers.next_s
    for _ in range(20):
        stage.driver.advance(0.4)
        stage.perform("beat a")
        stage.perform("beat b")
        assert timers.next_s == due
    stage.driver.advance(5)
    assert timers.next_s is not None
    assert timers.next_s > stage.driver.now
    assert len(stage.group.members) == 2
    assert len(timers) == 2


def test_a_member_that_we_keep_waiting_need_not_send_heartbeats() -> None:
    play("""
        join a v=3 session=10
            log: generation 0, empty
        join b v=3 session=50
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        join a
        tick 49
        # The join of a has waited for five sessions.
        join b
            a join: generation 2 range, leader a, members a,b
            b join: generation 2 range, leader a
        # And from here its session begins anew.
        tick 9.9
        status
            CompletingRebalance generation 2 range, leader a, members a,b
        tick 0.1
        status
            PreparingRebalance generation 2 range, leader b, members b
    """)


def test_a_member_that_waits_for_the_assignment_need_not_send_heartbeats_either() -> None:
    play("""
        join a v=3 session=50
            log: generation 0, empty
        join b v=3 session=10
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        tick 40
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
            b sync: assigned 1
        tick 9.9
        status
            Stable generation 1 range, leader a, members a,b
        tick 0.1
        status
            PreparingRebalance generation 1 range, leader a, members a
    """)


def test_a_session_that_is_shorter_than_before_ends_sooner() -> None:
    play("""
        join a v=3 session=100
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join a session=10
            a join: generation 2 range, leader a, members a
        sync a a=0
            log: generation 2 range, leader a: a=0
            a sync: assigned 0
        tick 9.9
        status
            Stable generation 2 range, leader a, members a
        tick 0.1
            log: generation 3, empty
        status
            Empty generation 3
    """)


def test_a_new_member_that_was_never_answered_is_waited_for_five_minutes() -> None:
    play("""
        join a v=3 session=1800 rebalance=1800
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join b v=3 session=1800 rebalance=1800
        tick 299.9
        status
            PreparingRebalance generation 1 range, leader a, members a,b
        tick 0.1
            b join: UNKNOWN_MEMBER_ID
        status
            PreparingRebalance generation 1 range, leader a, members a
    """)


def test_after_its_first_generation_it_has_its_own_session() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        tick 10
            log: generation 2, empty
        status
            Empty generation 2
    """)


def test_the_first_generation_is_not_hurried_by_who_leaves() -> None:
    play("""
        join a
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join a
        join b v=3
        leave a
            a join: UNKNOWN_MEMBER_ID
            a leave: NONE
        status
            PreparingRebalance generation 0, leader b, members b
        tick 3
        tick 3
            b join: generation 1 range, leader b, members b
    """)


def test_the_next_first_generation_waits_as_the_first_did() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        leave a
            log: generation 2, empty
            a leave: NONE
        restart a
        join a
        tick 2.9
        status
            PreparingRebalance generation 2, leader a/2, members a/2
        tick 0.1
            a join: generation 3 range, leader a/2, members a/2
    """)


def test_an_empty_group_that_can_not_be_written_is_empty_all_the_same() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        refuse NOT_ENOUGH_REPLICAS
        tick 10
        status
            Empty generation 2
        reload
        # Nobody has told the log.
        status
            Stable generation 1 range, leader a, members a
        accept
        tick 10
            log: generation 2, empty
        status
            Empty generation 2
    """)


def test_timers_of_a_deleted_group_do_nothing() -> None:
    stage = two_members()
    shard = stage.driver.shard
    for record in stage.group.tombstones():
        shard.replay(record, 0)
    assert len(shard.timers) == 0
    stage.driver.advance(100)
    assert not shard.groups
