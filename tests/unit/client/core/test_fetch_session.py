"""Fetch sessions: what the broker already knows is not said again."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.client.core.fetch_session import FetchSessionHandler
from strandline.errors import ErrorCode

A, B = ("t", 0), ("t", 1)


def test_after_a_full_request_only_changes_are_sent():
    session: FetchSessionHandler[int] = FetchSessionHandler()
    assert session.request({A: 1, B: 1}) == (0, 0, {A: 1, B: 1}, [])
    session.answered(ErrorCode.NONE, 77)
    assert session.request({A: 1, B: 2}) == (77, 1, {B: 2}, [])
    session.answered(ErrorCode.NONE, 77)
    assert session.request({A: 1}) == (77, 2, {}, [B])


def test_a_broker_that_keeps_no_session_gets_full_requests():
    session: FetchSessionHandler[int] = FetchSessionHandler()
    session.request({A: 1})
    session.answered(ErrorCode.NONE, 0)
    assert session.request({A: 1}) == (0, 0, {A: 1}, [])


def test_a_forgotten_session_starts_over_and_a_lost_reply_ends_the_old_one():
    session: FetchSessionHandler[int] = FetchSessionHandler()
    session.request({A: 1})
    session.answered(ErrorCode.NONE, 77)
    session.request({A: 1})
    session.lost()
    assert session.request({A: 1}) == (77, 0, {A: 1}, [])
    session.answered(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    assert session.request({A: 1}) == (0, 0, {A: 1}, [])
