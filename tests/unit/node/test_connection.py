"""Connections: frames in, replies out, whatever the peer does."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import warnings

import pytest

from strandline.api.requests.pending_reply import PendingReply
from strandline.api.table import BROKER_APIS, Api
from strandline.errors import ErrorCode
from strandline.node.connection import Connection
from strandline.records.batch import BatchBuilder
from strandline.records.compression import CompressionType
from strandline.sim.transport import poison
from strandline.wire import messages
from strandline.wire.headers import read_response_header

from .conftest import (
    API_VERSIONS,
    DELETE_TOPICS,
    FETCH,
    PRODUCE,
    Delete,
    End,
    Produce,
    api_versions,
    fetch,
    fetched,
    frame,
    framed,
    produce,
    values_of,
)

UNKNOWN_API = 999
METADATA, INIT_PRODUCER_ID, VOTE = 3, 22, 52


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


def test_a_client_of_a_controllers_listener_is_told_so(play):
    async def story(stage):
        end = End(Connection(stage.listener, stage.node.context, "CONTROLLER", stage.listener.resources))
        end.feed(frame(METADATA, 13, messages.request(METADATA)(topics=None), 7))
        [(correlation_id, rest)] = end.replies()
        reply = messages.decode_response(METADATA, 13, rest, 1)
        assert correlation_id == 7
        assert (reply.error_code, reply.brokers) == (ErrorCode.MISMATCHED_ENDPOINT_TYPE, [])
        end.feed(frame(METADATA, 12, messages.request(METADATA)(topics=None)))
        assert end.closed
        assert stage.logged("Metadata was sent to the listener CONTROLLER of a controller") == 1

    play(story)


def test_a_controllers_request_on_a_brokers_listener_ends_the_connection_with_the_reason(play):
    async def story(stage):
        end = stage.connect()
        end.feed(framed(VOTE, 0, b""))
        assert end.closed
        assert stage.logged("unknown API key 52 on a broker's listener; a controller's address is wanted") == 1

    play(story)


@pytest.mark.parametrize("api_key", [key for key in BROKER_APIS if key != API_VERSIONS])
def test_an_unsupported_version_closes_the_connection(play, api_key):
    async def story(stage):
        for version in (-1, BROKER_APIS[api_key].versions[0] - 1, BROKER_APIS[api_key].versions[-1] + 1, 32767):
            end = stage.connect()
            end.feed(framed(api_key, version, bytes(100)))
            assert end.closed
            assert not end.sent

    play(story)


@pytest.mark.parametrize("is_turned_on", [False, True])
def test_txn_q1_a_version_that_kafka_may_still_change_is_unknown_unless_it_is_turned_on(play, is_turned_on):
    async def story(stage):
        init = messages.request(INIT_PRODUCER_ID)(transactional_id=None, transaction_timeout_ms=60_000)
        for version, is_served in ((5, True), (6, is_turned_on), (7, False)):
            end = stage.connect()
            end.feed(
                framed(INIT_PRODUCER_ID, version, messages.encode_request(INIT_PRODUCER_ID, min(version, 6), init))
            )
            await asyncio.sleep(1)
            assert end.closed is not is_served
            assert bool(end.sent) is is_served
        assert stage.logged(f"InitProducerId version 7, we serve 0-{6 if is_turned_on else 5}") == 1

    play(story, unstable_api_versions_enable=str(is_turned_on).lower())


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


def test_a_lost_connection_does_not_take_another_ones_answer_along(play):
    async def story(stage):
        await stage.create()
        end, other = stage.connect(), stage.connect()
        for name, connected in (("t", end), ("absent", other)):
            delete = Delete(topics=[Delete.DeleteTopicState(name=name)], timeout_ms=1000)
            connected.feed(frame(DELETE_TOPICS, 6, delete, 5))
        await asyncio.sleep(0)
        end.lose()
        await asyncio.sleep(5)
        assert other.ids() == [5]

    play(story)


def test_work_that_is_cancelled_from_elsewhere_ends_its_connection(play, monkeypatch):
    async def cancelled(frame, context, position):
        raise asyncio.CancelledError

    monkeypatch.setitem(BROKER_APIS, 3, Api(3, "Cancelled", range(1), cancelled, True, ""))

    async def story(stage):
        end = stage.connect()
        end.feed(framed(3, 0, b"", 1))
        await asyncio.sleep(1)
        assert end.closed

    play(story)


@pytest.mark.parametrize("how", ["lose", "give up", "close"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_an_answer_that_takes_time_is_begun_though_its_connection_is_gone(play, monkeypatch, how, is_nested):
    """Cancelled before its first step a task would drop the coroutine that it was to await, and those in its arguments."""
    ended = []

    async def answer():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    async def wrapped(reply):
        return await reply

    def handle(frame, context, position):
        return wrapped(answer()) if is_nested else answer()

    monkeypatch.setitem(BROKER_APIS, 3, Api(3, "Slow", range(1), handle, True, ""))

    async def story(stage):
        end = stage.connect()
        end.feed(framed(3, 0, b"", 1))
        match how:
            case "lose":
                end.lose()
            case "give up":
                end.connection._give_up()
            case "close":
                end.connection.close()
                end.lose()
        await asyncio.sleep(1)
        gc.collect()
        assert ended == ["cancelled"]

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        play(story)
    assert not [str(warning.message) for warning in warned if "never awaited" in str(warning.message)]


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
    later: PendingReply[bytes] = PendingReply(may_be_overtaken=False)
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
    monkeypatch.setitem(BROKER_APIS, 3, broken)

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
        sessions = stage.node.context.fetches.sessions
        assert len(sessions) == 0

    def keyed(value, correlation_id):
        builder = BatchBuilder()
        builder.append(value, value, timestamp=1000)
        data = Produce.PartitionProduceData(index=0, records=bytes(builder.build()))
        topic = Produce.TopicProduceData(name="t", partition_data=[data])
        return frame(PRODUCE, 9, Produce(acks=-1, timeout_ms=60_000, topic_data=[topic]), correlation_id)

    play(story)


def heavy(value, correlation_id, sequence, *, acks=-1):
    """A Produce of an idempotent producer whose records are checked beside the event loop."""
    builder = BatchBuilder()
    builder.append(b"k", value + bytes(2_000_000), timestamp=1000)
    records = builder.build(codec=CompressionType.ZSTD, producer_id=7, producer_epoch=0, base_sequence=sequence)
    return idempotent(records, correlation_id, acks)


def light(value, correlation_id, sequence, *, acks=-1):
    builder = BatchBuilder()
    builder.append(b"k", value, timestamp=1000)
    return idempotent(builder.build(producer_id=7, producer_epoch=0, base_sequence=sequence), correlation_id, acks)


def idempotent(records, correlation_id, acks):
    data = Produce.PartitionProduceData(index=0, records=bytes(records))
    topic = Produce.TopicProduceData(name="t", partition_data=[data])
    return frame(PRODUCE, 9, Produce(acks=acks, timeout_ms=60_000, topic_data=[topic]), correlation_id)


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("configs", [{}, {"flush_messages": "1"}, {"cleanup_policy": "compact"}], ids=str)
def test_what_is_checked_beside_the_loop_keeps_its_place(play, configs, acks):
    """SEC-L8: sequences that come out of order would be refused, and a view that was kept would be junk."""

    async def story(stage):
        partition = await stage.create(**configs)
        end = stage.connect(Poisoning)
        end.feed(
            light(b"0", 0, 0) + heavy(b"1", 1, 1, acks=acks) + light(b"2", 2, 2) + heavy(b"3", 3, 3) + light(b"4", 4, 4)
        )
        assert partition.log.log_end_offset == 1, "the rest waits for its turn"
        await asyncio.sleep(20)
        replies = dict(end.replies())
        assert list(replies) == ([0, 2, 3, 4] if acks == 0 else [0, 1, 2, 3, 4])
        for number, reply in replies.items():
            [answer] = messages.decode_response(0, 9, reply, 1).responses[0].partition_responses
            assert (answer.error_code, answer.base_offset) == (0, number)
        assert [value[:1] for value in values_of(partition)] == [b"0", b"1", b"2", b"3", b"4"]

    play(story)


def test_what_was_checked_beside_the_loop_holds_up_nobody_while_it_waits_for_its_replicas(play):
    async def story(stage):
        partition = await stage.create(flush_messages="1")
        stage.flushes_take(5.0)
        end = stage.connect()
        end.feed(heavy(b"1", 1, 0) + light(b"2", 2, 1))
        await asyncio.sleep(1)
        assert (partition.log.log_end_offset, end.ids()) == (2, [])
        await asyncio.sleep(20)
        assert end.ids() == [1, 2]

    play(story)


def test_a_connection_that_is_lost_while_its_batch_is_checked(play):
    async def story(stage):
        partition = await stage.create()
        end, other = stage.connect(), stage.connect()
        end.feed(heavy(b"1", 1, 0))
        end.lose()
        await asyncio.sleep(5)
        assert partition.log.log_end_offset == 0
        other.feed(light(b"1", 1, 0))
        assert other.ids() == [1]

    play(story)


def test_replies_have_the_header_of_their_version(play):
    async def story(stage):
        await stage.create()
        end = stage.connect()
        end.feed(fetch(0, 77))
        _, position = read_response_header(FETCH, 12, bytes(end.sent), 4)
        assert position == 9

    play(story)
