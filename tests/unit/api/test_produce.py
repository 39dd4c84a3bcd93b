"""Produce: what is appended, what is refused and with which code, and who waits for what."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio
import dataclasses
import errno
import inspect
import random
import struct

import pytest

from strandline.api import produce
from strandline.api.requests.pending_reply import PendingReply
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log import record_checks
from strandline.metadata.image import INTERNAL_TOPICS
from strandline.node.log_effects import perform
from strandline.records import header as layout
from strandline.records.batch import BatchBuilder, decode, join
from strandline.records.compression import CompressionType, compress
from strandline.records.header import read_header
from strandline.sim.faults import Fault
from strandline.sim.world import World
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

from .conftest import TestBroker, registration

Request = messages.request(0)
BY_ID = 13


def batch(*values, key=b"k", timestamp=1000, **fields):
    builder = BatchBuilder()
    for value in values or (b"v",):
        builder.append(key, value, timestamp=timestamp)
    return builder.build(**fields)


def sealed(data, fmt, at, value):
    """The batch with one field of its header changed and the checksum put right."""
    struct.pack_into(fmt, data, at, value)
    layout.seal(data)
    return data


def handled(
    broker, version, *batches, topic="t", acks=-1, timeout_ms=60_000, transactional_id=None, index=0, **context
):
    """What the API returns for one batch to each of these partitions of a topic, from `index` on."""
    name = {"topic_id": topic} if version >= BY_ID else {"name": topic}
    data = [
        Request.PartitionProduceData(index=index + i, records=None if records is None else bytes(records))
        for i, records in enumerate(batches)
    ]
    message = Request(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[Request.TopicProduceData(**name, partition_data=data)],
    )
    frame = bytearray(messages.encode_request(0, version, message))
    return produce.handle(memoryview(frame), dataclasses.replace(broker.context(0, version), **context), 0)


def answers(version, reply):
    assert isinstance(reply, bytes)
    [topic] = messages.decode_response(0, version, reply).responses
    return topic.partition_responses


def code(broker, records, version=9, **fields):
    [answer] = answers(version, handled(broker, version, records, **fields))
    assert (answer.base_offset == -1) == bool(answer.error_code)
    return answer.error_code


@pytest.mark.parametrize("version", produce.VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
async def test_batches_are_appended_in_every_version(broker, version, acks):
    topic = broker.create("t", (1,), (1,))
    if version < BY_ID:
        topic = "t"
    for expected in (0, 2):
        first, second = answers(version, handled(broker, version, batch(b"a", b"b"), batch(), topic=topic, acks=acks))
        assert (first.index, first.error_code, first.base_offset, first.log_append_time_ms) == (0, 0, expected, -1)
        assert (second.index, second.error_code, second.base_offset) == (1, 0, expected // 2)
        assert first.log_start_offset == (0 if version >= 5 else -1)
    assert broker.parts.hosted.by_name["t", 0].log.log_end_offset == 4


async def test_acks_0_has_no_reply(broker):
    broker.create("t")
    assert handled(broker, 9, batch(), acks=0) is None
    assert broker.parts.hosted.by_name["t", 0].log.log_end_offset == 1


@pytest.mark.parametrize("fields", [{"topic": "absent"}, {"index": 7}])
async def test_acks_0_with_an_error_ends_the_connection(broker, fields):
    broker.create("t")
    with pytest.raises(ConnectionError):
        handled(broker, 9, batch(), acks=0, **fields)


@pytest.mark.parametrize("acks", [2, -2, 32767, -32768])
async def test_other_acks_are_refused(broker, acks):
    broker.create("t")
    assert code(broker, batch(), acks=acks) == ErrorCode.INVALID_REQUIRED_ACKS
    assert broker.parts.hosted.by_name["t", 0].log.log_end_offset == 0


async def test_txn_p1_plain_batches_with_a_transactional_id_are_a_plain_request(broker):
    broker.create("t")
    assert code(broker, batch(), transactional_id="x") == 0


@pytest.mark.parametrize("partitions", [1, 2], ids=["one batch", "several"])
async def test_a_transactional_batch_needs_a_transactional_id(broker, partitions):
    broker.create("t", (1,), (1,))
    records = batch(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    refused = answers(9, handled(broker, 9, *[records] * partitions))
    assert [a.error_code for a in refused] == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * partitions
    partition = broker.parts.hosted.by_name["t", 0]
    assert (partition.log.size, partition.log.producers.by_id) == (0, {})
    assert code(broker, batch()) == 0
    assert partition.last_stable_offset == 1, "no open transaction holds it back"


def garbage(codec):
    data = batch()
    return join(read_header(data)._replace(attributes=codec), b"\x01garbage\xff" * 9)


BAD = {
    "no batch": (lambda: None, ErrorCode.INVALID_RECORD),
    "empty": (lambda: b"", ErrorCode.INVALID_RECORD),
    "too short": (lambda: batch()[:60], ErrorCode.CORRUPT_MESSAGE),
    "two batches": (lambda: batch() + batch(), ErrorCode.INVALID_RECORD),
    "cut": (lambda: batch()[:-1], ErrorCode.CORRUPT_MESSAGE),
    "trailing byte": (lambda: batch() + b"\0", ErrorCode.INVALID_RECORD),
    "checksum": (lambda: batch()[:-1] + b"\xee", ErrorCode.CORRUPT_MESSAGE),
    "magic 0": (lambda: sealed(batch(), ">b", layout.MAGIC_AT, 0), ErrorCode.INVALID_RECORD),
    "magic 1": (lambda: sealed(batch(), ">b", layout.MAGIC_AT, 1), ErrorCode.INVALID_RECORD),
    "count 0": (lambda: sealed(batch(), ">i", layout.COUNT_AT, 0), ErrorCode.INVALID_RECORD),
    "count -1": (lambda: sealed(batch(), ">i", layout.COUNT_AT, -1), ErrorCode.INVALID_RECORD),
    "count unlike offsets": (lambda: sealed(batch(), ">i", layout.COUNT_AT, 5), ErrorCode.INVALID_RECORD),
    "last offset delta": (lambda: sealed(batch(), ">i", layout.LAST_OFFSET_DELTA_AT, 5), ErrorCode.INVALID_RECORD),
    "base offset": (lambda: sealed(batch(), ">q", layout.BASE_OFFSET_AT, 9), ErrorCode.INVALID_RECORD),
    "control batch": (lambda: sealed(batch(), ">h", layout.ATTRIBUTES_AT, 0x20), ErrorCode.INVALID_RECORD),
    "sequence -1": (lambda: batch(producer_id=5, producer_epoch=0), ErrorCode.INVALID_RECORD),
    "epoch -1": (lambda: batch(producer_id=5, base_sequence=0), ErrorCode.INVALID_RECORD),
    "codec 5": (lambda: garbage(5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 7": (lambda: garbage(7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "too large": (lambda: batch(bytes(1_100_000)), ErrorCode.MESSAGE_TOO_LARGE),
    "far future": (lambda: batch(timestamp=2**62), ErrorCode.INVALID_TIMESTAMP),
}


@pytest.mark.parametrize(("make", "expected"), BAD.values(), ids=BAD)
async def test_a_bad_batch_is_refused_and_nothing_is_written(broker, make, expected):
    broker.create("t")
    assert code(broker, make()) == expected
    assert broker.parts.hosted.by_name["t", 0].log.size == 0
    assert code(broker, batch()) == 0


CODECS = [codec for codec in CompressionType if codec]
KINDS = {"plain": {}, "compacted": {"cleanup.policy": "compact"}, "own codec": {"compression.type": "uncompressed"}}


async def awaited(outcome):
    """The reply to a request that was not answered at once: what had to be done beside the loop, then what it waits for."""
    if inspect.isawaitable(outcome):
        outcome = await outcome
    return outcome


@pytest.mark.parametrize("configs", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("codec", CODECS)
async def test_garbage_under_a_codecs_name_is_refused(broker, codec, configs):
    broker.create("t", configs=configs)
    [answer] = answers(9, await awaited(handled(broker, 9, garbage(codec))))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert broker.parts.hosted.by_name["t", 0].log.size == 0


@pytest.mark.parametrize("configs", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("codec", CODECS)
async def test_a_flood_of_zeros_is_refused(broker, codec, configs):
    broker.create("t", configs={**configs, "max.message.bytes": "10000000"})
    flood = join(read_header(batch(codec=codec)), compress(codec, bytes(4_000_000), None))
    [answer] = answers(9, await awaited(handled(broker, 9, flood)))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert broker.parts.hosted.by_name["t", 0].log.size == 0


@pytest.mark.parametrize("configs", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("codec", CODECS)
async def test_what_is_large_once_opened_is_checked_beside_the_loop_and_appended_in_its_turn(broker, codec, configs):
    broker.create("t", (1,), (1,), (1,), configs={**configs, "max.message.bytes": "10000000"})
    large = batch(bytes(1_200_000), codec=codec)
    outcome = handled(broker, 9, batch(b"small"), large, batch(b"after"))
    assert inspect.isawaitable(outcome)
    logs = [broker.parts.hosted.by_name["t", index].log for index in range(3)]
    assert [log.log_end_offset for log in logs] == [1, 0, 0]
    assert [(a.index, a.error_code, a.base_offset) for a in answers(9, await outcome)] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
    ]
    [record] = decode(logs[1].read(0, 1 << 30, 1, min_one=True))
    assert record.value == bytes(1_200_000)


async def test_a_large_batch_that_is_refused_takes_no_other_along(broker):
    broker.create("t", (1,), (1,), (1,))
    liar = sealed(
        sealed(batch(bytes(1_200_000), codec=4), ">i", layout.COUNT_AT, 2), ">i", layout.LAST_OFFSET_DELTA_AT, 1
    )
    found = answers(9, await handled(broker, 9, liar, batch(), batch(bytes(1_200_000), codec=4)))
    assert [(a.error_code, a.base_offset) for a in found] == [(ErrorCode.INVALID_RECORD, -1), (0, 0), (0, 0)]


async def test_a_topic_that_goes_while_its_batch_is_checked(broker):
    broker.create("t")
    outcome = handled(broker, 9, batch(bytes(1_200_000), codec=4))
    del broker.parts.hosted.by_name["t", 0]
    [answer] = answers(9, await outcome)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


class Checking:
    """A disk on which something happens after each check beside the loop, before the batch is appended."""

    def __init__(self, disk, after):
        self._disk = disk
        self._after = after
        self.count = 0

    def __getattr__(self, name):
        return getattr(self._disk, name)

    async def offload_compute(self, work):
        found = await self._disk.offload_compute(work)
        self.count += 1
        self._after(self.count)
        return found


async def test_a_batch_is_checked_again_if_its_topic_was_altered_meanwhile(broker):
    broker.create("t", (1,), (1,), configs={"compression.type": "gzip"})
    logs = [broker.parts.hosted.by_name["t", index].log for index in range(2)]

    def alter(count):
        match count:
            case 1:
                logs[0].config = dataclasses.replace(logs[0].config, compact=True)
            case 2:
                logs[1].config = dataclasses.replace(logs[1].config, compression_type="lz4")

    broker.parts.disk = Checking(broker.parts.disk, alter)
    large = batch(bytes(1_200_000), key=None, codec=4)
    found = answers(9, await handled(broker, 9, large, large))
    assert [(a.error_code, a.base_offset) for a in found] == [(ErrorCode.INVALID_RECORD, -1), (0, 0)]
    assert read_header(logs[1].read(0, 1 << 30, 1, min_one=True)).codec == CompressionType.LZ4


async def test_a_batch_is_not_checked_again_for_ever(broker):
    broker.create("t", (1,), (1,))
    log = broker.parts.hosted.by_name["t", 0].log

    def alter(count):
        log.config = dataclasses.replace(log.config, flush_messages=1000 + count)

    checking = broker.parts.disk = Checking(broker.parts.disk, alter)
    found = answers(9, await handled(broker, 9, batch(bytes(1_200_000), codec=4), batch(b"small")))
    assert [(a.error_code, a.base_offset) for a in found] == [(ErrorCode.REQUEST_TIMED_OUT, -1), (0, 0)]
    assert checking.count == 1 + produce.RECHECKS_MAX + 1, "the other batch of the request once"


async def test_sec_l2_others_have_their_turn_amid_a_request_of_many_batches(broker, monkeypatch):
    monkeypatch.setattr(produce, "BATCHES_PER_TURN_MAX", 2)
    broker.create("t", *[(1,)] * 5)
    appending = asyncio.ensure_future(handled(broker, 9, *(batch(b"%d" % number) for number in range(5))))
    seen = []
    while not appending.done():
        seen.append(sum(broker.parts.hosted.by_name["t", index].log.log_end_offset for index in range(5)))
        await asyncio.sleep(0)
    assert sorted(set(seen)) == [2, 4]
    assert [(a.index, a.error_code, a.base_offset) for a in answers(9, await appending)] == [
        (i, 0, 0) for i in range(5)
    ]


async def test_no_memory_for_a_check_is_told_and_takes_no_other_along(broker, monkeypatch):
    broker.create("t", (1,), (1,), (1,))
    large = batch(bytes(1_200_000), codec=4)

    def refuse(*_):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    outcome = handled(broker, 9, batch(b"a"), large, batch(b"c"))
    monkeypatch.setattr(record_checks, "decompress", refuse)
    found = answers(9, await outcome)
    assert [(a.error_code, a.base_offset) for a in found] == [(0, 0), (ErrorCode.REQUEST_TIMED_OUT, -1), (0, 0)]
    assert not broker.storage_errors


async def test_no_memory_for_a_copy_is_told_and_takes_no_other_along(broker, monkeypatch):
    def refuse(_):
        raise MemoryError

    broker.create("t", (1,), (1,), (1,))
    monkeypatch.setattr(produce, "_copy_of", refuse)
    found = answers(9, handled(broker, 9, batch(b"a"), batch(bytes(1_200_000), codec=4), batch(b"c")))
    assert [a.error_code for a in found] == [0, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT]
    with pytest.raises(ConnectionError):
        handled(broker, 9, batch(bytes(1_200_000), codec=4), acks=0)


@pytest.mark.parametrize("ending", ["appended", "refused", "cancelled"])
async def test_what_is_copied_counts_as_held_until_it_is_appended(broker, ending):
    broker.create("t", (1,), (1,))
    held = []

    def hold(size_bytes):
        held.append(size_bytes)
        return lambda: held.remove(size_bytes)

    seen = []

    def after(count):
        seen.extend(size // 100_000 for size in held)
        if ending == "cancelled":
            outcome.cancel()
        elif ending == "refused":
            broker.parts.hosted.by_name["t", 1].fail()

    broker.parts.disk = Checking(broker.parts.disk, after)
    value = random.Random(1).randbytes(700_000) + bytes(700_000)
    outcome = asyncio.create_task(handled(broker, 9, batch(b"a"), batch(value, codec=4), hold_request=hold))
    await asyncio.wait([outcome])
    assert outcome.cancelled() == (ending == "cancelled")
    assert seen == [7]
    assert not held
    handled(broker, 9, batch(b"a"), batch(b"b"), hold_request=hold)
    assert not held, "what is not copied is not counted"


async def test_acks_0_has_no_reply_for_a_large_batch_either(broker):
    broker.create("t")
    assert await handled(broker, 9, batch(bytes(1_200_000), codec=4), acks=0) is None
    assert broker.parts.hosted.by_name["t", 0].log.log_end_offset == 1
    with pytest.raises(ConnectionError):
        await handled(broker, 9, garbage(4), acks=0)


async def test_the_batches_of_one_request_have_a_total(broker, monkeypatch):
    monkeypatch.setattr(record_checks, "REQUEST_BYTES_MAX", 3_000_000)
    broker.create("t", (1,), (1,), (1,))
    found = answers(9, await handled(broker, 9, *[batch(bytes(1_200_000), codec=4)] * 3))
    assert [a.error_code for a in found] == [0, 0, ErrorCode.INVALID_RECORD]


async def test_a_compacted_topic_wants_keys(broker):
    broker.create("t", configs={"cleanup.policy": "compact"})
    assert code(broker, batch(key=None)) == ErrorCode.INVALID_RECORD
    assert code(broker, batch()) == 0


@pytest.mark.parametrize("version", produce.VERSIONS)
async def test_the_records_that_are_to_blame_are_named(broker, version):
    """KIP-467, since version 8. Also beside a batch that is fine, and one that nobody can read."""
    topic = broker.create("t", (1,), (1,), (1,), configs={"cleanup.policy": "compact"})
    if version < BY_ID:
        topic = "t"
    keyless = BatchBuilder()
    for key in (b"a", None, b"b", None):
        keyless.append(key, b"v", timestamp=1000)
    unreadable = sealed(batch(), ">b", -1, 2)
    found = answers(version, handled(broker, version, keyless.build(), batch(), unreadable, topic=topic))
    assert [a.error_code for a in found] == [ErrorCode.INVALID_RECORD, 0, ErrorCode.INVALID_RECORD]
    if version < 8:
        return
    named = [[(e.batch_index, e.batch_index_error_message) for e in a.record_errors] for a in found]
    assert [[index for index, _ in each] for each in named] == [[1, 3], [], []]
    assert "needs a key" in named[0][0][1]
    assert "record 1: a record of a compacted topic needs a key" in found[0].error_message
    assert (found[1].error_message, "cannot be read" in found[2].error_message) == (None, True)


async def test_a_wrong_timestamp_is_named(broker):
    broker.create("t")
    late = BatchBuilder()
    for timestamp in (1000, 2**62, 1000):
        late.append(b"k", b"v", timestamp=timestamp)
    [answer] = answers(9, handled(broker, 9, late.build()))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [1]


async def test_a_batch_larger_than_a_segment(broker):
    broker.create("t", configs={"segment.bytes": "1048576", "max.message.bytes": "10000000"})
    assert code(broker, batch(bytes(1_100_000))) == ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("version", produce.VERSIONS)
async def test_zstd_is_known_since_version_7(broker, version):
    topic = broker.create("t")
    expected = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if version < 7 else 0
    found = code(broker, batch(codec=CompressionType.ZSTD), version, topic=topic if version >= BY_ID else "t")
    assert found == expected


async def test_one_bad_partition_does_not_keep_the_others_out(broker):
    broker.create("t", (1,), (1,), (1,))
    codes = [answer.error_code for answer in answers(9, handled(broker, 9, batch(), b"bad", batch(), batch()))]
    assert codes == [0, ErrorCode.CORRUPT_MESSAGE, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize(("topic", "index"), [("absent", 0), ("t", 1), ("t", -1), ("", 0), ("..", 0)])
async def test_unknown_topics_and_partitions(broker, topic, index):
    broker.create("t")
    assert code(broker, batch(), topic=topic, index=index) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_unknown_topic_ids(broker):
    broker.create("t")
    assert code(broker, batch(), BY_ID, topic=Uuid(b"x" * 16)) == ErrorCode.UNKNOWN_TOPIC_ID
    assert code(broker, batch(), BY_ID, topic=Uuid(bytes(16))) == ErrorCode.UNKNOWN_TOPIC_ID


async def test_the_current_leader_is_told_since_version_10(broker):
    broker.commit([registration(2)])
    broker.create("t", (2,), leader_epoch=7)
    for version in (9, 10, 12):
        [answer] = answers(version, handled(broker, version, batch()))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        told = (answer.current_leader.leader_id, answer.current_leader.leader_epoch) if version >= 10 else (2, 7)
        assert told == (2, 7)


async def test_internal_topics_take_nothing_from_clients(broker):
    name = sorted(INTERNAL_TOPICS)[0]
    broker.create(name)
    assert code(broker, batch(), topic=name) == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_batch_sent_twice_is_answered_and_not_written_again(broker):
    broker.create("t")
    records = batch(producer_id=5, producer_epoch=0, base_sequence=0)
    for _ in range(2):
        [answer] = answers(9, handled(broker, 9, records))
        assert (answer.error_code, answer.base_offset) == (0, 0)
    assert broker.parts.hosted.by_name["t", 0].log.log_end_offset == 1
    ahead = batch(producer_id=5, producer_epoch=0, base_sequence=7)
    assert code(broker, ahead) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_append_time_is_told(broker):
    broker.create("t", configs={"message.timestamp.type": "LogAppendTime"})
    before = broker.clock.wall_ms()
    [answer] = answers(9, handled(broker, 9, batch(timestamp=5)))
    assert before <= answer.log_append_time_ms <= broker.clock.wall_ms()


async def test_the_error_says_what_was_wrong_since_version_8(broker):
    broker.create("t")
    for version in (8, 9):
        [answer] = answers(version, handled(broker, version, batch() + batch()))
        assert "one record batch" in answer.error_message


async def test_a_request_that_cannot_be_read_is_malformed(broker):
    with pytest.raises(MalformedRequest):
        produce.handle(memoryview(b"\0\0"), broker.context(0, 9), 0)


# Waiting


@pytest.fixture
def flushed(broker):
    """A topic whose records count once they are on the device; nothing flushes it unless a test does."""
    broker.create("t", (1,), (1,), configs={"flush.messages": "1"})
    return broker


async def flush(partition):
    await perform(partition.log.flush())
    partition.after_flush(0)


def delivered(later):
    """Where the reply will be."""
    assert isinstance(later, PendingReply)
    assert later.may_be_overtaken
    replies = []
    later.deliver_to(replies.append)
    return replies


async def test_a_produce_waits_until_its_records_are_safe(flushed):
    replies = delivered(handled(flushed, 9, batch()))
    assert not replies
    await flush(flushed.parts.hosted.by_name["t", 0])
    [answer] = answers(9, replies[0])
    assert (answer.error_code, answer.base_offset) == (0, 0)


@pytest.mark.parametrize("batches", [1, 2])
async def test_who_wants_the_leaders_word_only_does_not_wait_for_the_other_replicas(broker, batches):
    broker.commit([registration(2)])
    broker.create("t", *[(1, 2)] * batches, configs={"flush.messages": "1"})
    partitions = [broker.parts.hosted.by_name["t", index] for index in range(batches)]
    leaders = delivered(handled(broker, 9, *[batch()] * batches, acks=1))
    everybodys = delivered(handled(broker, 9, *[batch()] * batches, acks=-1))
    assert not leaders
    for partition in partitions:
        await flush(partition)
    assert [answer.error_code for answer in answers(9, leaders[0])] == [0] * batches
    assert not everybodys
    for partition in partitions:
        broker.follow(2, 2, index=partition.index)
    assert [answer.error_code for answer in answers(9, everybodys[0])] == [0] * batches


@pytest.mark.parametrize("batches", [1, 2])
async def test_the_leaders_word_is_given_at_once_where_nothing_has_to_be_flushed(broker, batches):
    broker.commit([registration(2)])
    broker.create("t", (1, 2), (1, 2))
    reply = handled(broker, 9, *[batch()] * batches, acks=1)
    if isinstance(reply, PendingReply):
        [reply] = delivered(reply)
    assert [answer.error_code for answer in answers(9, reply)] == [0] * batches
    assert all(partition.high_watermark == 0 for partition in broker.parts.hosted.by_name.values())


# Rules A3, A4, A5


@pytest.fixture
def replicated(broker):
    """Led here, followed by 2 and 3."""
    broker.commit([registration(2), registration(3)])
    broker.create("t", (1, 2, 3), configs={"min.insync.replicas": "2"})
    return broker


async def test_a3_too_few_in_sync_before_the_append_write_nothing(replicated):
    replicated.change(isr=(1,))
    [answer] = answers(9, handled(replicated, 9, batch()))
    assert answer.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert "min.insync.replicas" in answer.error_message
    assert replicated.parts.hosted.by_name["t", 0].log.log_end_offset == 0


async def test_a3_binds_only_those_who_ask_for_all(replicated):
    replicated.change(isr=(1,))
    [answer] = answers(9, handled(replicated, 9, batch(), acks=1))
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert replicated.parts.hosted.by_name["t", 0].high_watermark == 0, "rule A2"


async def test_a3_no_more_replicas_are_asked_for_than_there_are(broker):
    broker.create("t", configs={"min.insync.replicas": "2"})
    [answer] = answers(9, handled(broker, 9, batch()))
    assert answer.error_code == 0


async def test_a4_the_acknowledgement_waits_for_every_replica_that_may_be_in_sync(replicated):
    replies = delivered(handled(replicated, 9, batch()))
    replicated.follow(2, 1)
    assert not replies
    replicated.follow(3, 1)
    [answer] = answers(9, replies[0])
    assert (answer.error_code, answer.base_offset) == (0, 0)


async def test_a4_one_that_left_is_waited_for_no_more_but_not_below_the_minimum(replicated):
    partition = replicated.parts.hosted.by_name["t", 0]
    replies = delivered(handled(replicated, 9, batch(), timeout_ms=50))
    replicated.change(isr=(1,))
    assert not replies
    assert partition.high_watermark == 0
    replicated.change(isr=(1, 2))
    assert not replies, "2 counts again, and has not fetched it"
    replicated.follow(2, 1)
    assert [answer.error_code for answer in answers(9, replies[0])] == [0]


async def test_a5_a_leader_that_is_deposed_names_the_new_one(replicated):
    replies = delivered(handled(replicated, 9, batch()))
    replicated.change(leader=2)
    [answer] = answers(9, replies[0])
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def test_a5_what_the_others_do_not_get_in_time_is_timed_out_and_may_be_committed_later(replicated):
    replies = delivered(handled(replicated, 9, batch(), timeout_ms=1))
    await asyncio.sleep(0.01)
    [answer] = answers(9, replies[0])
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    replicated.follow(2, 1)
    replicated.follow(3, 1)
    assert replicated.parts.hosted.by_name["t", 0].high_watermark == 1


async def test_a_replica_that_is_not_the_leader_takes_nothing(replicated):
    replicated.change(leader=2)
    for count in (1, 2):
        [answer, *_] = answers(9, handled(replicated, 9, *[batch()] * count))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_it_waits_for_all_its_partitions(flushed):
    replies = delivered(handled(flushed, 9, batch(), batch()))
    await flush(flushed.parts.hosted.by_name["t", 1])
    assert not replies
    await flush(flushed.parts.hosted.by_name["t", 0])
    assert [answer.error_code for answer in answers(9, replies[0])] == [0, 0]


async def test_it_does_not_wait_for_what_was_refused(flushed):
    assert [answer.error_code for answer in answers(9, handled(flushed, 9, b"bad", b"worse"))] == [2, 2]
    replies = delivered(handled(flushed, 9, b"bad", batch()))
    await flush(flushed.parts.hosted.by_name["t", 1])
    assert [answer.error_code for answer in answers(9, replies[0])] == [2, 0]


async def test_a_deleted_topic_ends_the_wait(flushed):
    replies = delivered(handled(flushed, 9, batch(), batch()))
    await flush(flushed.parts.hosted.by_name["t", 0])
    flushed.parts.hosted.by_name["t", 1].stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert [(a.error_code, a.base_offset) for a in answers(9, replies[0])] == [(0, 0), (3, -1)]


async def test_a_failed_log_dir_ends_the_wait(flushed):
    replies = delivered(handled(flushed, 9, batch()))
    flushed.parts.hosted.by_name["t", 0].fail()
    assert [answer.error_code for answer in answers(9, replies[0])] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert code(flushed, batch()) == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("acks", [1, -1])
def test_a_log_dir_that_fails_while_the_request_is_still_read(acks):
    """The first partition waits already when the second brings the log dir down: both are told, once."""

    async def story(broker, disk):
        broker.create("t", (1,), (1,), (1,), configs={"flush.messages": "1"})
        partitions = broker.parts.hosted.by_name
        broker.parts.hosted.storage_failed = lambda partition, error: [p.fail() for p in partitions.values()]
        disk.faults.set("/data/t-1", Fault.FULL)
        replies = delivered(handled(broker, 9, batch(), batch(), batch(), acks=acks))
        assert [(a.error_code, a.base_offset) for a in answers(9, replies[0])] == [(56, -1)] * 3
        assert len(replies) == 1

    in_simulation(story)


async def test_a_cancelled_produce_is_answered_by_nobody(flushed):
    later = handled(flushed, 9, batch())
    replies = delivered(later)
    later.cancel()
    await flush(flushed.parts.hosted.by_name["t", 0])
    assert not replies


def in_simulation(story):
    world = World(1)
    node = world.node("n1")
    node.disk.cold_probability = 0

    async def main():
        await node.spawn(story(TestBroker(node.disk, "/data"), node.disk))

    world.run(main())
    world.close()


@pytest.mark.parametrize("timeout_ms", [1500, 0, -1])
def test_a_wait_ends_with_its_timeout(timeout_ms):
    """Rule A5."""

    async def story(broker, disk):
        broker.create("t", configs={"flush.messages": "1"})
        replies = delivered(handled(broker, 9, batch(), timeout_ms=timeout_ms))
        await asyncio.sleep(1)
        assert bool(replies) == (timeout_ms <= 0)
        await asyncio.sleep(1)
        assert [answer.error_code for answer in answers(9, replies[0])] == [ErrorCode.REQUEST_TIMED_OUT]
        # The record is in the log, and may still be committed.
        assert broker.parts.hosted.by_name["t", 0].log.log_end_offset == 1

    in_simulation(story)


@pytest.mark.parametrize("fault", [Fault.FULL, Fault.WRITE_ERROR, Fault.READ_ONLY])
def test_a_disk_that_does_not_take_it_is_a_storage_error(fault):
    async def story(broker, disk):
        broker.create("t")
        assert code(broker, batch()) == 0
        disk.faults.set("/data", fault)
        assert code(broker, batch()) == ErrorCode.KAFKA_STORAGE_ERROR
        assert broker.storage_errors == [broker.parts.hosted.by_name["t", 0]]
        assert broker.parts.hosted.by_name["t", 0].log.log_end_offset == 1

    in_simulation(story)


async def test_an_offline_partition_says_so(broker):
    broker.create("t")
    broker.parts.hosted.by_name["t", 0].offline = True
    assert code(broker, batch()) == ErrorCode.KAFKA_STORAGE_ERROR
