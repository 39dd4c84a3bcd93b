"""Turns: one connection's requests, however many were sent at once, leave time for the others (SEC-L1)."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type, misc"

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from strandline.node.turns import ROUND_S, TURN_S_MAX, TURN_S_MIN, ConnectionTurns

from .conftest import api_versions, fetch, produce, values_of


class SlowClock:
    """Every look at it takes a millisecond."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class Loop:
    """Callbacks that wait for the test to run them."""

    def __init__(self) -> None:
        self.soon: list[tuple[Callable[..., None], tuple[object, ...]]] = []

    def call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        self.soon.append((callback, arguments))

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback, arguments in soon:
            callback(*arguments)


def test_the_more_wait_the_shorter_are_the_turns() -> None:
    turns, loop, clock = ConnectionTurns(), Loop(), SlowClock()
    assert turns.turn_s == TURN_S_MAX
    went_on = []
    for number in range(4):
        turns.stop(lambda number=number: went_on.append(number), loop, clock)
    assert turns.turn_s == max(ROUND_S / 4, TURN_S_MIN)
    for number in range(4, 1009):
        turns.stop(lambda number=number: went_on.append(number), loop, clock)
    assert (turns.turn_s, turns.waiting, turns.ended_early) == (TURN_S_MIN, 1009, 1009)
    loop.turn()
    assert 1 <= len(went_on) <= ROUND_S / 0.001 + 1, "a round is bounded, whoever waits"
    while loop.soon:
        loop.turn()
    assert went_on == list(range(1009))
    assert (turns.turn_s, turns.waiting) == (TURN_S_MAX, 0)


def test_whoever_stops_again_goes_to_the_end_of_the_line() -> None:
    turns, loop, clock = ConnectionTurns(), Loop(), SlowClock()
    went_on = []

    def again() -> None:
        went_on.append("again")
        if len(went_on) < 5:
            turns.stop(again, loop, clock)

    turns.stop(again, loop, clock)
    turns.stop(lambda: went_on.append("other"), loop, clock)
    while loop.soon:
        loop.turn()
    assert went_on[:2] == ["again", "other"]
    assert went_on.count("other") == 1


def test_one_that_fails_does_not_stop_the_line() -> None:
    turns, loop, clock = ConnectionTurns(), Loop(), SlowClock()
    went_on = []

    def fail() -> None:
        raise ValueError("a defect")

    turns.stop(fail, loop, clock)
    turns.stop(lambda: went_on.append(1), loop, clock)
    with pytest.raises(ValueError, match="a defect"):
        loop.turn()
    loop.turn()
    assert (went_on, turns.waiting) == ([1], 0)
    turns.stop(fail, loop, clock)
    with pytest.raises(ValueError, match="a defect"):
        loop.turn()
    turns.stop(lambda: went_on.append(2), loop, clock)
    loop.turn()
    assert went_on == [1, 2]


def test_a_turn_ends_and_another_connection_is_served_before_the_rest(play):
    async def story(stage):
        end, other = stage.connect(), stage.connect()
        end.connection._now = SlowClock()
        count = 40
        end.feed(b"".join(api_versions(number) for number in range(count)))
        first = end.ids()
        assert 1 <= len(first) <= 6
        assert end.reading_paused, "what is there comes first"
        other.feed(api_versions(7))
        assert other.ids() == [7]
        served = [*first]
        turns = 1
        while len(served) < count:
            await asyncio.sleep(0)
            served += end.ids()
            turns += 1
        assert served == list(range(count))
        assert turns >= count // 12
        await asyncio.sleep(0)
        assert not end.reading_paused
        assert stage.node.parts.resources.turns.waiting == 0
        assert stage.node.parts.resources.turns.ended_early >= count // 6 - 1

    play(story)


def test_turns_keep_the_order_of_produces_fetches_and_barriers(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.connection._now = SlowClock()
        requests = []
        for number in range(30):
            requests.append(produce(b"%d" % number, 2 * number))
            requests.append(fetch(number, 2 * number + 1, max_wait_ms=60_000))
        left = end.offer(b"".join(requests))
        assert end.reading_paused or not left
        await asyncio.sleep(1)
        end.feed(left)
        await asyncio.sleep(1)
        assert end.ids() == list(range(60))
        assert values_of(stage.partition()) == [b"%d" % number for number in range(30)]

    play(story)


def test_a_connection_that_is_lost_while_it_waits_for_its_turn_gives_it_back(play):
    async def story(stage):
        end = stage.connect()
        end.connection._now = SlowClock()
        end.feed(api_versions(1) * 100)
        assert stage.node.parts.resources.turns.waiting == 1
        end.lose()
        await asyncio.sleep(0.1)
        assert stage.node.parts.resources.turns.waiting == 0

    play(story)


def test_a_connection_that_is_cut_off_while_it_waits_for_its_turn_has_nothing_handled(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.connection._now = SlowClock()
        end.feed(b"".join(produce(b"v", number) for number in range(100)))
        before = len(values_of(stage.partition()))
        assert before < 100
        # As uvloop does: the connection is lost a little later.
        end.abort = lambda: asyncio.get_running_loop().call_later(5.0, end.lose)
        end.connection.abort()
        await asyncio.sleep(1)
        assert not end.closed
        assert len(values_of(stage.partition())) == before
        await asyncio.sleep(5)
        assert end.closed

    play(story)
