"""`queued.max.request.bytes`: large requests that arrive at once wait for each other."""

from __future__ import annotations

import pytest

from strandline.node.read_budget import ReadBudget

from .conftest import produce, values_of

LIMIT = 1_000_000
LARGE = bytes(700_000)


def test_what_does_not_fit_waits_until_something_is_given_back() -> None:
    budget = ReadBudget(100)
    asked: list[str] = []
    assert budget.try_take(60)
    assert not budget.try_take(50)
    budget.when_freed(lambda: asked.append("first"))
    budget.when_freed(lambda: asked.append("second"))
    budget.give_back(60)
    assert asked == ["first", "second"]
    assert budget.try_take(50)


def test_a_single_request_always_fits_and_minus_one_is_no_limit() -> None:
    assert ReadBudget(100).try_take(1000)
    unlimited = ReadBudget(-1)
    assert all(unlimited.try_take(1 << 30) for _ in range(10))


def test_giving_back_more_than_was_taken_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="more was given back"):
        ReadBudget(100).give_back(1)


def test_a_second_large_request_is_read_once_the_first_is_served(play):
    async def story(stage):
        await stage.create()
        first, second = stage.connect(), stage.connect()
        one, two = produce(LARGE + b"1", 1), produce(LARGE + b"2", 2)
        first.feed(one[:400_000])
        second.feed(two[:200_000])
        assert second.reading_paused, "both together are more than may be held"
        assert not first.reading_paused
        first.feed(one[400_000:])
        assert first.ids() == [1]
        assert not second.reading_paused
        second.feed(two[200_000:])
        assert second.ids() == [2]
        assert values_of(stage.partition()) == [LARGE + b"1", LARGE + b"2"]

    play(story, queued_max_request_bytes=str(LIMIT), socket_request_max_bytes=str(LIMIT))


def test_a_connection_that_is_lost_gives_its_room_back(play):
    async def story(stage):
        await stage.create()
        first, second = stage.connect(), stage.connect()
        first.feed(produce(LARGE, 1)[:400_000])
        request = produce(LARGE, 2)
        second.feed(request[:200_000])
        assert second.reading_paused
        first.lose()
        assert not second.reading_paused
        second.feed(request[200_000:])
        assert second.ids() == [2]

    play(story, queued_max_request_bytes=str(LIMIT), socket_request_max_bytes=str(LIMIT))
