"""`queued.max.request.bytes`: large requests that arrive at once wait for each other."""

from __future__ import annotations

import pytest

from strandline.node import intake as subject
from strandline.node.read_budget import BYTES_PER_S_MIN, ArrivalProgress, ReadBudget

from .conftest import produce, values_of

LIMIT = 1_000_000
LARGE = bytes(700_000)
HALF = 256 * 1024
"""Enough to fill the buffer that every connection has."""


def test_what_does_not_fit_waits_until_something_is_given_back() -> None:
    budget = ReadBudget(100)
    asked: list[str] = []
    assert budget.try_take("a", 90)
    assert budget.try_take("b", 50), "one at a time may go beyond the limit"
    assert not budget.try_take("c", 5)
    budget.when_freed("c", lambda: asked.append("c"))
    budget.when_freed("d", lambda: asked.append("d"))
    budget.give_back("a", 90)
    assert asked == ["c", "d"]
    assert budget.try_take("c", 5)
    assert not budget.try_take("d", 50)
    budget.give_back("b", 50)
    assert budget.try_take("d", 50)


def test_whoever_leaves_is_not_called() -> None:
    budget = ReadBudget(10)
    asked: list[str] = []
    budget.try_take("a", 20)
    budget.when_freed("gone", lambda: asked.append("gone"))
    budget.give_back("gone", 0)
    budget.give_back("a", 20)
    assert not asked


def test_minus_one_is_no_limit() -> None:
    unlimited = ReadBudget(-1)
    assert all(unlimited.try_take(i, 1 << 30) for i in range(10))


def test_giving_back_more_than_was_taken_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="more was given back"):
        ReadBudget(100).give_back("a", 1)


def test_a_request_has_to_arrive_at_the_least_rate() -> None:
    progress = ArrivalProgress()
    least = BYTES_PER_S_MIN * 10
    assert not progress.is_stalled(0, 100.0, 10.0)
    assert not progress.is_stalled(least - 1, 109.9, 10.0)
    assert not progress.is_stalled(least, 110.0, 10.0)
    assert not progress.is_stalled(least, 119.0, 10.0)
    assert progress.is_stalled(2 * least - 1, 120.0, 10.0), "what came before does not count again"


def test_it_is_not_the_peers_fault_when_we_do_not_read() -> None:
    progress = ArrivalProgress()
    assert not progress.is_stalled(5, 0.0, 10.0)
    progress.reset()
    assert not progress.is_stalled(5, 50.0, 10.0)
    assert progress.is_stalled(5, 60.0, 10.0)


def test_while_it_is_exhausted_a_read_takes_little(play):
    async def story(stage):
        end, other = stage.connect(), stage.connect()
        assert len(end.connection.get_buffer(-1)) == 256 * 1024
        other.feed(produce(bytes(LIMIT - 200), 1)[:-1])
        assert stage.node.resources.reads.is_exhausted
        assert len(end.connection.get_buffer(-1)) == subject.READ_BYTES_PRESSED
        other.lose()
        assert len(end.connection.get_buffer(-1)) == 256 * 1024
        assert stage.node.resources.reads.taken_bytes == 0

    play(story, queued_max_request_bytes=str(LIMIT), socket_request_max_bytes=str(LIMIT))


def test_a_third_large_request_is_read_once_one_is_served(play):
    async def story(stage):
        await stage.create()
        ends = [stage.connect() for _ in range(3)]
        requests = [produce(LARGE + b"%d" % i, i) for i in range(3)]
        left = [
            end.offer(request) for end, request in zip(ends[:2], (requests[0][:HALF], requests[1][:HALF]), strict=True)
        ]
        assert left == [b"", b""]
        left = ends[2].offer(requests[2])
        assert [end.reading_paused for end in ends] == [False, False, True], "two together reach the limit"
        ends[1].feed(requests[1][HALF:])
        assert ends[1].ids() == [1]
        ends[1].connection.rest()
        assert not ends[2].reading_paused
        ends[2].feed(left)
        ends[0].feed(requests[0][HALF:])
        assert ends[2].ids() + ends[0].ids() == [2, 0]
        assert values_of(stage.partition()) == [LARGE + b"1", LARGE + b"2", LARGE + b"0"]

    play(story, queued_max_request_bytes=str(LIMIT), socket_request_max_bytes=str(LIMIT))


def test_a_connection_that_is_lost_gives_its_room_back(play):
    async def story(stage):
        await stage.create()
        ends = [stage.connect() for _ in range(3)]
        for i, end in enumerate(ends[:2]):
            end.feed(produce(LARGE, i)[:HALF])
        left = ends[2].offer(produce(LARGE, 2))
        assert ends[2].reading_paused
        ends[1].lose()
        assert not ends[2].reading_paused
        ends[2].feed(left)
        assert ends[2].ids() == [2]

    play(story, queued_max_request_bytes=str(LIMIT), socket_request_max_bytes=str(LIMIT))
