"""Whole batches through the same producer: stamped when they leave, sent again as they were, in the log once."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.client.core.whole_batches import Ledger, WrittenRange
from strandline.client.errors import BufferExhausted, ConnectionLost, TimedOut
from strandline.errors import ErrorCode, KafkaError
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import ensure_valid
from strandline.records.ready import ReadyBatch

from .broker import PartitionLog, batches_of, metadata
from .test_producer import Story


def ready(*values: bytes, codec: CompressionType = CompressionType.NONE) -> ReadyBatch:
    builder = BatchBuilder()
    for value in values:
        builder.append(b"key", value, (("h", b"x"),), 1_000)
    return ReadyBatch(builder.build(codec=codec), builder.records_count, builder.max_timestamp)


class Whole(Story):
    def __init__(self, leaders=None, **config) -> None:
        super().__init__(leaders, **config)
        self.ledger = Ledger()

    def send_whole(self, *values: bytes, partition: int = 0) -> ReadyBatch:
        batch = ready(*values)
        self.core.append_whole("t", partition, batch, self.ledger, self.now)
        return batch


def sequences(calls) -> list[int]:
    return [ensure_valid(data).base_sequence for call in calls for _, data in batches_of(call.message)]


def test_batches_leave_at_once_one_after_the_other_with_sequences_of_their_records():
    story = Whole(linger_ms=5_000)
    for number in range(4):
        story.send_whole(b"%d" % number, b"x", b"y")
    (first,) = story.drain()
    story.answer(first, offset=100)
    rest = story.drain()
    assert sequences([first, *rest]) == [0, 3, 6, 9]
    for number, call in enumerate(rest, 1):
        story.answer(call, offset=100 + 3 * number)
    assert story.ledger.written == {("t", 0): WrittenRange(100, 112, 12, 4 * len(ready(b"0", b"x", b"y").data))}
    assert story.core.buffered_bytes == 0


def test_a_reply_that_was_lost_is_asked_for_again_with_the_same_bytes():
    story = Whole()
    story.send_whole(b"a")
    (first,) = story.drain()
    story.core.lost(first, ConnectionLost("cut"), story.now)
    story.now = 1
    (again,) = story.drain()
    assert batches_of(again.message) == batches_of(first.message)
    story.answer(again, ErrorCode.DUPLICATE_SEQUENCE_NUMBER, offset=-1)
    assert story.ledger.failure is None
    assert story.ledger.written["t", 0][:3] == (-1, -1, 1), "it is there, but nobody says where"


def test_a_new_identity_stamps_the_bytes_anew():
    story = Whole()
    story.send_whole(b"first")
    (call,) = story.drain()
    story.answer(call)
    story.send_whole(b"bad")
    story.send_whole(b"good")
    bad, good = story.drain()
    story.answer(bad, ErrorCode.INVALID_RECORD, error_message="no key")
    story.answer(good, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    story.now = 1
    (again,) = story.drain()
    header = ensure_valid(batches_of(again.message)[0][1])
    assert (header.producer_id, header.base_sequence) == (2, 0)
    assert story.ledger.failure is not None
    assert "no key" in str(story.ledger.failure)


@pytest.mark.parametrize("code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID])
def test_a_broker_that_lost_track_is_told_of_clearly(code: ErrorCode):
    story = Whole()
    story.send_whole(b"first")
    (call,) = story.drain()
    story.answer(call)
    story.send_whole(b"maybe", b"there")
    (call,) = story.drain()
    story.core.lost(call, ConnectionLost("cut"), story.now)
    story.now = 1
    (call,) = story.drain()
    story.answer(call, code)
    assert isinstance(story.ledger.failure, KafkaError)
    assert story.ledger.failure.code is code
    assert "2 records for t-0: they may be in the log or not" in str(story.ledger.failure)


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_a_batch_that_the_broker_finds_too_large_goes_on_in_halves(codec: CompressionType):
    story, log = Whole(), PartitionLog()
    values = [b"%d" % number for number in range(7)]
    story.core.append_whole("t", 0, ready(*values, codec=codec), story.ledger, story.now)
    (call,) = story.drain()
    story.answer(call, ErrorCode.MESSAGE_TOO_LARGE)
    while calls := story.drain():
        for half in calls:
            ((_, data),) = batches_of(half.message)
            assert ensure_valid(data).codec == codec
            assert next(decode(data)).headers == (("h", b"x"),)
            story.answer(half, *log.append(data))
    assert log.values == values
    assert story.ledger.written["t", 0][:3] == (0, 7, 7)
    assert story.core.buffered_bytes == 0


def test_one_record_that_is_too_large_is_the_brokers_to_refuse():
    story = Whole(max_request_size=1_000)
    story.send_whole(bytes(5_000))
    (call,) = story.drain()
    story.answer(call, ErrorCode.MESSAGE_TOO_LARGE)
    assert story.ledger.failure is not None
    assert story.ledger.failure.code is ErrorCode.MESSAGE_TOO_LARGE


def test_a_request_has_one_batch_of_each_partition_and_not_more_than_it_may_hold():
    size = len(ready(bytes(500)).data)
    story = Whole({0: (1, 0), 1: (1, 0), 2: (1, 0)}, max_request_size=2 * size)
    for partition in (0, 1, 2, 0):
        story.send_whole(bytes(500), partition=partition)
    assert [[batch.partition for batch in call.batches] for call in story.drain()] == [[0, 1], [2]]


def test_the_buffer_is_bounded_but_takes_one_batch_of_any_size():
    story = Whole(buffer_memory=1_000)
    story.send_whole(bytes(5_000))
    assert not story.core.has_room(1)
    with pytest.raises(BufferExhausted):
        story.send_whole(b"v")
    (call,) = story.drain()
    story.answer(call)
    assert story.core.has_room(1)


def test_time_that_the_caller_was_away_counts_for_nothing():
    story = Whole(delivery_timeout_ms=1_000)
    story.links[1] = None
    story.send_whole(b"v")
    story.now = 500.0
    story.core.was_away(499.5)
    story.drain()
    assert story.ledger.failure is None
    story.now = 501.0
    story.drain()
    assert isinstance(story.ledger.failure, TimedOut)


def test_a_topic_that_is_gone_is_named_when_time_is_over():
    story = Whole(delivery_timeout_ms=1_000)
    story.send_whole(b"v")
    story.cluster.update(metadata({}, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    story.now = 1.5
    story.drain()
    assert story.ledger.failure is not None
    assert "t-0: not delivered within 1000 ms (UNKNOWN_TOPIC_OR_PARTITION)" in str(story.ledger.failure)


def test_records_and_whole_batches_of_one_partition_keep_their_order():
    story = Whole(linger_ms=0)
    story.send(b"one")
    story.send_whole(b"two")
    story.send(b"three")
    values, offset = [], 0
    while calls := story.drain():
        for call in calls:
            values += [record.value for _, data in batches_of(call.message) for record in decode(data)]
            story.answer(call, offset=offset)
            offset += 1
    assert values == [b"one", b"two", b"three"]


def test_the_first_failure_is_the_one_that_is_told():
    story = Whole({0: (1, 0), 1: (1, 0)}, max_request_size=1)
    for partition in (0, 1):
        story.send_whole(b"v", partition=partition)
    for call, code in zip(story.drain(), (ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE), strict=True):
        story.answer(call, code)
    assert story.ledger.failure is not None
    assert story.ledger.failure.code is ErrorCode.INVALID_RECORD
