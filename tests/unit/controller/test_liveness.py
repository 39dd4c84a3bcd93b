"""Sessions and closed connections: who is overdue, and when that is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.controller.liveness import CLOSED_GRACE_S, TAKE_OVER_GRACE_S, Liveness

from .conftest import broker, cluster

TIMEOUT_S = 3.0


@pytest.fixture
def liveness() -> Liveness:
    return Liveness(TIMEOUT_S)


def test_b13_a_session_lasts_for_its_timeout_after_each_heartbeat(liveness: Liveness) -> None:
    liveness.contact(1, 7, 10.0)
    liveness.contact(1, 7, 12.0)
    assert liveness.is_live(1, 14.9)
    assert liveness.next_deadline() == 15.0
    assert not liveness.is_live(1, 15.0)
    assert liveness.overdue(14.9) == []
    assert liveness.overdue(15.0) == [1]


def test_who_was_never_heard_of_is_not_alive_and_not_overdue(liveness: Liveness) -> None:
    assert not liveness.is_live(1, 0.0)
    assert liveness.overdue(100.0) == []
    assert liveness.next_deadline() is None


def test_whose_session_is_over_longest_comes_first(liveness: Liveness) -> None:
    for broker_id, heard in [(1, 3.0), (2, 1.0), (3, 2.0), (4, 9.0)]:
        liveness.contact(broker_id, 7, heard)
    assert liveness.overdue(10.0) == [2, 3, 1]
    liveness.forget(2)
    assert liveness.overdue(10.0) == [3, 1]


@pytest.mark.parametrize(("epoch", "deadline"), [(6, 3.0), (7, 5.0), (8, 5.0)], ids=["older", "same", "newer"])
def test_b13_an_older_epoch_prolongs_nothing(liveness: Liveness, epoch: int, deadline: float) -> None:
    liveness.contact(1, 7, 0.0)
    liveness.contact(1, epoch, 2.0)
    assert liveness.next_deadline() == deadline


def test_a_newer_epoch_has_applied_nothing_yet(liveness: Liveness) -> None:
    liveness.contact(1, 7, 0.0, metadata_offset=50)
    liveness.contact(1, 7, 0.0, metadata_offset=40)
    assert liveness.metadata_offset(1) == 50, "what was overtaken on the way does not take it back"
    liveness.contact(1, 60, 1.0)
    assert (liveness.metadata_offset(1), liveness.metadata_offset(2)) == (-1, -1)


# Connections


def test_who_has_no_connection_any_more_is_overdue_after_a_short_grace(liveness: Liveness) -> None:
    liveness.contact(1, 7, 0.0)
    for connection in (11, 12):
        liveness.connection_opened(1, connection, 0.0)
    liveness.connection_closed(11, 1.0)
    assert liveness.next_deadline() == TIMEOUT_S, "one is open"
    liveness.connection_closed(12, 1.5)
    assert liveness.next_deadline() == 1.5 + CLOSED_GRACE_S
    assert liveness.overdue(1.5 + CLOSED_GRACE_S) == [1]


@pytest.mark.parametrize("back", ["connection", "heartbeat"])
def test_who_is_back_within_the_grace_is_not_overdue(liveness: Liveness, back: str) -> None:
    liveness.contact(1, 7, 0.0)
    liveness.connection_opened(1, 11, 0.0)
    liveness.connection_closed(11, 1.0)
    match back:
        case "connection":
            liveness.connection_opened(1, 12, 1.1)
        case "heartbeat":
            liveness.contact(1, 7, 1.1)
    assert liveness.overdue(2.9) == []


def test_a_late_close_of_an_old_connection_does_not_matter_when_a_new_one_is_open(liveness: Liveness) -> None:
    liveness.contact(1, 7, 0.0)
    liveness.connection_opened(1, 11, 0.0)
    liveness.connection_opened(1, 12, 0.5)
    liveness.connection_closed(11, 0.6)
    liveness.connection_closed(11, 0.7)
    assert liveness.next_deadline() == TIMEOUT_S


def test_connections_of_strangers_do_not_matter(liveness: Liveness) -> None:
    liveness.connection_closed(99, 1.0)
    assert liveness.next_deadline() is None


def test_news_of_a_peer_counts_only_without_a_connection_here(liveness: Liveness) -> None:
    for broker_id in (1, 2):
        liveness.contact(broker_id, 7, 0.0)
    liveness.connection_opened(1, 11, 0.0)
    liveness.peer_closed(1, 1.0)
    liveness.peer_closed(2, 1.0)
    liveness.peer_closed(2, 1.1)
    assert liveness.overdue(1.0 + CLOSED_GRACE_S) == [2]


def test_a_heartbeat_is_no_reason_to_forget_that_the_connection_may_close(liveness: Liveness) -> None:
    liveness.contact(1, 7, 0.0)
    liveness.connection_opened(1, 11, 0.0)
    liveness.contact(1, 7, 0.5)
    liveness.connection_closed(11, 1.0)
    assert liveness.overdue(1.0 + CLOSED_GRACE_S) == [1]


# Taking over


def test_a_new_controller_gives_every_unfenced_broker_a_session(liveness: Liveness) -> None:
    liveness.take_over(cluster(broker(1), broker(2, fenced=True), broker(3, stopping=True)), 100.0)
    assert liveness.next_deadline() == 100.0 + TIMEOUT_S
    assert liveness.overdue(100.0 + TIMEOUT_S) == [1, 3]


def test_a_session_that_was_only_taken_over_does_not_stand_against_a_new_incarnation(liveness: Liveness) -> None:
    liveness.take_over(cluster(broker(1)), 100.0)
    assert not liveness.is_live(1, 100.0)
    liveness.contact(1, 1, 100.1)
    assert liveness.is_live(1, 100.2)


def test_a_new_controller_waits_a_little_for_those_whose_connections_closed(liveness: Liveness) -> None:
    liveness.peer_closed(1, 99.0)
    liveness.peer_closed(3, 99.0)
    liveness.peer_reached(3)
    liveness.take_over(cluster(broker(1), broker(2), broker(3)), 100.0)
    assert liveness.overdue(100.0) == []
    assert liveness.next_deadline() == 100.0 + TAKE_OVER_GRACE_S
    assert liveness.overdue(100.0 + TAKE_OVER_GRACE_S) == [1]
    liveness.contact(1, 1, 100.3)
    assert liveness.overdue(101.0) == []


@pytest.mark.parametrize(("closed_at", "deadline"), [(100.1, 100.4), (100.3, 100.5)])
def test_a_connection_that_closes_later_has_the_longer_of_both_graces(
    liveness: Liveness, closed_at: float, deadline: float
) -> None:
    liveness.take_over(cluster(broker(1)), 100.0)
    liveness.peer_closed(1, closed_at)
    assert liveness.next_deadline() == pytest.approx(deadline)


def test_a_standby_has_no_sessions_but_knows_who_is_gone(liveness: Liveness) -> None:
    liveness.contact(1, 1, 0.0)
    liveness.connection_opened(1, 11, 0.0)
    liveness.stand_by()
    assert (liveness.next_deadline(), liveness.is_live(1, 0.0)) == (None, False)
    liveness.connection_closed(11, 5.0)
    liveness.take_over(cluster(broker(1)), 6.0)
    assert liveness.next_deadline() == 6.0 + TAKE_OVER_GRACE_S


def test_a_session_keeps_what_must_be_known_before_its_broker_stops(liveness: Liveness) -> None:
    liveness.contact(1, 1, 0.0)
    assert liveness.shutdown_offset(1) is None
    liveness.begin_shutdown(1, 42)
    assert liveness.shutdown_offset(1) == 42
    liveness.contact(1, 50, 1.0)
    assert liveness.shutdown_offset(1) is None, "the next incarnation is not stopping"


@given(st.lists(st.tuples(st.sampled_from("hoc+-f"), st.integers(1, 3), st.floats(0, 1.5)), max_size=60))
def test_overdue_alive_and_deadline_always_agree(history: list[tuple[str, int, float]]) -> None:
    liveness, now = Liveness(TIMEOUT_S), 0.0
    for what, broker_id, passed in history:
        now += passed
        match what:
            case "h":
                liveness.contact(broker_id, 7, now)
                assert liveness.is_live(broker_id, now)
            case "o":
                liveness.connection_opened(broker_id, broker_id, now)
            case "c":
                liveness.connection_closed(broker_id, now)
            case "+":
                liveness.peer_reached(broker_id)
            case "-":
                liveness.peer_closed(broker_id, now)
            case "f":
                liveness.forget(broker_id)
        overdue, deadline = liveness.overdue(now), liveness.next_deadline()
        assert bool(overdue) is (deadline is not None and deadline <= now)
        assert not any(liveness.is_live(late, now) for late in overdue)
        if deadline is not None:
            assert liveness.overdue(deadline), "whoever waits until then finds something"


def test_that_its_node_is_reached_does_not_bring_a_closed_connection_back(liveness: Liveness) -> None:
    liveness.take_over(cluster(broker(1)), 100.0)
    liveness.contact(1, 1, 110.0)
    liveness.connection_opened(1, "a", 110.0)
    liveness.connection_closed("a", 111.0)
    liveness.peer_reached(1)
    assert liveness.overdue(111.0 + CLOSED_GRACE_S) == [1]


# Invariants


def closed_while_open(liveness: Liveness) -> None:
    liveness._connections[1].closed_at = 1.0


def open_to_another(liveness: Liveness) -> None:
    liveness._broker_of[11] = 2


def heard_on_a_closed_one(liveness: Liveness) -> None:
    liveness.heard_on(1, 99)


def heard_on_that_of_another(liveness: Liveness) -> None:
    liveness.heard_on(1, 12)


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (closed_while_open, "broker 1"),
        (open_to_another, "open are"),
        (heard_on_a_closed_one, "a connection of None"),
        (heard_on_that_of_another, "a connection of 2"),
    ],
)
def test_what_must_hold_is_checked(liveness: Liveness, broken: Callable[[Liveness], None], problem: str) -> None:
    for broker_id, connection in ((1, 11), (2, 12)):
        liveness.contact(broker_id, 7, 0.0)
        liveness.heard_on(broker_id, connection)
        liveness.connection_opened(broker_id, connection, 0.0)
    liveness.check_invariants()
    broken(liveness)
    with pytest.raises(AssertionError, match=problem):
        liveness.check_invariants()


def test_what_must_hold_does_whatever_becomes_of_connections(liveness: Liveness) -> None:
    for broker_id, connection in ((1, 11), (1, 12), (2, 12), (2, 11)):
        liveness.contact(broker_id, 7, 0.0)
        liveness.heard_on(broker_id, connection)
        liveness.connection_opened(broker_id, connection, 0.0)
        liveness.check_invariants()
    liveness.contact(2, 8, 1.0)
    liveness.check_invariants()
    liveness.connection_closed(11, 1.0)
    liveness.forget(2)
    liveness.check_invariants()
