"""Fetch: what is read, how much of it, and who waits for what."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs, disable-error-code="var-annotated"

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import struct

import pytest

from strandline import sliced_work
from strandline.api import fetch
from strandline.api.requests.pending_reply import PendingReply
from strandline.config.dynamic import DynamicConfig
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.log.recovery import load
from strandline.log.txn_index import AbortedTxn
from strandline.metadata import records as r
from strandline.node.log_effects import perform
from strandline.records.batch import BatchBuilder
from strandline.records.control import ControlRecordType, control_key, end_txn_marker
from strandline.records.header import LENGTH_AT, iterate
from strandline.sim.faults import Fault
from strandline.sim.world import World
from strandline.wire import fetch as wire
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

from .conftest import TestBroker, registration

Request = messages.request(1)
BY_ID, SESSIONS = 13, 7


def part(offset, index=0, **fields):
    return Request.FetchPartition(
        **{"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **fields}
    )


def handled(broker, version, *parts, topic="t", forget=(), **fields):
    """What the API returns for these partitions of a topic."""
    name = {"topic_id" if version >= BY_ID else "topic": topic}
    defaults = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 24}
    message = Request(**defaults | fields)
    if parts:
        message.topics = [Request.FetchTopic(**name, partitions=list(parts))]
    if forget:
        message.forgotten_topics_data = [Request.ForgottenTopic(**name, partitions=list(forget))]
    frame = bytearray(messages.encode_request(1, version, message))
    return fetch.handle(memoryview(frame), broker.context(1, version), 0)


def read(version, reply):
    assert isinstance(reply, list), reply
    return messages.decode_response(1, version, b"".join(reply))


def answers(version, reply):
    return [answer for topic in read(version, reply).responses for answer in topic.partitions]


def ask(broker, version, *parts, **fields):
    return answers(version, handled(broker, version, *parts, **fields))


def offsets(answer):
    """Of the whole batches in the answer."""
    return [header.base_offset for _, header in iterate(answer.records or b"")]


def batch_bytes(broker, topic="t", index=0):
    log = broker.parts.hosted.by_name[topic, index].log
    return log.size // log.log_end_offset


def delivered(later):
    assert isinstance(later, PendingReply)
    assert not later.may_be_overtaken
    replies = []
    later.deliver_to(replies.append)
    return replies


@pytest.fixture
def filled(broker):
    """Ten batches of one record each, all of the same size."""
    broker.create("t", (1,), (1,))
    for i in range(10):
        broker.append("t", 1000 + i)
    return broker


@pytest.mark.parametrize("version", fetch.VERSIONS)
async def test_records_are_read_in_every_version(filled, version):
    topic = filled.image.topics["t"].topic_id if version >= BY_ID else "t"
    first, second = ask(filled, version, part(3), part(0, 1), topic=topic)
    assert (first.partition_index, first.error_code, first.high_watermark, first.last_stable_offset) == (0, 0, 10, 10)
    assert offsets(first) == [3, 4, 5, 6, 7, 8, 9]
    assert first.log_start_offset == (0 if version >= 5 else -1)
    assert (second.partition_index, second.error_code, second.records or b"", second.high_watermark) == (1, 0, b"", 0)
    assert first.preferred_read_replica == -1


# How much


async def test_partition_max_bytes(filled):
    size = batch_bytes(filled)
    [answer] = ask(filled, 12, part(0, partition_max_bytes=3 * size + 5))
    assert offsets(answer) == [0, 1, 2]
    assert len(answer.records) == 3 * size + 5


async def test_the_first_batch_comes_whole_however_large(filled):
    for limits in ({"max_bytes": 1}, {"max_bytes": 0}, {"max_bytes": -1}):
        [answer] = ask(filled, 12, part(4), **limits)
        assert offsets(answer) == [4]
    for size in (1, 0, -5):
        [answer] = ask(filled, 12, part(4, partition_max_bytes=size))
        assert offsets(answer) == [4]


async def test_only_the_first_partition_with_records_may_break_the_limit(broker):
    broker.create("t", (1,), (1,), (1,))
    for index in (1, 2):
        broker.append("t", 1000, index=index)
    found = ask(broker, 12, part(0, 0), part(0, 1, partition_max_bytes=1), part(0, 2, partition_max_bytes=1))
    assert [offsets(answer) for answer in found] == [[], [0], []]
    assert [len(answer.records or b"") > 0 for answer in found] == [False, True, False]


async def test_max_bytes_is_shared_by_the_partitions(broker):
    broker.create("t", (1,), (1,), (1,))
    for index in range(3):
        for i in range(10):
            broker.append("t", i, index=index)
    size = batch_bytes(broker)
    found = ask(broker, 12, part(0, 0), part(0, 1), part(0, 2), max_bytes=13 * size)
    assert [len(offsets(answer)) for answer in found] == [10, 3, 0]


async def test_the_brokers_own_limit_holds(make_broker):
    broker = make_broker(fetch_max_bytes="1024")
    broker.create("t")
    for i in range(100):
        broker.append("t", i)
    [answer] = ask(broker, 12, part(0), max_bytes=2**31 - 1)
    assert len(answer.records) == 1024


# Waiting


async def test_an_append_wakes_a_waiting_fetch(filled):
    replies = delivered(handled(filled, 12, part(10), max_wait_ms=60_000))
    assert not replies
    filled.append("t", 5000)
    [answer] = answers(12, replies[0])
    assert (offsets(answer), answer.high_watermark) == ([10], 11)
    assert not filled.parts.hosted.by_name["t", 0].readers


async def test_min_bytes_are_waited_for(filled):
    size = batch_bytes(filled)
    replies = delivered(handled(filled, 12, part(10), part(0, 1), max_wait_ms=60_000, min_bytes=3 * size))
    filled.append("t", 5000)
    filled.append("t", 5000, index=1)
    assert not replies
    filled.append("t", 5000)
    assert [offsets(answer) for answer in answers(12, replies[0])] == [[10, 11], [0]]


async def test_what_is_there_already_counts(filled):
    size = batch_bytes(filled)
    replies = delivered(handled(filled, 12, part(8), max_wait_ms=60_000, min_bytes=3 * size))
    filled.append("t", 5000)
    assert offsets(answers(12, replies[0])[0]) == [8, 9, 10]


async def test_appends_that_nobody_waited_for_do_not_count_later(filled):
    size = batch_bytes(filled)
    for _ in range(20):
        filled.append("t", 5000)
    replies = delivered(handled(filled, 12, part(30), max_wait_ms=60_000, min_bytes=2 * size))
    filled.append("t", 5000)
    assert not replies
    filled.append("t", 5000)
    assert offsets(answers(12, replies[0])[0]) == [30, 31]


async def test_more_than_max_bytes_is_not_waited_for(filled):
    size = batch_bytes(filled)
    [answer] = ask(filled, 12, part(0), max_wait_ms=60_000, min_bytes=10**6, max_bytes=2 * size)
    assert offsets(answer) == [0, 1]


async def test_the_wait_ends_when_its_time_is_up(filled):
    loop = asyncio.get_running_loop()
    arrived = loop.create_future()
    handled(filled, 12, part(10), max_wait_ms=5).deliver_to(arrived.set_result)
    started = loop.time()
    [answer] = answers(12, await arrived)
    assert (answer.error_code, answer.records or b"") == (0, b"")
    assert loop.time() - started > 0.004
    assert not filled.parts.hosted.by_name["t", 0].readers


@pytest.mark.parametrize("fields", [{"max_wait_ms": 0}, {"max_wait_ms": -1}, {"max_wait_ms": 60_000, "min_bytes": 0}])
async def test_a_fetch_that_does_not_want_to_wait(filled, fields):
    [answer] = ask(filled, 12, part(10), **fields)
    assert (answer.error_code, answer.records or b"") == (0, b"")


async def test_a_fetch_of_nothing_is_answered_at_once(filled):
    assert ask(filled, 12, max_wait_ms=60_000) == []


async def test_an_error_is_answered_at_once(filled):
    first, second = ask(filled, 12, part(10), part(0, index=99), max_wait_ms=60_000)
    assert (first.error_code, second.error_code) == (0, 3)


async def test_of_a_partition_that_is_named_twice_the_last_offset_counts(filled):
    """As in Kafka (SEC-L2): its records are read once, whatever a request says."""
    [answer] = ask(filled, 12, part(0), part(99), max_wait_ms=60_000)
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_cancelled_fetch_leaves_nothing_behind(filled):
    later = handled(filled, 12, part(10), max_wait_ms=60_000)
    replies = delivered(later)
    later.cancel()
    assert not filled.parts.hosted.by_name["t", 0].readers
    filled.append("t", 5000)
    assert not replies


async def test_a_deleted_topic_ends_the_wait_with_an_error(filled):
    partition = filled.parts.hosted.by_name["t", 0]
    topic_id = filled.image.topics["t"].topic_id
    by_name = delivered(handled(filled, 12, part(10), max_wait_ms=60_000))
    by_id = delivered(handled(filled, 13, part(10), topic=topic_id, max_wait_ms=60_000))
    filled.commit([r.RemoveTopicRecord(topic_id=topic_id)])
    partition.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert answers(12, by_name[0])[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers(13, by_id[0])[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_failed_log_dir_ends_the_wait_with_an_error(filled):
    replies = delivered(handled(filled, 12, part(10), max_wait_ms=60_000))
    filled.parts.hosted.by_name["t", 0].fail()
    assert answers(12, replies[0])[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_what_is_not_on_the_device_yet_is_not_read(broker):
    broker.create("t", configs={"flush.messages": "1"})
    broker.append("t", 1000)
    replies = delivered(handled(broker, 12, part(0), max_wait_ms=60_000))
    # An offset that exists but cannot be read yet is no error.
    assert [a.error_code for a in ask(broker, 12, part(1))] == [0]
    partition = broker.parts.hosted.by_name["t", 0]
    await perform(partition.log.flush())
    partition.after_flush(0)
    assert offsets(answers(12, replies[0])[0]) == [0]


# Offsets, epochs, names


@pytest.mark.parametrize("offset", [-1, -(2**63), 1, 11, 2**63 - 1])
async def test_offsets_out_of_range(filled, offset):
    filled.parts.hosted.by_name["t", 0].delete_records(2)
    [answer] = ask(filled, 12, part(offset))
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, answer.log_start_offset, answer.records or b"") == (10, 2, b"")


@pytest.mark.parametrize(("epoch", "expected"), [(-1, 0), (7, 0), (6, 74), (0, 74), (8, 75), (2**31 - 1, 75)])
async def test_leader_epochs(broker, epoch, expected):
    broker.create("t", leader_epoch=7)
    [answer] = ask(broker, 12, part(0, current_leader_epoch=epoch))
    assert answer.error_code == expected


@pytest.fixture
def epochs(broker):
    """Epoch 3 has offsets 0 to 4, epoch 5 has 5 to 9."""
    broker.create("t", leader_epoch=3)
    partition = broker.parts.hosted.by_name["t", 0]
    for i in range(10):
        if i == 5:
            partition.apply(
                dataclasses.replace(
                    partition.state, leader_epoch=5, partition_epoch=partition.state.partition_epoch + 1
                )
            )
        broker.append("t", i)
    return broker


@pytest.mark.parametrize(
    ("offset", "last_epoch", "expected"),
    [
        (10, 5, None),
        (5, 3, None),
        (3, 3, None),
        (6, 3, (3, 5)),
        (6, 4, (3, 5)),
        (5, 4, (3, 5)),
        (11, 5, (5, 10)),
        (99, 3, (3, 5)),
    ],
)
async def test_a_log_that_parts_from_ours_is_told_where(epochs, offset, last_epoch, expected):
    """Rule A7."""
    reply = handled(epochs, 12, part(offset, last_fetched_epoch=last_epoch), max_wait_ms=60_000 if expected else 0)
    [answer] = answers(12, reply)
    assert answer.error_code == 0
    told = (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset)
    assert told == (expected or (-1, -1))
    if expected:
        assert not answer.records


async def test_an_epoch_that_we_do_not_know(epochs):
    [answer] = ask(epochs, 12, part(5, last_fetched_epoch=9))
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_below_the_log_start_there_is_nothing_to_part_from(epochs):
    """Rule A8."""
    epochs.parts.hosted.by_name["t", 0].delete_records(6)
    [answer] = ask(epochs, 12, part(5, last_fetched_epoch=3))
    assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("topic", "index"), [("absent", 0), ("t", 2), ("t", -1), ("", 0)])
async def test_unknown_topics_and_partitions(filled, topic, index):
    [answer] = ask(filled, 12, part(0, index), topic=topic, max_wait_ms=60_000)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_unknown_topic_ids(filled):
    [answer] = ask(filled, 13, part(0), topic=Uuid(b"x" * 16))
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_partition_that_is_elsewhere_names_its_leader(broker):
    broker.commit([registration(2)])
    broker.create("t", (2,), leader_epoch=7)
    [answer] = ask(broker, 12, part(0))
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 7)


def damage(broker, position, data):
    with open(broker.parts.hosted.by_name["t", 0].log.segments.active.file.path, "r+b") as file:
        file.seek(position)
        file.write(data)


@pytest.mark.parametrize("length", [0, -1, 48, 2**31 - 1])
async def test_a_damaged_batch_is_not_served_and_what_is_around_it_is(make_broker, length):
    broker = make_broker()
    broker.create("t", (1,), (1,))
    for _ in range(10):
        broker.append("t", 1000)
    broker.append("t", 5000, index=1)
    log = broker.parts.hosted.by_name["t", 0].log
    damage(broker, 4 * batch_bytes(broker) + LENGTH_AT, struct.pack(">i", length))
    log.close_clean()
    reopened = load(broker.disk, log.directory, log.config, clean=True).log
    broker.parts.hosted.by_name["t", 0].log = reopened
    before, bad, after = (ask(broker, 12, part(offset), part(0, 1)) for offset in (0, 4, 5))
    assert offsets(before[0]) == [0, 1, 2, 3]
    assert (bad[0].error_code, offsets(bad[0])) == (ErrorCode.CORRUPT_MESSAGE, []), "nobody else has it"
    assert (bad[1].error_code, offsets(bad[1])) == (0, [0]), "another partition"
    assert offsets(after[0]) == [5, 6, 7, 8, 9]
    assert not broker.storage_errors, "a batch is bad, not the log dir"

    partition = broker.parts.hosted.by_name["t", 0]
    partition.state = dataclasses.replace(partition.state, replicas=(1, 2))
    [repairable] = ask(broker, 12, part(4))
    assert repairable.error_code == ErrorCode.KAFKA_STORAGE_ERROR, "try again: it may be repaired meanwhile"


async def test_a_request_that_cannot_be_read_is_malformed(broker):
    with pytest.raises(MalformedRequest):
        fetch.handle(memoryview(b"\0\0"), broker.context(1, 12), 0)


# Transactions


@pytest.fixture
def transactions(broker):
    """Offset 0 is plain, 1 belongs to an open transaction, 2 is plain."""
    broker.create("t")
    broker.append("t", 1000)
    broker.append("t", 1000, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    broker.append("t", 1000)
    return broker


async def test_an_open_transaction_hides_what_follows_from_those_who_want_committed_only(transactions):
    [all_of_it] = ask(transactions, 12, part(0), isolation_level=0)
    assert (offsets(all_of_it), all_of_it.last_stable_offset) == ([0, 1, 2], 1)
    assert all_of_it.aborted_transactions is None
    [committed] = ask(transactions, 12, part(0), isolation_level=1)
    assert (offsets(committed), committed.last_stable_offset, committed.high_watermark) == ([0], 1, 3)
    assert committed.aborted_transactions == []


async def test_an_append_behind_an_open_transaction_does_not_end_the_wait(transactions):
    replies = delivered(handled(transactions, 12, part(1), isolation_level=1, max_wait_ms=60_000))
    transactions.append("t", 1000)
    assert not replies
    assert transactions.parts.hosted.by_name["t", 0].readers


async def test_the_end_of_a_transaction_brings_all_that_it_hid(transactions):
    """The marker is small; what it lets through is what min_bytes asked for."""
    size = batch_bytes(transactions)
    replies = delivered(handled(transactions, 12, part(1), isolation_level=1, max_wait_ms=60_000, min_bytes=3 * size))
    transactions.append("t", 1000)
    assert not replies
    builder = BatchBuilder()
    builder.append(control_key(ControlRecordType.COMMIT), end_txn_marker(1), timestamp=1000)
    marker = builder.build(producer_id=7, producer_epoch=0, transactional=True, control=True)
    transactions.parts.hosted.by_name["t", 0].append_own(marker, 1000)
    assert offsets(answers(12, replies[0])[0]) == [1, 2, 3, 4]


async def test_txn_p9_the_list_of_aborted_transactions_ends_with_the_records_that_are_returned(broker):
    broker.create("t")
    partition = broker.parts.hosted.by_name["t", 0]
    for round in range(4):
        broker.append("t", 1000, producer_id=7, producer_epoch=round, base_sequence=0, transactional=True)
        partition.append_marker((7, round), False, 1, 1000, transaction_version=0)
    size = batch_bytes(broker)
    [answer] = ask(broker, 12, part(0), isolation_level=1)
    assert [txn.first_offset for txn in answer.aborted_transactions] == [0, 2, 4, 6]
    [answer] = ask(broker, 12, part(3, partition_max_bytes=2 * size + 10), isolation_level=1)
    assert offsets(answer) == [3, 4]
    assert [txn.first_offset for txn in answer.aborted_transactions] == [2, 4], "2 began before the first record"
    [answer] = ask(broker, 12, part(7), isolation_level=1)
    assert [txn.first_offset for txn in answer.aborted_transactions] == [6]


@pytest.mark.parametrize("isolation_level", [-1, 2])
@pytest.mark.parametrize("version", range(4, fetch.VERSIONS[-1] + 1))
async def test_an_isolation_level_that_there_is_not_is_refused(transactions, version, isolation_level):
    """It would be read up to the last stable offset, and not be told what of that was aborted."""
    topic = transactions.image.topics["t"].topic_id if version >= BY_ID else "t"
    reply = handled(transactions, version, part(0), topic=topic, isolation_level=isolation_level)
    [answer] = answers(version, reply)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert not answer.records


async def test_aborted_transactions_are_listed(filled):
    log = filled.parts.hosted.by_name["t", 0].log
    log.segments.active.txn_index.add(AbortedTxn(producer_id=7, first_offset=2, last_offset=4, last_stable_offset=5))
    log.segments.active.txn_index.add(AbortedTxn(producer_id=8, first_offset=6, last_offset=7, last_stable_offset=8))
    [answer] = ask(filled, 12, part(0), isolation_level=1)
    assert [(t.producer_id, t.first_offset) for t in answer.aborted_transactions] == [(7, 2), (8, 6)]
    [answer] = ask(filled, 12, part(5), isolation_level=1)
    assert [(t.producer_id, t.first_offset) for t in answer.aborted_transactions] == [(8, 6)]
    [answer] = ask(filled, 12, part(0), isolation_level=0)
    assert answer.aborted_transactions is None


# Sessions


def begin(broker, version=12, **fields):
    topic = broker.image.topics["t"].topic_id if version >= BY_ID else "t"
    reply = handled(broker, version, part(10), part(0, 1), topic=topic, session_epoch=0, **fields)
    return read(version, reply)


def go_on(broker, session_id, epoch, *parts, version=12, **fields):
    return read(version, handled(broker, version, *parts, session_id=session_id, session_epoch=epoch, **fields))


def told(reply):
    return [(p.partition_index, offsets(p)) for topic in reply.responses for p in topic.partitions]


@pytest.mark.parametrize("version", range(SESSIONS, fetch.VERSIONS[-1] + 1))
async def test_a_session_tells_everything_once_and_then_what_changed(filled, version):
    first = begin(filled, version)
    assert first.session_id > 0
    assert told(first) == [(0, []), (1, [])]
    assert told(go_on(filled, first.session_id, 1, version=version)) == []
    filled.append("t", 5000, index=1)
    assert told(go_on(filled, first.session_id, 2, version=version)) == [(1, [0])]
    topic = filled.image.topics["t"].topic_id if version >= BY_ID else "t"
    assert told(go_on(filled, first.session_id, 3, part(1, 1), version=version, topic=topic)) == []


async def test_a_session_waits_and_is_woken(filled):
    session_id = begin(filled).session_id
    replies = delivered(handled(filled, 12, session_id=session_id, session_epoch=1, max_wait_ms=60_000))
    filled.append("t", 5000)
    assert told(read(12, replies[0])) == [(0, [10])]


async def test_a_session_waits_for_min_bytes(filled):
    session_id = begin(filled).session_id
    filled.append("t", 5000)
    wanted = {"min_bytes": 2 * batch_bytes(filled), "max_wait_ms": 60_000}
    replies = delivered(handled(filled, 12, session_id=session_id, session_epoch=1, **wanted))
    assert not replies, "what came between two Fetches is not enough"
    filled.append("t", 5000, index=1)
    assert told(read(12, replies[0])) == [(0, [10]), (1, [0])]


async def test_a_forgotten_partition_is_not_told_of(filled):
    session_id = begin(filled).session_id
    filled.append("t", 5000)
    filled.append("t", 5000, index=1)
    assert told(go_on(filled, session_id, 1, forget=(0,))) == [(1, [0])]


async def test_errors_are_told_each_time(filled):
    reply = read(12, handled(filled, 12, part(0, 9), session_epoch=0))
    assert reply.session_id > 0
    for epoch in (1, 2):
        again = go_on(filled, reply.session_id, epoch, max_wait_ms=60_000)
        assert [p.error_code for p in again.responses[0].partitions] == [3]


async def test_wrong_sessions_and_epochs(filled):
    session_id = begin(filled).session_id
    assert go_on(filled, session_id, 2).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert go_on(filled, session_id + 1, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert go_on(filled, session_id, 1, version=13).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert go_on(filled, session_id, 1).error_code == 0


async def test_a_session_is_ended_by_its_reader(filled):
    session_id = begin(filled).session_id
    reply = go_on(filled, session_id, -1, part(9))
    assert (reply.session_id, told(reply)) == (0, [(0, [9])])
    assert go_on(filled, session_id, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(filled.parts.fetches.sessions) == 0


async def test_epoch_0_begins_anew(filled):
    session_id = begin(filled).session_id
    again = read(12, handled(filled, 12, part(10), session_id=session_id, session_epoch=0))
    assert again.session_id not in (0, session_id)
    assert len(filled.parts.fetches.sessions) == 1


async def test_no_room_for_a_session_is_no_error(filled):
    ids = [begin(filled).session_id for _ in range(11)]
    assert [session_id > 0 for session_id in ids] == [True] * 10 + [False]


async def test_every_partition_of_a_session_gets_its_turn(filled):
    for i in range(10):
        filled.append("t", i, index=1)
    first = read(12, handled(filled, 12, part(0), part(0, 1), session_epoch=0, max_bytes=1))
    assert told(first) == [(0, [0]), (1, [])]
    second = go_on(filled, first.session_id, 1, part(1, 0), max_bytes=1)
    assert told(second) == [(1, [0])]


# More partitions than a session may have


@pytest.fixture
def wide(filled, monkeypatch):
    """Two partitions are that many."""
    monkeypatch.setattr(fetch, "SESSION_PARTITIONS_MAX", 1)
    return filled


async def test_a_consumer_of_any_number_of_partitions_is_served(filled):
    """Kafka has no limit. There is no session for it, and it is answered in slices."""
    parts = [part(3), *(part(0, index) for index in range(1, 12_000))]
    reply = await handled(filled, 12, *parts, session_epoch=0, max_wait_ms=60_000)
    response = read(12, reply)
    assert (response.error_code, response.session_id) == (0, 0)
    first, second, *others = answers(12, reply)
    assert offsets(first) == [3, 4, 5, 6, 7, 8, 9]
    assert second.error_code == 0
    assert [p.partition_index for p in others] == list(range(2, 12_000))
    assert {p.error_code for p in others} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_a_wide_fetch_shares_its_bytes_among_all_parts(wide, monkeypatch):
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE_MAX", 1)
    wide.append("t", 5000, index=1)
    size = batch_bytes(wide)
    first, second = answers(12, await handled(wide, 12, part(0), part(0, 1), max_bytes=3 * size))
    assert (offsets(first), offsets(second)) == ([0, 1, 2], [])


async def test_a_wide_fetch_is_woken_by_an_append(wide):
    task = asyncio.ensure_future(handled(wide, 12, part(10), part(0, 1), max_wait_ms=60_000))
    while not wide.parts.hosted.by_name["t", 1].readers:  # noqa: ASYNC110 - the loop turns meanwhile
        await asyncio.sleep(0)
    wide.append("t", 5000, index=1)
    first, second = answers(12, await task)
    assert (offsets(first), offsets(second)) == ([], [0])
    assert not any(partition.readers for partition in wide.parts.hosted.by_name.values())


async def test_a_wide_fetch_sees_what_comes_while_it_reads(wide, monkeypatch):
    monkeypatch.setattr(fetch, "PARTITIONS_AT_ONCE_MAX", 1)
    monkeypatch.setattr(sliced_work, "TURN_S", 0)
    asked = []
    read_some = fetch._Fetch._read_some

    def read_and_append(self, places):
        read_some(self, places)
        asked.extend(place for place, _ in places)
        if asked == [("t", 0), ("t", 1)]:
            wide.append("t", 5000)  # to the partition that is read already

    monkeypatch.setattr(fetch._Fetch, "_read_some", read_and_append)
    first, second = answers(12, await handled(wide, 12, part(10), part(0, 1), max_wait_ms=60_000))
    assert (offsets(first), offsets(second)) == ([10], [])


@pytest.mark.parametrize(("listeners", "is_parsed"), [(1, False), (2, True)])
async def test_a_consumer_names_no_more_than_it_may_also_where_brokers_do(filled, monkeypatch, listeners, is_parsed):
    """Whether the listener is for brokers alone or for all: only a follower may name more, and only where no client asks."""
    monkeypatch.setattr(wire, "ENTRIES_MAX", 20)
    config = filled.parts.config
    other = config.listeners[0]._replace(name="CLIENTS")
    changed = dataclasses.replace(config, listeners=(other, *config.listeners)[2 - listeners :])
    filled.parts.dynamic_config = DynamicConfig(changed)
    parts = [part(0, index) for index in range(20)]
    told = "a consumer's Fetch of 21 topics and partitions" if is_parsed else "more than 20 topics and partitions"
    with pytest.raises(MalformedRequest, match=told):
        handled(filled, 12, *parts)
    follower = handled(filled, 12, *parts, replica_id=2) if is_parsed else None
    assert (follower is not None) == is_parsed


async def test_the_wait_of_a_wide_fetch_ends_when_its_time_is_up(wide):
    reply = await handled(wide, 12, part(10), part(0, 1), max_wait_ms=5)
    assert [(p.error_code, p.records or b"") for p in answers(12, reply)] == [(0, b"")] * 2


async def test_so_many_wide_fetches_are_in_progress_and_one_that_is_cancelled_is_none(wide):
    waiting = [
        asyncio.ensure_future(handled(wide, 12, part(10), part(0, 1), max_wait_ms=60_000))
        for _ in range(fetch.WIDE_FETCHES_MAX)
    ]
    while len(wide.parts.hosted.by_name["t", 1].readers) < len(waiting):  # noqa: ASYNC110 - the loop turns meanwhile
        await asyncio.sleep(0)
    with pytest.raises(MalformedRequest, match="a Fetch of 2 partitions"):
        await handled(wide, 12, part(10), part(0, 1))
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    assert wide.parts.limits.wide_fetches_count == 0
    assert not wide.parts.hosted.by_name["t", 1].readers
    assert await handled(wide, 12, part(10), part(0, 1))


# Cold reads


def in_simulation(story, cold_probability):
    world = World(1)
    node = world.node("n1")
    node.disk.cold_probability = 0

    async def on_node():
        broker = TestBroker(node.disk, "/data")
        broker.create("t", (1,), (1,))
        for i in range(100):
            broker.append("t", 1000 + i)
        node.disk.cold_probability = cold_probability
        await story(broker, node.disk)

    async def main():
        await node.spawn(on_node())

    world.run(main())
    world.close()


@pytest.mark.parametrize("cold_probability", [0.1, 0.3])
def test_cold_records_are_read_beside_the_loop(cold_probability):
    async def story(broker, disk):
        waited = 0
        for offset in range(100):
            reply = handled(broker, 12, part(offset, partition_max_bytes=200))
            if inspect.isawaitable(reply):
                waited += 1
                reply = await reply
            [answer] = answers(12, reply)
            assert (answer.error_code, offsets(answer)[:1]) == (0, [offset])
        assert waited > 5

    in_simulation(story, cold_probability)


def test_cold_aborted_transactions_are_read_beside_the_loop():
    async def story(broker, disk):
        partition = broker.parts.hosted.by_name["t", 0]
        broker.append("t", 1000, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        partition.append_marker((7, 1), False, 1, 1000, transaction_version=2)
        [index] = [file for file in disk.listdir(partition.log.directory) if file.endswith(".txnindex")]
        disk.open(f"{partition.log.directory}/{index}").inode.cold.add(0)
        reply = handled(broker, 12, part(100), isolation_level=1)
        assert inspect.isawaitable(reply)
        [answer] = answers(12, await reply)
        assert [(txn.producer_id, txn.first_offset) for txn in answer.aborted_transactions] == [(7, 100)]

    in_simulation(story, 0)


def test_what_stays_cold_is_left_for_the_next_fetch():
    async def story(broker, disk):
        reply = handled(broker, 12, part(0))
        [answer] = answers(12, await reply)
        assert (answer.error_code, answer.high_watermark, answer.records or b"") == (0, 100, b"")

    in_simulation(story, 1.0)


def test_a_waiting_fetch_whose_records_are_cold_when_it_is_woken():
    async def story(broker, disk):
        disk.cold_probability = 0.0
        later = handled(broker, 12, part(100), part(0, 1), max_wait_ms=60_000)
        replies = delivered(later)
        disk.cold_probability = 0.5
        broker.append("t", 5000, index=1)
        broker.append("t", 5000)
        await asyncio.sleep(1)
        disk.cold_probability = 0.0
        assert len(replies) == 1
        assert answers(12, replies[0])[0].error_code == 0

    in_simulation(story, 0.5)


def test_a_cold_read_is_given_up_with_its_connection():
    async def story(broker, disk):
        disk.cold_probability = 0.0
        later = handled(broker, 12, part(100), max_wait_ms=60_000)
        replies = delivered(later)
        disk.cold_probability = 1.0
        broker.append("t", 5000)
        assert not replies
        later.cancel()
        await asyncio.sleep(1)
        assert not replies

    in_simulation(story, 0.0)


def test_a_device_that_cannot_be_read_is_a_storage_error():
    async def story(broker, disk):
        partition = broker.parts.hosted.by_name["t", 0]
        broker.parts.hosted.storage_failed = lambda failed, error: failed.fail()
        disk.faults.set("/data", Fault.READ_ERROR)
        reply = handled(broker, 12, part(0))
        [answer] = answers(12, await reply if inspect.isawaitable(reply) else reply)
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert partition.offline

    in_simulation(story, 1.0)


@pytest.mark.parametrize("cold_probability", [0.3, 1.0])
def test_a_wide_fetch_reads_cold_records_beside_the_loop(monkeypatch, cold_probability):
    monkeypatch.setattr(fetch, "SESSION_PARTITIONS_MAX", 1)

    async def story(broker, disk):
        broker.append("t", 5000, index=1)
        first, second = answers(12, await handled(broker, 12, part(0), part(0, 1)))
        assert (first.error_code, second.error_code) == (0, 0)
        found = (offsets(first)[:1], offsets(second)[:1])
        assert found == (([], []) if cold_probability == 1.0 else ([0], [0]))

    in_simulation(story, cold_probability)
