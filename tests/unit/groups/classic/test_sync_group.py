"""The leader says who gets what."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.wire import messages
from tests.unit.groups.classic.transcript import play
from tests.unit.groups.driver import Driver


def test_followers_before_and_after_the_leader() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        join c v=3
        tick 6
            a join: generation 1 range, leader a, members a,b,c
            b join: generation 1 range, leader a
            c join: generation 1 range, leader a
        sync b
        sync a a=0 b=1 c=2
            log: generation 1 range, leader a: a=0 b=1 c=2
            a sync: assigned 0
            b sync: assigned 1
        sync c
            c sync: assigned 2
        status
            Stable generation 1 range, leader a, members a,b,c
    """)


def test_nobody_is_told_what_is_not_committed() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        hold
        sync b
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
        status
            CompletingRebalance generation 1 range, leader a, members a,b
        commit
            a sync: assigned 0
            b sync: assigned 1
        status
            Stable generation 1 range, leader a, members a,b
    """)


def test_an_assignment_that_can_not_be_written_is_asked_for_again() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        refuse NOT_ENOUGH_REPLICAS
        sync a a=0 b=1
            a sync: COORDINATOR_NOT_AVAILABLE
            b sync: COORDINATOR_NOT_AVAILABLE
        accept
        status
            PreparingRebalance generation 1 range, leader a, members a,b
        join a
        join b
            a join: generation 2 range, leader a, members a,b
            b join: generation 2 range, leader a
        sync a a=1 b=0
            log: generation 2 range, leader a: a=1 b=0
            a sync: assigned 1
        sync b
            b sync: assigned 0
    """)


def test_a_rebalance_overtakes_the_commit() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        hold
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
        join b topics=other
            a sync: REBALANCE_IN_PROGRESS
        commit
        status
            PreparingRebalance generation 1 range, leader a, members a,b
        join a
            a join: generation 2 range, leader a, members a,b
            b join: generation 2 range, leader a
        sync a a=1 b=0
            log: generation 2 range, leader a: a=1 b=0
            a sync: assigned 1
    """)


def test_a_commit_of_the_generation_before_says_nothing() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        hold
        sync a a=0
            log: generation 1 range, leader a: a=0
        join a topics=other
            a sync: REBALANCE_IN_PROGRESS
            a join: generation 2 range, leader a, members a
        commit
        status
            CompletingRebalance generation 2 range, leader a, members a
    """)


def test_who_is_not_assigned_anything_is_told_so() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync a a=0
            log: generation 1 range, leader a: a=0 b=
            a sync: assigned 0
        sync b
            b sync: assigned nothing
    """)


def test_assignments_of_strangers_are_not_kept() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0 stranger=1
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
    """)


def test_a_second_sync_while_the_first_waits() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        sync b
            b sync: REBALANCE_IN_PROGRESS
        sync a a=0 b=1
            log: generation 1 range, leader a: a=0 b=1
            a sync: assigned 0
            b sync: assigned 1
    """)


def test_who_may_not_sync() -> None:
    play("""
        sync a
            a sync: UNKNOWN_MEMBER_ID
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a generation=0
            a sync: ILLEGAL_GENERATION
        sync a generation=2
            a sync: ILLEGAL_GENERATION
        sync a id=nobody
            a sync: UNKNOWN_MEMBER_ID
        sync a instance=1
            a sync: UNKNOWN_MEMBER_ID
        sync a type=connect
            a sync: INCONSISTENT_GROUP_PROTOCOL
        sync a name=sticky
            a sync: INCONSISTENT_GROUP_PROTOCOL
        join a topics=other
            a join: generation 2 range, leader a, members a
        join b v=3
        sync a
            a sync: REBALANCE_IN_PROGRESS
    """)


def test_the_protocol_must_be_said_since_version_5() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a type=null
            a sync: INCONSISTENT_GROUP_PROTOCOL
        sync a name=null
            a sync: INCONSISTENT_GROUP_PROTOCOL
        sync a type=null name=null v=4 a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
    """)


def test_a_group_without_a_name() -> None:
    request = messages.request(14)(group_id="", protocol_type="consumer", protocol_name="range")
    assert Driver().call("sync_group", request, 5).code is ErrorCode.INVALID_GROUP_ID


def test_nobody_is_told_what_was_read_back_and_is_not_committed() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        reload
        hold
        sync a
        commit
            a sync: assigned 0
        hold
        sync a
        fail REQUEST_TIMED_OUT
            a sync: COORDINATOR_NOT_AVAILABLE
    """)
