"""Static members are restarted, and nobody notices."""

from __future__ import annotations

from tests.unit.groups.classic.transcript import play


def test_a_follower_that_is_restarted() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        join b instance=2
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        restart b
        join b
            log: generation 1 range, leader a: a=0 b/2=1
            b join: generation 1 range, leader a
        sync b
            b sync: assigned 1
        beat a
            a heartbeat: NONE
        status
            Stable generation 1 range, leader a, members a,b/2
    """)


def test_the_former_is_fenced() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join b instance=1
            log: generation 1 range, leader b: b=0
            b join: generation 1 range, leader b, members b, skip assignment
        beat a
            a heartbeat: FENCED_INSTANCE_ID
        sync a
            a sync: FENCED_INSTANCE_ID
        join a
            a join: FENCED_INSTANCE_ID
        leave a/1
            a/1 leave: FENCED_INSTANCE_ID
        beat b
            b heartbeat: NONE
        # Who doesn't say its instance id is merely unknown.
        beat a instance=other
            a heartbeat: UNKNOWN_MEMBER_ID
    """)


def test_the_former_is_fenced_while_its_join_waits() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        join b instance=1
            a join: FENCED_INSTANCE_ID
        tick 3
            b join: generation 1 range, leader b, members b
    """)


def test_the_former_is_fenced_while_its_sync_waits() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b instance=1
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        join c instance=1
            b sync: FENCED_INSTANCE_ID
        beat a
            a heartbeat: REBALANCE_IN_PROGRESS
        join a
            a join: generation 2 range, leader a, members a,c
            c join: generation 2 range, leader a
    """)


def test_a_leader_is_told_to_skip_the_assignment_since_version_9() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        join b instance=2
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        restart a
        join a
            log: generation 1 range, leader a/2: b=1 a/2=0
            a join: generation 1 range, leader a/2, members b,a/2, skip assignment
        sync a
            a sync: assigned 0
    """)


def test_before_version_9_it_is_told_that_its_former_self_leads() -> None:
    play("""
        join a instance=1 v=8
            log: generation 0, empty
        join b instance=2
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        restart a
        join a
            log: generation 1 range, leader a/2: b=1 a/2=0
            a join: generation 1 range, leader a
        sync a
            a sync: assigned 0
        # It does lead: when it joins, it has seen something.
        join a
        status
            PreparingRebalance generation 1 range, leader a/2, members b,a/2
    """)


def test_the_member_hears_of_its_new_id_once_that_is_committed() -> None:
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
        status
            Stable generation 1 range, leader a/2, members a/2
        commit
            a join: generation 1 range, leader a/2, members a/2, skip assignment
    """)


def test_the_new_id_is_taken_back_if_it_can_not_be_written() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join b instance=1 session=20 topics=other
            log: generation 1 range, leader b: b=0
            b join: generation 1 range, leader b, members b, skip assignment
        refuse NOT_ENOUGH_REPLICAS
        join a id=
            a join: COORDINATOR_NOT_AVAILABLE
        status
            Stable generation 1 range, leader b, members b
        accept
        beat b
            b heartbeat: NONE
        # Its session is what it was.
        tick 19.9
        status
            Stable generation 1 range, leader b, members b
        tick 0.1
            log: generation 2, empty
        status
            Empty generation 2
    """)


def test_of_two_new_ids_in_a_row_the_second_counts() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        hold
        join b instance=1
            log: generation 1 range, leader b: b=0
        join c instance=1
            b join: FENCED_INSTANCE_ID
            log: generation 1 range, leader c: c=0
        commit one
        commit
            c join: generation 1 range, leader c, members c, skip assignment
        status
            Stable generation 1 range, leader c, members c
    """)


def test_the_first_of_two_new_ids_may_fail_for_itself() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        hold
        join b instance=1
            log: generation 1 range, leader b: b=0
        join c instance=1
            b join: FENCED_INSTANCE_ID
            log: generation 1 range, leader c: c=0
        fail REQUEST_TIMED_OUT
            c join: COORDINATOR_NOT_AVAILABLE
        status
            Stable generation 1 range, leader b, members b
    """)


def test_a_rebalance_begins_before_the_new_id_is_committed() -> None:
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
        join b v=3
            a join: generation 2 range, leader a/2, members a/2,b
            b join: generation 2 range, leader a/2
        status
            CompletingRebalance generation 2 range, leader a/2, members a/2,b
        commit
    """)


def test_a_rebalance_is_under_way_when_the_new_id_fails() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        join b instance=2
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        restart a
        hold
        join a
            log: generation 1 range, leader a/2: b=1 a/2=0
        join b topics=other
            b join: generation 2 range, leader a/2
            a join: generation 2 range, leader a/2, members b,a/2
        fail NOT_ENOUGH_REPLICAS
        sync a a/2=0 b=1
            log: generation 2 range, leader a/2: b=1 a/2=0
            a sync: assigned 0
    """)


def test_a_restart_that_changes_the_protocol_is_a_rebalance() -> None:
    play("""
        join a instance=1 protocols=range,sticky
            log: generation 0, empty
        join b instance=2 protocols=range,sticky
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        restart b
        join b protocols=sticky
        join a
            a join: generation 2 sticky, leader a, members a,b/2
            b join: generation 2 sticky, leader a
    """)


def test_a_restart_that_changes_only_what_it_consumes_is_not() -> None:
    stage = play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        restart a
        join a topics=other
            log: generation 1 range, leader a/2: a/2=0
            a join: generation 1 range, leader a/2, members a/2, skip assignment
    """)
    (member,) = stage.group.members.values()
    assert b"other" in member.metadata("range")


def test_a_restart_before_the_assignment_is_a_rebalance() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        join b instance=2
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        # The leader would assign something to the former a.
        restart a
        join a
            b sync: REBALANCE_IN_PROGRESS
        join b
            b join: generation 2 range, leader a/2
            a join: generation 2 range, leader a/2, members b,a/2
        sync a a/2=0 b=1
            log: generation 2 range, leader a/2: b=1 a/2=0
            a sync: assigned 0
        sync b
            b sync: assigned 1
    """)


def test_a_restart_during_a_rebalance() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        join b instance=2
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        join a
        restart b
        join b
            a join: generation 2 range, leader a, members a,b/2
            b join: generation 2 range, leader a
    """)


def test_a_static_member_that_does_not_join_again_stays_until_its_session_ends() -> None:
    play("""
        join a instance=1 rebalance=10
            log: generation 0, empty
        join b instance=2 rebalance=10 session=30
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        tick 5
        join a
        tick 10
            a join: generation 2 range, leader a, members a,b
        # It is still a member, and may come back; until then it is assigned partitions.
        sync a a=0 b=1
            log: generation 2 range, leader a: a=0 b=1
            a sync: assigned 0
        tick 9
        beat a
            a heartbeat: NONE
        tick 6
        status
            PreparingRebalance generation 2 range, leader a, members a
    """)


def test_a_static_leader_that_does_not_join_again_leads_no_more() -> None:
    play("""
        join a instance=1 rebalance=10 session=60
            log: generation 0, empty
        join b instance=2 rebalance=10 session=60
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        join b topics=other
        tick 10
            b join: generation 2 range, leader b, members a,b
    """)


def test_if_no_static_member_joins_again_the_rebalance_waits() -> None:
    play("""
        join a instance=1 rebalance=10 session=25
            log: generation 0, empty
        join b rebalance=10 session=25
            b join: MEMBER_ID_REQUIRED
        join b
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        leave b
            b leave: NONE
        tick 20
        status
            PreparingRebalance generation 1 range, leader a, members a
        tick 5
            log: generation 2, empty
        status
            Empty generation 2
    """)


def test_an_instance_id_must_be_known_to_join_with_a_member_id() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join a instance=2
            a join: UNKNOWN_MEMBER_ID
        join b instance=3 id=whoever
            b join: UNKNOWN_MEMBER_ID
    """)


def test_who_was_given_an_id_is_not_static() -> None:
    play("""
        join a
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        join a instance=1
            a join: UNKNOWN_MEMBER_ID
    """)


def test_a_static_member_needs_no_id_first() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        status
            PreparingRebalance generation 0, leader a, members a
    """)


def test_a_restart_before_the_first_sync_is_not_waited_for() -> None:
    play("""
        join a instance=1 session=100
            log: generation 0, empty
        join b instance=2 session=100
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        restart b
        join b
            log: generation 1 range, leader a: a=0 b/2=1
            b join: generation 1 range, leader a
        tick 60
        status
            Stable generation 1 range, leader a, members a,b/2
    """)


def test_static_members_without_time_to_rebalance_are_waited_for_without_hurry() -> None:
    """A timer that is due at once, again and again, would hold up everybody."""
    stage = play("""
        join a v=5 instance=i
            log: generation 0, empty
        join b v=5 instance=j
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
        sync b
            b sync: assigned 1
        restart a
        join a rebalance=0
            log: generation 1 range, leader a/2: b=1 a/2=0
            a join: generation 1 range, leader a
        restart b
        join b rebalance=0
            log: generation 1 range, leader a/2: a/2=0 b/2=1
            b join: generation 1 range, leader a/2
        leave b
            b leave: NONE
    """)
    timers = stage.driver.shard.timers
    for _ in range(3):
        assert timers.next_s is not None
        stage.driver.now = max(stage.driver.now, timers.next_s)
        callback = timers.take(stage.driver.now)
        assert callback is not None
        stage.driver.carry_out(callback(stage.driver.at))
    assert timers.take(stage.driver.now) is None
