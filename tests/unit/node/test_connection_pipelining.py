"""Pipelining on one connection: who may overtake whom, and when the peer has to wait."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="func-returns-value"

from __future__ import annotations

import asyncio

from strandline.errors import ErrorCode
from strandline.node import connection as subject
from strandline.node import outflow
from strandline.node.frame_buffer import BUFFER_BYTES
from strandline.wire import messages

from .conftest import DELETE_TOPICS, Delete, api_versions, fetch, fetched, frame, produce, values_of

# Pipelining


def test_waiting_produces_are_all_appended_and_answered_in_order(play):
    async def story(stage):
        partition = await stage.create(flush_messages="1")
        stage.flushes_take(1.0)
        end = stage.connect()
        for number in range(5):
            end.feed(produce(b"v%d" % number, number))
        assert partition.log.log_end_offset == 5
        assert partition.high_watermark == 0
        assert not end.sent
        await asyncio.sleep(0.5)
        assert not end.sent
        await asyncio.sleep(3)
        assert end.ids() == list(range(5))
        assert partition.high_watermark == 5

    play(story)


def test_what_one_watermark_completes_leaves_with_one_write(play, monkeypatch):
    async def story(stage):
        await stage.create(flush_messages="1")
        stage.flushes_take(1.0)
        end = stage.connect()
        writes = []
        written = end.write
        monkeypatch.setattr(end, "write", lambda data: (writes.append(len(data)), written(data)))
        end.feed(b"".join(produce(b"v%d" % number, number) for number in range(3)))
        await asyncio.sleep(5)
        assert end.ids() == [0, 1, 2]
        assert len(writes) == 1

    play(story)


def test_a_reply_that_is_about_to_leave_does_so_before_the_connection_is_closed(play):
    async def story(stage):
        partition = await stage.create(flush_messages="1")
        stage.flushes_take(60.0)
        end = stage.connect()
        end.feed(produce(b"a", 1) + produce(b"b", 2))
        partition.stop(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        end.connection.close()
        assert end.ids() == [1, 2]

    play(story)


def test_a_request_behind_a_waiting_produce_is_handled_and_answered_after_it(play):
    async def story(stage):
        await stage.create("quick")
        await stage.create(flush_messages="1")
        stage.flushes_take(1.0)
        end = stage.connect()
        end.feed(
            produce(b"slow", 1) + produce(b"fast", 2, topic="quick") + fetch(0, 3, topic="quick") + api_versions(4)
        )
        assert values_of(stage.partition("quick")) == [b"fast"]
        assert not end.sent
        await asyncio.sleep(5)
        replies = end.replies()
        assert [correlation_id for correlation_id, _ in replies] == [1, 2, 3, 4]
        assert fetched(replies[2][1]) == (0, [b"fast"])

    play(story)


def test_a_waiting_fetch_is_a_barrier(play):
    async def story(stage):
        partition = await stage.create()
        end, other = stage.connect(), stage.connect()
        end.feed(fetch(0, 1, max_wait_ms=10_000) + produce(b"behind", 2) + api_versions(3))
        await asyncio.sleep(1)
        assert partition.log.log_end_offset == 0
        assert not end.sent
        other.feed(produce(b"wakes", 1))
        # The fetch is answered by the append itself, what is behind it in the next turn of the loop.
        [(first, reply)] = end.replies()
        assert (first, fetched(reply)) == (1, (0, [b"wakes"]))
        await asyncio.sleep(0)
        assert end.ids() == [2, 3]
        assert values_of(partition) == [b"wakes", b"behind"]

    play(story)


def test_a_request_that_waits_for_the_controller_is_a_barrier(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        delete = Delete(topics=[Delete.DeleteTopicState(name="t")], timeout_ms=1000)
        end.feed(frame(DELETE_TOPICS, 6, delete, 1) + produce(b"too late", 2))
        assert not end.sent
        await asyncio.sleep(5)
        (first, _), (second, reply) = end.replies()
        assert (first, second) == (1, 2)
        assert messages.decode_response(0, 9, reply, 1).responses[0].partition_responses[0].error_code == 3

    play(story)


def test_a_produce_that_waits_too_long_is_told_so_in_its_turn(play):
    async def story(stage):
        await stage.create(flush_messages="1")
        stage.flushes_take(30.0)
        end = stage.connect()
        end.feed(produce(b"patient", 1, timeout_ms=60_000) + produce(b"hasty", 2, timeout_ms=100))
        await asyncio.sleep(10)
        assert not end.sent
        await asyncio.sleep(60)
        (first, patient), (second, hasty) = end.replies()
        codes = [
            messages.decode_response(0, 9, reply, 1).responses[0].partition_responses[0].error_code
            for reply in (patient, hasty)
        ]
        assert (first, second, codes) == (1, 2, [0, 7])

    play(story)


def test_waiting_fetches_that_append_when_woken_do_not_pile_up_on_the_stack(play):
    async def story(stage):
        partition = await stage.create()
        ends = [stage.connect() for _ in range(300)]
        for number, end in enumerate(ends):
            end.feed(fetch(0, 1, max_wait_ms=60_000) + produce(b"%d" % number, 2))
        stage.connect().feed(produce(b"first", 1))
        await asyncio.sleep(1)
        assert [end.ids() for end in ends] == [[1, 2]] * 300
        assert partition.log.log_end_offset == 301
        assert not stage.logged("could not answer")

    play(story)


# Back-pressure


def test_reading_pauses_behind_a_barrier_and_goes_on_after_it(play):
    async def story(stage):
        partition = await stage.create()
        end, other = stage.connect(), stage.connect()
        end.feed(fetch(0, 0, max_wait_ms=60_000))
        sent = 100
        left = end.offer(b"".join(produce(bytes(10_000), number) for number in range(1, sent + 1)))
        assert end.reading_paused
        assert sent * 10_000 - len(left) > BUFFER_BYTES - 20_000
        assert partition.log.log_end_offset == 0
        other.feed(produce(b"wakes", 1))
        await asyncio.sleep(0)
        assert not end.reading_paused
        end.feed(left)
        assert end.ids() == list(range(sent + 1))
        assert partition.log.log_end_offset == sent + 1

    play(story)


def test_a_peer_that_does_not_read_is_not_served(play):
    async def story(stage):
        await stage.create()
        filler = stage.connect()
        for number in range(8):
            filler.feed(produce(bytes(900_000), number))
        end = stage.connect()
        end.keep = False
        end.unread_bytes = 0
        end.feed(b"".join(fetch(0, number, max_bytes=8 << 20) for number in range(50)))
        # It stops with the reply that fills the buffer, not with all those that were asked for.
        assert end.sent_bytes < outflow.WRITE_BUFFER_HIGH_BYTES + (8 << 20)
        before = end.sent_bytes
        end.feed(api_versions(1))
        assert end.sent_bytes == before
        end.read_all()
        assert end.sent_bytes > 50 * 8 * 900_000

    play(story)


def test_many_small_replies_do_not_pile_up_either(play):
    async def story(stage):
        end = stage.connect()
        end.keep = False
        end.unread_bytes = 0
        one = api_versions(1)
        while not end.reading_paused:
            left = end.offer(one * 100)
        assert end.sent_bytes < outflow.WRITE_BUFFER_HIGH_BYTES + 2 * subject.READY_BYTES_MAX
        end.unread_bytes = None
        end.connection.resume_writing()
        assert not end.reading_paused
        end.feed(left)

    play(story)


def test_replies_behind_a_waiting_produce_are_bounded(play):
    async def story(stage):
        await stage.create("big")
        filler = stage.connect()
        for number in range(4):
            filler.feed(produce(bytes(900_000), number, topic="big"))
        await stage.create(flush_messages="1")
        stage.flushes_take(1.0)
        end = stage.connect()
        end.keep = False
        end.feed(produce(b"slow", 1) + b"".join(fetch(0, n, topic="big", max_bytes=8 << 20) for n in range(100)))
        held = sum(sum(map(len, slot.buffers)) for slot in end.connection._replies.slots if slot.buffers)
        assert 0 < held < subject.REPLIES_HELD_BYTES_MAX + (8 << 20)
        await asyncio.sleep(5)
        assert end.sent_bytes > 100 * 3_600_000
        assert end.connection.is_idle

    play(story)


def test_requests_in_flight_are_bounded(play):
    async def story(stage):
        partition = await stage.create(flush_messages="1")
        stage.flushes_take(10.0)
        end = stage.connect()
        count = subject.REQUESTS_IN_FLIGHT_MAX + 50
        left = end.offer(b"".join(produce(b"v", number) for number in range(count)))
        assert partition.log.log_end_offset == subject.REQUESTS_IN_FLIGHT_MAX
        await asyncio.sleep(60)
        end.feed(left)
        await asyncio.sleep(60)
        assert end.ids() == list(range(count))
        assert partition.log.log_end_offset == count

    play(story)
