"""Members are alive."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.wire import messages
from tests.unit.groups.classic.transcript import play
from tests.unit.groups.driver import Driver


def test_in_every_state() -> None:
    play("""
        beat a
            a heartbeat: UNKNOWN_MEMBER_ID
        join a
            a join: MEMBER_ID_REQUIRED
            log: generation 0, empty
        beat a
            a heartbeat: UNKNOWN_MEMBER_ID
        join a
        # It was never told of a generation, so that it has none.
        beat a
            a heartbeat: ILLEGAL_GENERATION
        beat a generation=0
            a heartbeat: REBALANCE_IN_PROGRESS
        tick 3
            a join: generation 1 range, leader a, members a
        beat a
            a heartbeat: NONE
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        beat a
            a heartbeat: NONE
        join b v=3
        beat a
            a heartbeat: REBALANCE_IN_PROGRESS
        leave a
            b join: generation 2 range, leader b, members b
            a leave: NONE
        beat a
            a heartbeat: UNKNOWN_MEMBER_ID
    """)


def test_who_may_not_be_alive() -> None:
    play("""
        join a instance=1
            log: generation 0, empty
        tick 3
            a join: generation 1 range, leader a, members a
        sync a a=0
            log: generation 1 range, leader a: a=0
            a sync: assigned 0
        beat a generation=0
            a heartbeat: ILLEGAL_GENERATION
        beat a id=nobody instance=1
            a heartbeat: FENCED_INSTANCE_ID
        beat a id=nobody instance=2
            a heartbeat: UNKNOWN_MEMBER_ID
        beat b id=nobody
            b heartbeat: UNKNOWN_MEMBER_ID
    """)


def test_a_group_without_a_name() -> None:
    assert Driver().call("heartbeat", messages.request(12)(group_id=""), 4).code is ErrorCode.INVALID_GROUP_ID
