"""`queued.max.request.bytes`: large requests that arrive at once wait for each other."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio
import random

import pytest

from strandline.node import intake as subject
from strandline.node.read_budget import ReadBudget
from strandline.records.compression import CompressionType

from .conftest import produce, values_of

LIMIT = 1_000_000
COPIED_LIMIT = 3_000_000
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


def test_a_copy_that_is_held_counts_and_nobody_goes_beyond_the_limit_meanwhile() -> None:
    """Each request would be copied beyond the limit, and its connection give the room back for the next."""
    budget = ReadBudget(100)
    asked: list[str] = []
    release = budget.hold(60)
    assert budget.try_take("a", 40)
    assert budget.is_exhausted
    assert not budget.try_take("a", 1), "who holds the copy will give room back by itself"
    budget.when_freed("a", lambda: asked.append("a"))
    release()
    assert (asked, budget.taken_bytes) == (["a"], 40)
    assert budget.try_take("a", 100), "one at a time may go beyond the limit"
    budget.hold(60)
    budget.give_back("a", 140)
    assert not budget.try_take("b", 50)
    with pytest.raises(AssertionError, match="more was released"):
        release(), release()


def test_copies_that_overlap_do_not_keep_a_large_request_waiting() -> None:
    """It would not fit without them either, so it need not wait for a moment in which there are none."""
    budget = ReadBudget(100)
    release = budget.hold(5)
    assert budget.try_take("a", 50)
    assert budget.try_take("b", 45)
    assert budget.try_take("a", 40), "there may always be another copy"
    assert not budget.try_take("b", 10), "one at a time"
    release()


class Asker:
    """Takes its room as soon as it may, or waits again."""

    def __init__(self, budget: ReadBudget, size: int) -> None:
        self.budget, self.size = budget, size
        self.has = False

    def ask(self) -> None:
        self.has = self.budget.try_take(self, self.size)
        if not self.has:
            self.budget.when_freed(self, self.ask)


def test_who_waited_longest_is_first_however_little_the_others_ask_for() -> None:
    budget = ReadBudget(100)
    assert budget.try_take("a", 60)
    assert budget.try_take("b", 60), "beyond the limit"
    large, small = Asker(budget, 70), Asker(budget, 5)
    large.ask()
    small.ask()
    budget.give_back("a", 60)
    assert (large.has, small.has, budget.waiting) == (False, False, 2)
    newcomer = Asker(budget, 1)
    newcomer.ask()
    assert not newcomer.has, "it is behind them"
    budget.give_back("b", 60)
    assert (large.has, small.has, newcomer.has, budget.waiting) == (True, True, True, 0)


def test_who_leaves_the_line_lets_the_next_one_ask() -> None:
    budget = ReadBudget(100)
    budget.try_take("a", 110)
    budget.limit_bytes = 120
    large, small = Asker(budget, 70), Asker(budget, 5)
    large.ask()
    small.ask()
    assert (large.has, small.has) == (False, False)
    budget.give_back(large, 0)
    assert small.has


def test_an_asked_one_that_gives_something_back_does_not_call_others_in_between() -> None:
    budget = ReadBudget(100)
    budget.try_take("a", 50)
    budget.try_take("b", 60)
    order: list[str] = []

    def first() -> None:
        order.append("first begins")
        assert budget.try_take("first", 40)
        budget.give_back("first", 40)
        order.append("first ends")

    budget.when_freed("first", first)
    budget.when_freed("second", lambda: order.append("second"))
    budget.give_back("a", 50)
    assert order == ["first begins", "first ends", "second"]


def test_minus_one_is_no_limit() -> None:
    unlimited = ReadBudget(-1)
    assert all(unlimited.try_take(i, 1 << 30) for i in range(10))


def test_giving_back_more_than_was_taken_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="more was given back"):
        ReadBudget(100).give_back("a", 1)


def test_while_it_is_exhausted_a_read_takes_little(play):
    async def story(stage):
        end, other = stage.connect(), stage.connect()
        assert len(end.connection.get_buffer(-1)) == 256 * 1024
        other.feed(produce(bytes(LIMIT - 200), 1)[:-1])
        assert stage.node.parts.resources.reads.is_exhausted
        assert len(end.connection.get_buffer(-1)) == subject.READ_BYTES_EXHAUSTED
        other.lose()
        assert len(end.connection.get_buffer(-1)) == 256 * 1024
        assert stage.node.parts.resources.reads.taken_bytes == 0

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


def test_copies_of_requests_that_wait_to_be_checked_stay_within_the_limit(play):
    """A hundred connections would have had a hundred copies, of up to 100 MiB each."""

    async def story(stage):
        await stage.create()
        budget = stage.node.parts.resources.reads
        noise = random.Random(1).randbytes(700_000) + bytes(700_000)
        ends = [stage.connect() for _ in range(10)]
        left = [end.offer(produce(noise, i, codec=CompressionType.ZSTD)) for i, end in enumerate(ends)]
        assert budget.held_bytes > 0
        assert budget.taken_bytes < 2 * COPIED_LIMIT
        waiting = [i for i, end in enumerate(ends) if left[i]]
        assert waiting
        while waiting:
            await asyncio.sleep(1)
            for i in waiting:
                left[i] = ends[i].offer(left[i])
            waiting = [i for i in waiting if left[i]]
        await asyncio.sleep(1)
        assert [end.ids() for end in ends] == [[i] for i in range(10)]
        assert budget.held_bytes == 0

    play(story, queued_max_request_bytes=str(COPIED_LIMIT), socket_request_max_bytes=str(COPIED_LIMIT))


def test_a_copy_is_given_back_when_its_connection_is_lost(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.feed(produce(random.Random(1).randbytes(700_000) + bytes(700_000), 1, codec=CompressionType.ZSTD))
        assert stage.node.parts.resources.reads.held_bytes > 700_000
        end.lose()
        await asyncio.sleep(1)
        assert stage.node.parts.resources.reads.taken_bytes == 0

    play(story)
