"""Those who wait for an offset: told once, in the order in which they came, and forgotten when nobody waits any more."""

from __future__ import annotations

from strandline.errors import ErrorCode
from strandline.replica.waiters import SWEPT_FROM, Done, Waiters

from .bench import NONE


class Told:
    """What was said, and to whom."""

    def __init__(self) -> None:
        self.all: list[tuple[str, ErrorCode]] = []

    def waiter(self, name: str) -> Done:
        return lambda code: self.all.append((name, code))


def test_who_waits_for_no_more_than_was_reached_is_told_once() -> None:
    waiters, told = Waiters(), Told()
    for offset in (1, 2, 3):
        waiters.add(offset, told.waiter(f"to {offset}"))
    waiters.reached(0)
    assert told.all == [], "nobody waits for what is there from the beginning"
    waiters.reached(2)
    waiters.reached(2)
    assert told.all == [("to 1", NONE), ("to 2", NONE)]
    assert len(waiters) == 1
    waiters.reached(9)
    assert told.all[2:] == [("to 3", NONE)]
    assert not waiters


def test_it_is_reached_with_the_code_that_goes_with_it() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(1, told.waiter("writer"))
    waiters.reached(1, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert told.all == [("writer", ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)]


def test_nobody_overtakes_one_that_came_before() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(5, told.waiter("first"))
    waiters.add(2, told.waiter("second"))
    waiters.reached(3)
    assert told.all == [], "the second waits for the first too"
    waiters.reached(5)
    assert told.all == [("first", NONE), ("second", NONE)]


def test_one_that_waits_again_when_it_is_told_is_told_in_the_same_turn_only_if_that_is_reached_too() -> None:
    waiters, told = Waiters(), Told()

    def go_on(code: ErrorCode) -> None:
        told.waiter("again")(code)
        waiters.add(2, told.waiter("to 2"))
        waiters.add(3, told.waiter("to 3"))

    waiters.add(1, go_on)
    waiters.reached(2)
    assert told.all == [("again", NONE), ("to 2", NONE)]
    assert len(waiters) == 1


def test_what_all_are_to_be_told_is_the_callers_to_say() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(1, told.waiter("first"))
    waiters.add(2, told.waiter("second"), lambda: False)
    taken = waiters.take_all()
    assert (len(taken), len(waiters)) == (2, 0)
    waiters.reached(2)
    assert told.all == [], "they left before anything was reached"
    for done in taken:
        done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [name for name, _ in told.all] == ["first", "second"]


def test_those_whose_wait_is_over_are_forgotten_before_there_are_many() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(1, told.waiter("without an end"))
    waiters.add(1, told.waiter("still waiting"), lambda: False)
    for _ in range(10 * SWEPT_FROM):
        waiters.add(1, told.waiter("gone"), lambda: True)
        assert len(waiters) < SWEPT_FROM, "what nobody waits for any more piles up"
    waiters.reached(1)
    assert [name for name, _ in told.all if name != "gone"] == ["without an end", "still waiting"]


def test_many_who_do_wait_are_not_looked_at_each_time() -> None:
    waiters, told, questions = Waiters(), Told(), 0

    def is_over() -> bool:
        nonlocal questions
        questions += 1
        return False

    count = 16 * SWEPT_FROM
    for _ in range(count):
        waiters.add(1, told.waiter("waiting"), is_over)
    assert len(waiters) == count
    assert questions < 3 * count, "each sweep has to wait until there are twice as many"
