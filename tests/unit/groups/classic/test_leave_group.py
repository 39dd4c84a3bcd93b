"""Members go."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.wire import messages
from tests.unit.groups.classic.transcript import play
from tests.unit.groups.driver import Driver


def test_the_last_one_leaves_an_empty_group() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        hold
        leave a
            log: generation 2, empty
        commit
            a leave: NONE
        status
            Empty generation 2
    """)


def test_that_it_is_empty_can_not_be_written() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        refuse NOT_ENOUGH_REPLICAS
        leave a
            a leave: COORDINATOR_NOT_AVAILABLE
        status
            Empty generation 2
    """)


def test_the_others_share_what_it_had() -> None:
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
        leave a
            a leave: NONE
        beat b
            b heartbeat: REBALANCE_IN_PROGRESS
        join b
            b join: generation 2 range, leader b, members b
    """)


def test_many_at_once_are_one_rebalance() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3 instance=1
        join c v=3
        join d
            d join: MEMBER_ID_REQUIRED
        tick 6
            a join: generation 1 range, leader a, members a,b,c
            b join: generation 1 range, leader a
            c join: generation 1 range, leader a
        sync a a=0 b=1 c=2
            log: generation 1 range, leader a: a=0 b=1 c=2
            a sync: assigned 0
        leave a b/1 d nobody a
            a b/1 d nobody a leave: NONE, NONE, NONE, UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID
        status
            PreparingRebalance generation 1 range, leader c, members c
        join c
            c join: generation 2 range, leader c, members c
    """)


def test_versions_before_3_know_one_member() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        leave nobody v=2
            nobody leave: UNKNOWN_MEMBER_ID
        leave a v=0
            log: generation 2, empty
            a leave: NONE
    """)


def test_an_administrator_removes_a_static_member_by_its_instance_id() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        leave -/2
            -/2 leave: UNKNOWN_MEMBER_ID
        leave -
            - leave: UNKNOWN_MEMBER_ID
        leave a/2
            a/2 leave: UNKNOWN_MEMBER_ID
        join b v=3
        leave nobody/1
            nobody/1 leave: FENCED_INSTANCE_ID
        leave -/1
            b join: generation 2 range, leader b, members b
            -/1 leave: NONE
        status
            CompletingRebalance generation 2 range, leader b, members b
    """)


def test_who_was_given_an_id_and_does_not_want_it_disturbs_nobody() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join b
            b join: MEMBER_ID_REQUIRED
        leave b
            b leave: NONE
        status
            Stable generation 1 range, leader a, members a
        tick 5
        beat a
            a heartbeat: NONE
        tick 5
        status
            Stable generation 1 range, leader a, members a
    """)


def test_a_join_need_not_wait_for_one_that_left() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join b
            b join: MEMBER_ID_REQUIRED
        join c v=3
        join a
        status
            PreparingRebalance generation 1 range, leader a, members a,c, pending b
        leave b
            a join: generation 2 range, leader a, members a,c
            c join: generation 2 range, leader a
            b leave: NONE
    """)


def test_a_member_leaves_while_its_join_waits() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        join b
            b join: MEMBER_ID_REQUIRED
        join b
        leave b
            b join: UNKNOWN_MEMBER_ID
            b leave: NONE
        join a
            a join: generation 2 range, leader a, members a
    """)


def test_a_member_leaves_while_its_sync_waits() -> None:
    play("""
        join a v=3
            log: generation 0, empty
        join b v=3
        tick 6
            a join: generation 1 range, leader a, members a,b
            b join: generation 1 range, leader a
        sync b
        leave b
            b sync: UNKNOWN_MEMBER_ID
            b leave: NONE
        status
            PreparingRebalance generation 1 range, leader a, members a
    """)


def test_an_unknown_group() -> None:
    play("""
        leave a b
            a b leave: UNKNOWN_MEMBER_ID, UNKNOWN_MEMBER_ID
        leave a v=2
            a leave: UNKNOWN_MEMBER_ID
    """)


def test_a_group_without_a_name() -> None:
    assert Driver().call("leave_group", messages.request(13)(group_id=""), 5).code is ErrorCode.INVALID_GROUP_ID
