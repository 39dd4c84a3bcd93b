"""Connections: frames in, replies out, in order, whatever the peer does."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import pytest

from strandline.api.reply import Later
from strandline.api.table import APIS, Api
from strandline.node import connection as subject
from strandline.node.connection import Connection
from strandline.records.batch import BatchBuilder, decode
from strandline.records.header import iterate
from strandline.sim.transport import poison
from strandline.wire import messages
from strandline.wire.headers import read_response_header

from .conftest import (
    API_VERSIONS,
    DELETE_TOPICS,
    FETCH,
    PRODUCE,
    Delete,
    Produce,
    api_versions,
    fetch,
    frame,
    framed,
    produce,
)

UNKNOWN_API = 999


def values_in(data: bytes) -> list[bytes]:
    view = memoryview(data)
    return [record.value for at, header in iterate(data) for record in decode(view[at : at + header.size_bytes])]


def values_of(partition) -> list[bytes]:
    segment = partition.log.active
    return values_in(segment.file.read_blocking(0, segment.size))


def fetched(reply: bytes):
    """Error code and values of the only partition in a Fetch reply without its correlation id."""
    [answer] = messages.decode_response(FETCH, 12, reply, 1).responses[0].partitions
    return answer.error_code, values_in(answer.records or b"")


# Frames


def test_frames_split_at_every_position_are_the_same_requests(play):
    async def story(stage):
        await stage.create()
        data = api_versions(1) + produce(b"v", 2, acks=1) + api_versions(3)
        for at in range(len(data) + 1):
            end = stage.connect()
            end.feed(data[:at])
            end.feed(data[at:])
            assert end.ids() == [1, 2, 3], at
            end.lose()
        assert values_of(stage.partition()) == [b"v"] * (len(data) + 1)

    play(story)


def test_frames_that_come_byte_by_byte(play):
    async def story(stage):
        end = stage.connect()
        for byte in api_versions(1) + api_versions(2):
            end.feed(bytes([byte]))
        assert end.ids() == [1, 2]

    play(story)


def test_many_frames_in_one_read_leave_as_one_write(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.feed(b"".join(produce(b"v%d" % i, i) for i in range(20)))
        assert end.ids() == list(range(20))
        assert values_of(stage.partition()) == [b"v%d" % i for i in range(20)]

    play(story)


def test_a_frame_larger_than_the_buffer(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        value = bytes(range(256)) * 3000
        end.feed(produce(b"before", 1) + produce(value, 2) + produce(b"after", 3))
        assert end.ids() == [1, 2, 3]
        assert values_of(stage.partition()) == [b"before", value, b"after"]

    play(story)


def test_a_claimed_size_gets_no_memory_before_its_bytes_come(play):
    async def story(stage):
        end = stage.connect()
        end.feed((90 << 20).to_bytes(4, "big"))
        for _ in range(1000):
            end.feed(b"x")
        assert len(end.connection._buffer) == subject.READ_BUFFER_BYTES
        end.feed(bytes(3 << 20))
        assert len(end.connection._buffer) <= 2 * (4 << 20)
        assert not end.closed

    play(story)


def test_a_buffer_that_grew_for_one_frame_is_given_back(play):
    async def story(stage):
        end = stage.connect()
        end.feed(api_versions(1, tail_bytes=9 << 20) + api_versions(2))
        assert end.ids() == [1, 2]
        end.feed(api_versions(3))
        assert end.ids() == [3]
        assert len(end.connection._buffer) == subject.READ_BUFFER_BYTES

    play(story)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff\xff\xff", b"\x80\0\0\0", (100 * 1024 * 1024 + 1).to_bytes(4, "big"), b"GET / HTTP/1.1\r\n"],
    ids=["-1", "least", "one more than allowed", "HTTP"],
)
def test_a_size_that_cannot_be_closes_the_connection(play, data):
    async def story(stage):
        end, other = stage.connect(), stage.connect()
        end.feed(data)
        assert end.closed
        assert not end.sent
        other.feed(api_versions(5))
        assert other.ids() == [5]

    play(story)


def test_the_largest_size_is_allowed(play):
    async def story(stage):
        end = stage.connect()
        end.feed(api_versions(1, tail_bytes=1000 - len(api_versions()) + 4))
        assert end.ids() == [1]
        end.feed(api_versions(2, tail_bytes=1001 - len(api_versions()) + 4))
        assert end.closed

    play(story, socket_request_max_bytes="1000")


@pytest.mark.parametrize("size", [0, 1, 7, 9])
def test_a_frame_too_short_for_a_header_closes_the_connection(play, size):
    async def story(stage):
        end = stage.connect()
        end.feed(size.to_bytes(4, "big") + bytes(size))
        assert end.closed

    play(story)


# APIs and versions


def test_an_unknown_api_closes_the_connection(play):
    async def story(stage):
        end = stage.connect()
        end.feed(framed(UNKNOWN_API, 0, b""))
        assert end.closed
        assert stage.logged("unknown API key 999") == 1

    play(story)


@pytest.mark.parametrize("api_key", [key for key in APIS if key != API_VERSIONS])
def test_an_unsupported_version_closes_the_connection(play, api_key):
    async def story(stage):
        for version in (-1, APIS[api_key].versions[0] - 1, APIS[api_key].versions[-1] + 1, 32767):
            end = stage.connect()
            end.feed(framed(api_key, version, bytes(100)))
            assert end.closed
            assert not end.sent

    play(story)


@pytest.mark.parametrize("version", [-1, 99, 32767])
def test_api_versions_in_an_unknown_version_is_told_ours_in_version_0(play, version):
    async def story(stage):
        end = stage.connect()
        end.feed(framed(API_VERSIONS, version, b"whatever", 7) + api_versions(8))
        (first, reply), (second, _) = end.replies()
        assert (first, second) == (7, 8)
        answer = messages.decode_response(API_VERSIONS, 0, reply)
        assert answer.error_code == 35
        assert API_VERSIONS in [api.api_key for api in answer.api_keys]

    play(story)


def test_replies_to_what_came_before_a_bad_request_still_leave(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.feed(api_versions(1) + produce(b"v", 2) + framed(UNKNOWN_API, 0, b"", 3) + produce(b"never", 4))
        assert end.closed
        assert end.ids() == [1, 2]
        assert values_of(stage.partition()) == [b"v"]

    play(story)


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
        sent = 0
        while not end.reading_paused:
            sent += 1
            end.feed(produce(bytes(10_000), sent))
            assert sent < 100
        assert sent * 10_000 > subject.READ_AHEAD_BYTES_MAX - 20_000
        assert partition.log.log_end_offset == 0
        other.feed(produce(b"wakes", 1))
        await asyncio.sleep(0)
        assert not end.reading_paused
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
        assert end.sent_bytes < subject.WRITE_BUFFER_HIGH_BYTES + (8 << 20)
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
            end.feed(one * 100)
        assert end.sent_bytes < subject.WRITE_BUFFER_HIGH_BYTES + 2 * subject.READY_BYTES_MAX
        end.unread_bytes = None
        end.connection.resume_writing()
        assert not end.reading_paused

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
        held = sum(sum(map(len, slot.buffers)) for slot in end.connection._slots if slot.buffers)
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
        for number in range(count):
            end.feed(produce(b"v", number))
        assert partition.log.log_end_offset == subject.REQUESTS_IN_FLIGHT_MAX
        await asyncio.sleep(60)
        assert end.ids() == list(range(count))
        assert partition.log.log_end_offset == count

    play(story)


# Endings


def test_a_lost_connection_cancels_what_waits(play):
    async def story(stage):
        partition = await stage.create(flush_messages="1")
        stage.flushes_take(5.0)
        end, reader = stage.connect(), stage.connect()
        end.feed(produce(b"v", 1))
        reader.feed(fetch(0, 1, max_wait_ms=60_000))
        assert partition.readers
        reader.lose()
        end.lose()
        assert not partition.readers
        await asyncio.sleep(100)
        assert (end.sent, reader.sent) == (b"", b"")
        assert partition.high_watermark == 1

    play(story)


def test_a_lost_connection_cancels_work_in_a_task(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        before = asyncio.all_tasks()
        end.feed(frame(DELETE_TOPICS, 6, Delete(topics=[Delete.DeleteTopicState(name="t")], timeout_ms=1000)))
        [task] = asyncio.all_tasks() - before
        end.lose()
        await asyncio.sleep(5)
        assert task.cancelled()
        assert not end.sent

    play(story)


@pytest.mark.parametrize("max_wait_ms", [0, 1000], ids=["at once", "after a wait"])
def test_a_large_reply_is_freed_without_the_cyclic_collector(play, max_wait_ms):
    async def story(stage):
        await stage.create()
        filler, end = stage.connect(), stage.connect()
        end.keep = False
        for number in range(8):
            filler.feed(produce(bytes(1_000_000), number))
        min_bytes = 20 << 20 if max_wait_ms else 1
        end.feed(fetch(0, 1, max_bytes=30 << 20, max_wait_ms=max_wait_ms, min_bytes=min_bytes))
        await asyncio.sleep(2)
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for number in range(3):
                end.feed(fetch(0, number, max_bytes=30 << 20, max_wait_ms=max_wait_ms, min_bytes=min_bytes))
                await asyncio.sleep(2)
            after, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
        assert end.sent_bytes > 4 * 8_000_000
        assert peak - before > 8_000_000
        assert after - before < 1_000_000

    play(story)


def test_acks_0_gets_no_reply(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.feed(produce(b"quiet", 1, acks=0) + api_versions(2))
        assert end.ids() == [2]
        assert values_of(stage.partition()) == [b"quiet"]

    play(story)


def test_acks_0_with_an_error_closes_that_connection_only(play):
    async def story(stage):
        end, other = stage.connect(), stage.connect()
        end.feed(api_versions(1) + produce(b"v", 2, acks=0, topic="absent"))
        assert end.closed
        assert end.ids() == [1]
        other.feed(api_versions(3))
        assert other.ids() == [3]
        assert not stage.logged("could not answer")

    play(story)


def failing_later(error):
    later = Later(may_be_overtaken=False)
    asyncio.get_running_loop().call_soon(later.fail, error)
    return later


async def failing_coroutine(error):
    await asyncio.sleep(0)
    raise error


def raising(error):
    raise error


@pytest.mark.parametrize(
    "outcome",
    [raising, failing_later, failing_coroutine, lambda error: object()],
    ids=["raises", "fails later", "raises in a task", "cannot be written"],
)
def test_an_exception_in_a_handler_closes_only_that_connection(play, monkeypatch, outcome):
    error = ValueError("a bug")
    broken = Api(3, "Broken", range(1), lambda frame, context, position: outcome(error), True, "")
    monkeypatch.setitem(APIS, 3, broken)

    async def story(stage):
        await stage.create()
        end, other = stage.connect(), stage.connect()
        end.feed(api_versions(1) + framed(3, 0, b"", 2) + produce(b"never", 3))
        await asyncio.sleep(1)
        assert end.closed
        assert end.ids() == [1]
        assert stage.logged("could not answer a request") == 1
        assert stage.partition().log.log_end_offset == 0
        other.feed(api_versions(4))
        assert other.ids() == [4]

    play(story)


# Buffers


class Poisoning(Connection):
    """Fills each frame with junk once it was handled: whoever kept a view of it has junk now."""

    def _handle(self, frame: memoryview) -> bool:
        handled = super()._handle(frame)
        poison(frame)
        return handled


@pytest.mark.parametrize(
    "configs", [{}, {"flush_messages": "1"}, {"compression_type": "gzip"}, {"cleanup_policy": "compact"}]
)
def test_nothing_keeps_a_view_into_a_frame(play, configs):
    async def story(stage):
        partition = await stage.create(**configs)
        end = stage.connect(Poisoning)
        data = [b"value %d" % number for number in range(50)]
        for number, value in enumerate(data):
            end.feed(keyed(value, number) if "cleanup_policy" in configs else produce(value, number))
        end.feed(fetch(0, 50))
        end.feed(fetch(50, 51, max_wait_ms=5_000))
        await asyncio.sleep(1)
        stage.connect(Poisoning).feed(keyed(b"last", 1))
        await asyncio.sleep(20)
        replies = dict(end.replies())
        assert sorted(replies) == list(range(52))
        for number in range(50):
            answer = messages.decode_response(0, 9, replies[number], 1).responses[0]
            assert answer.name == "t"
            assert (answer.partition_responses[0].error_code, answer.partition_responses[0].base_offset) == (0, number)
        assert values_of(partition) == [*data, b"last"]
        assert fetched(replies[51]) == (0, [b"last"])
        sessions = stage.node.broker.fetch_sessions
        assert len(sessions) == 0

    def keyed(value, correlation_id):
        builder = BatchBuilder()
        builder.append(value, value, timestamp=1000)
        data = Produce.PartitionProduceData(index=0, records=bytes(builder.build()))
        topic = Produce.TopicProduceData(name="t", partition_data=[data])
        return frame(PRODUCE, 9, Produce(acks=-1, timeout_ms=60_000, topic_data=[topic]), correlation_id)

    play(story)


def test_replies_have_the_header_of_their_version(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.feed(fetch(0, 77))
        _, position = read_response_header(FETCH, 12, bytes(end.sent), 4)
        assert position == 9

    play(story)
