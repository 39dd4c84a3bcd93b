"""`queued.max.response.bytes`: what peers do not read is bounded, of one and of all (SEC-L3)."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import asyncio

from strandline.node import outflow
from strandline.node.reply_budget import RECOUNT_S, ReplyBudget

from .conftest import api_versions, fetch, produce

BATCH = 900_000
PER_CONNECTION = 2 << 20


class Peer:
    def __init__(self) -> None:
        self.unread = 0

    def unread_bytes(self) -> int:
        return self.unread


def test_what_is_held_counts_until_it_is_read() -> None:
    budget, one, other = ReplyBudget(100), Peer(), Peer()
    one.unread = 60
    budget.count(one, 60, 0.0)
    assert not budget.is_exhausted
    other.unread = 60
    budget.count(other, 60, 0.0)
    assert (budget.is_exhausted, budget.held_bytes, budget.exhausted_count) == (True, 120, 1)
    budget.count(one, 10, 0.1)
    assert (budget.is_exhausted, budget.held_bytes) == (False, 70)
    budget.count(one, 0, 0.1)
    budget.count(other, 0, 0.1)
    assert (budget.held_bytes, budget._held) == (0, {})


def test_bytes_that_left_meanwhile_do_not_exhaust_it() -> None:
    budget, gone, now = ReplyBudget(100), Peer(), Peer()
    budget.count(gone, 90, 0.0)
    now.unread = 50
    budget.count(now, 50, 0.0)
    assert (budget.is_exhausted, budget.held_bytes) == (False, 50), "counted anew before it is called exhausted"
    gone.unread = 90
    budget.count(gone, 90, RECOUNT_S / 2)
    assert budget.is_exhausted
    gone.unread = 0
    budget.count(now, 50, RECOUNT_S * 1.5)
    assert not budget.is_exhausted


async def fill(stage) -> None:
    await stage.create()
    filler = stage.connect()
    for number in range(8):
        filler.feed(produce(bytes(BATCH), number))


def test_a_fetch_reads_no_more_than_its_connection_may_hold(play):
    async def story(stage):
        await fill(stage)
        end = stage.connect()
        end.keep = False
        end.unread_bytes = 0
        end.feed(b"".join(fetch(0, number, max_bytes=50 << 20) for number in range(20)))
        assert PER_CONNECTION - BATCH < end.unread_bytes < PER_CONNECTION + BATCH + 100_000
        assert stage.node.parts.resources.replies.held_bytes == end.unread_bytes
        end.lose()
        assert stage.node.parts.resources.replies.held_bytes == 0

    play(story, queued_max_response_bytes_per_connection=str(PER_CONNECTION))


def test_while_the_node_holds_too_much_only_who_reads_goes_on(play):
    async def story(stage):
        await fill(stage)
        replies = stage.node.parts.resources.replies
        deaf = [stage.connect() for _ in range(8)]
        for end in deaf:
            end.keep = False
            end.unread_bytes = 0
            end.feed(fetch(0, 1, max_bytes=50 << 20))
        assert replies.is_exhausted
        # The last ones got one batch each, and nothing more is handled for any of them.
        assert replies.held_bytes < (4 << 20) + PER_CONNECTION + 8 * (BATCH + 1000)
        before = [end.sent_bytes for end in deaf]
        for end in deaf:
            end.feed(api_versions(2))
        assert [end.sent_bytes for end in deaf] == before
        honest = stage.connect()
        for number in range(20):
            honest.feed(api_versions(number))
            honest.feed(fetch(0, 100 + number, max_bytes=50 << 20))
            assert honest.ids() == [number, 100 + number]
        for end, sent_bytes in zip(deaf, before, strict=True):
            end.read_all()
            assert end.sent_bytes > sent_bytes
            assert end.high == honest.high, "its limits are the usual ones again"
            end.lose()
        assert (replies.held_bytes, replies.is_exhausted) == (0, False)
        assert 0 < honest.high <= outflow.WRITE_BUFFER_HIGH_BYTES

    play(
        story,
        queued_max_response_bytes=str(4 << 20),
        queued_max_response_bytes_per_connection=str(PER_CONNECTION),
    )


def test_a_peer_that_reads_nothing_is_cut_off_and_all_is_given_back(play):
    async def story(stage):
        await fill(stage)
        end = stage.connect()
        end.keep = False
        end.unread_bytes = 0
        end.feed(fetch(0, 1, max_bytes=50 << 20))
        quiet = stage.connect()
        await asyncio.sleep(28)
        assert not end.closed
        await asyncio.sleep(5)
        assert end.closed
        assert not quiet.closed
        assert stage.logged("a peer does not read its replies: closed") == 1
        assert stage.node.parts.resources.stalled_replies == 1
        assert stage.node.parts.resources.replies.held_bytes == 0

    play(story)


def test_while_the_node_holds_too_much_a_peer_that_reads_nothing_is_cut_off_sooner(play):
    async def story(stage):
        await fill(stage)
        deaf = [stage.connect() for _ in range(4)]
        for end in deaf:
            end.keep = False
            end.unread_bytes = 0
            end.feed(fetch(0, 1, max_bytes=50 << 20))
        await asyncio.sleep(outflow.EXHAUSTED_STALL_S + 3)
        assert any(end.closed for end in deaf)
        assert not stage.node.parts.resources.replies.is_exhausted
        assert not all(end.closed for end in deaf), "no more than is needed"

    play(
        story,
        queued_max_response_bytes=str(4 << 20),
        queued_max_response_bytes_per_connection=str(PER_CONNECTION),
    )


def test_peers_that_read_a_little_do_not_hold_the_budget_for_ever(play):
    async def story(stage):
        await fill(stage)
        slow = [stage.connect() for _ in range(4)]
        for end in slow:
            end.keep = False
            end.unread_bytes = 0
            end.feed(fetch(0, 1, max_bytes=50 << 20))
        replies = stage.node.parts.resources.replies
        assert replies.is_exhausted
        for _ in range(10):
            await asyncio.sleep(1)
            for end in slow:
                if not end.closed:
                    end.unread_bytes -= 1000
        assert any(end.closed for end in slow)
        assert not replies.is_exhausted
        assert not all(end.closed for end in slow), "no more than is needed"
        assert stage.node.parts.resources.stalled_replies == sum(end.closed for end in slow)

    play(
        story,
        queued_max_response_bytes=str(4 << 20),
        queued_max_response_bytes_per_connection=str(PER_CONNECTION),
    )


def test_while_the_budget_is_exhausted_a_peer_that_reads_well_is_kept(play):
    async def story(stage):
        await fill(stage)
        ends = [stage.connect() for _ in range(4)]
        for end in ends:
            end.keep = False
            end.unread_bytes = 0
            end.feed(fetch(0, 1, max_bytes=50 << 20))
        for _ in range(8):
            await asyncio.sleep(1)
            for end in ends:
                end.unread_bytes -= 70_000
        assert not any(end.closed for end in ends)

    play(
        story,
        queued_max_response_bytes=str(4 << 20),
        queued_max_response_bytes_per_connection=str(PER_CONNECTION),
    )
