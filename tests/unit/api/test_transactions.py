"""Transactions through the APIs of one broker: its coordinator, its partitions, its answers in every version."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from typing import Any

import pytest

from strandline.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    end_txn,
    init_producer_id,
    list_transactions,
    produce,
    write_txn_markers,
)
from strandline.errors import ErrorCode
from strandline.records.batch import BatchBuilder
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.wire import messages

from .transaction_side import (
    NONE,
    OFFSETS,
    Produce,
    add,
    add_for_leader,
    begun,
    codes_in,
    codes_of,
    complete,
    coordinating,
    end,
    initialize,
    marked,
    produce_frame,
    produced,
    send,
    stable,
    state_of,
)


@pytest.fixture
async def cluster(broker):
    async with coordinating(broker) as cluster:
        yield cluster


async def test_a_transaction_of_version_2_from_begin_to_end(cluster):
    producer = await begun(cluster)
    assert await send(cluster, producer, ("a", 0), ("b", 0)) == [NONE, NONE]
    assert stable(cluster, "a") == (0, 1)
    found = await state_of(cluster)
    assert (found.transaction_state, found.producer_id) == ("Ongoing", producer.producer_id)
    assert [(topic.topic, list(topic.partitions)) for topic in found.topics] == [("a", [0]), ("b", [0])]
    code, after = await end(cluster, producer)
    assert (code, after) == (NONE, (producer.producer_id, producer.epoch + 1))
    assert await complete(cluster) == "CompleteCommit"
    assert stable(cluster, "a") == stable(cluster, "b") == (2, 2)
    assert await send(cluster, after, ("a", 1)) == [NONE]
    assert (await end(cluster, after, commit=False))[0] is NONE
    assert await complete(cluster) == "CompleteAbort"


async def test_a_transaction_of_an_old_client(cluster):
    producer = await begun(cluster)
    assert await send(cluster, producer, ("a", 0), version=11) == [ErrorCode.TRANSACTION_ABORTABLE]
    assert await send(cluster, producer, ("a", 0), version=10) == [ErrorCode.INVALID_TXN_STATE]
    assert await add(cluster, producer, ("a", 0), ("a", 1)) == {("a", 0): NONE, ("a", 1): NONE}
    assert await send(cluster, producer, ("a", 0), version=9) == [NONE]
    assert await send(cluster, producer, ("a", 0), version=9, sequence=1) == [NONE]
    assert await end(cluster, producer, version=3) == (NONE, (-1, -1))
    assert await complete(cluster) == "CompleteCommit"
    assert await add(cluster, producer, ("a", 0)) == {("a", 0): NONE}
    assert await send(cluster, producer, ("a", 0), version=9, sequence=2) == [NONE], "sequences go on at the same epoch"
    assert await end(cluster, producer, commit=False, version=1) == (NONE, (-1, -1))
    assert await complete(cluster) == "CompleteAbort"


@pytest.mark.parametrize("version", init_producer_id.VERSIONS)
async def test_every_version_of_init_producer_id(cluster, version):
    first = await initialize(cluster, version=version)
    second = await initialize(cluster, version=version)
    assert (first[0], second[0]) == (NONE, NONE)
    assert second[1].epoch == first[1].epoch + 1
    if version >= 3:
        fields = {"producer_id": first[1].producer_id, "producer_epoch": first[1].epoch}
        expected = ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH
        assert (await initialize(cluster, version=version, **fields))[0] is expected


@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
async def test_timeouts_that_are_none(cluster, timeout_ms):
    code, _ = await initialize(cluster, transaction_timeout_ms=timeout_ms)
    assert code is ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("version", end_txn.VERSIONS)
async def test_txn_t14_a_fenced_producer_hears_it_in_its_version(cluster, version):
    producer = await begun(cluster)
    await begun(cluster)
    expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert (await end(cluster, producer, version=version))[0] is expected


@pytest.mark.parametrize("version", range(4))
async def test_txn_t16_all_partitions_are_added_or_none(cluster, version):
    producer = await begun(cluster)
    assert await add(cluster, producer, ("a", 0), ("nowhere", 0), ("a", 7), version=version) == {
        ("a", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("a", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert (await state_of(cluster)).transaction_state == "Empty"


@pytest.mark.parametrize("version", add_offsets_to_txn.VERSIONS)
async def test_offsets_are_part_of_a_transaction(cluster, version):
    producer = await begun(cluster)
    fields = {"transactional_id": "t", "producer_id": producer.producer_id, "group_id": "g"}
    reply = await cluster.call(add_offsets_to_txn, version, producer_epoch=producer.epoch, **fields)
    assert reply.error_code == NONE
    assert [topic.topic for topic in (await state_of(cluster)).topics] == [OFFSETS]
    reply = await cluster.call(add_offsets_to_txn, version, producer_epoch=producer.epoch - 1, **fields)
    assert reply.error_code == (ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH)


async def test_txn_p1_one_request_has_one_producer(cluster):
    one, two = await begun(cluster, "one"), await begun(cluster, "two")
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=1000)
    data = [
        Produce.PartitionProduceData(
            index=index,
            records=bytes(
                builder.build(
                    producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
                )
            ),
        )
        for index, producer in enumerate((one, two))
    ]
    request = Produce(
        transactional_id="one",
        acks=-1,
        timeout_ms=5000,
        topic_data=[Produce.TopicProduceData(name="a", partition_data=data)],
    )
    frame = b"\0" * 4 + messages.encode_request(0, 12, request)
    assert await codes_of(cluster, frame, 12) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


async def test_txn_p1_nor_two_epochs_of_one(cluster):
    producer = await begun(cluster)
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=1000)
    data = [
        Produce.PartitionProduceData(
            index=index,
            records=bytes(
                builder.build(
                    producer_id=producer.producer_id, producer_epoch=epoch, base_sequence=0, transactional=True
                )
            ),
        )
        for index, epoch in enumerate((producer.epoch, producer.epoch + 1))
    ]
    topic = Produce.TopicProduceData(name="a", partition_data=data)
    request = Produce(transactional_id="t", acks=-1, timeout_ms=5000, topic_data=[topic])
    frame = b"\0" * 4 + messages.encode_request(0, 12, request)
    assert await codes_of(cluster, frame, 12) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2


async def test_a_producer_that_the_coordinator_does_not_know(cluster):
    stranger = ProducerIdAndEpoch(999, 0)
    assert await send(cluster, stranger, ("a", 0)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
    log = cluster.parts.hosted.by_name["a", 0].log
    assert log.log_end_offset == 0
    assert len(log.guards) == 0, "what strangers claim is not remembered"


@pytest.mark.parametrize("epochs_ahead", [0, 1000])
async def test_txn_v5_a_stranger_holds_up_no_producer_whose_id_it_claims(cluster, epochs_ahead):
    producer, log = await begun(cluster), cluster.parts.hosted.by_name["a", 0].log
    await begun(cluster, "stranger")
    assert await add(cluster, producer, ("a", 0)) == {("a", 0): NONE}
    assert await send(cluster, producer, ("a", 0), version=9, sequence=6) == [NONE]
    await end(cluster, producer, version=1)
    await complete(cluster)
    claim = ProducerIdAndEpoch(producer.producer_id, producer.epoch + epochs_ahead)
    taken, refused = await asyncio.gather(
        send(cluster, producer, ("a", 0), sequence=7), send(cluster, claim, ("a", 0), tid="stranger")
    )
    assert taken == [NONE]
    assert refused != [NONE]
    assert (log.log_end_offset, len(log.guards)) == (3, 0)


@pytest.mark.parametrize("version", [4, 5])
async def test_txn_t15_from_version_4_on_an_addition_is_of_brokers(cluster, version):
    producer = await begun(cluster)
    Add = messages.request(add_partitions_to_txn.KEY)
    topics = [Add.AddPartitionsToTxnTopic(name="a", partitions=[0])]
    pair = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    asked = Add.AddPartitionsToTxnTransaction(transactional_id="t", topics=topics, **pair)
    reply = await cluster.call(add_partitions_to_txn, version, listener="OTHER", transactions=[asked])
    assert (reply.error_code, reply.results_by_transaction) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    unverified = await add_for_leader(cluster, producer, ("a", 0), version=version, verify_only=True)
    assert unverified == {("a", 0): ErrorCode.TRANSACTION_ABORTABLE}
    assert (await state_of(cluster)).transaction_state == "Empty", "a verification changes nothing"
    assert await add_for_leader(cluster, producer, ("a", 0), version=version) == {("a", 0): NONE}
    verified = await add_for_leader(cluster, producer, ("a", 0), ("a", 1), version=version, verify_only=True)
    assert verified == {("a", 0): NONE, ("a", 1): ErrorCode.TRANSACTION_ABORTABLE}
    [shard] = [shard for shard in cluster.transactions.shards() if shard.transactions]
    assert shard.transactions["t"].transaction_version == 2, "its client speaks version 2"


async def test_txn_t15_offsets_are_added_as_a_partition_and_their_client_speaks_version_0(cluster):
    producer = await begun(cluster)
    pair = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    reply = await cluster.call(add_offsets_to_txn, 4, transactional_id="t", group_id="g", **pair)
    assert reply.error_code == NONE
    [topic] = (await state_of(cluster)).topics
    assert (topic.topic, len(topic.partitions)) == (OFFSETS, 1)
    [shard] = [shard for shard in cluster.transactions.shards() if shard.transactions]
    assert shard.transactions["t"].transaction_version == 0


@pytest.mark.parametrize("version", [0, 3, 5])
async def test_ten_thousand_partitions_in_one_addition(cluster, version):
    """They are led elsewhere, if they exist."""
    count = add_partitions_to_txn.PARTITIONS_MAX + 1
    cluster.create("wide", *[(2,)] * count, leader=2)
    producer = await begun(cluster)
    adding = add if version < add_partitions_to_txn.FOR_BROKERS_SINCE else add_for_leader
    places = [("wide", index) for index in range(count)]
    codes = await adding(cluster, producer, *places, version=version)
    assert codes == dict.fromkeys(places, ErrorCode.INVALID_REQUEST)
    assert (await state_of(cluster)).transaction_state == "Empty", "none was added"
    absent = await adding(cluster, producer, *places[:5000], ("nowhere", 0), ("wide", count), version=version)
    assert {place for place, code in absent.items() if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} == {
        ("nowhere", 0),
        ("wide", count),
    }
    assert set(absent.values()) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED}
    assert (await state_of(cluster)).transaction_state == "Empty"
    codes = await adding(cluster, producer, *places[1:], *places[1:], version=version)
    assert codes == dict.fromkeys(places[1:], NONE)
    found = await state_of(cluster)
    assert [(topic.topic, len(topic.partitions)) for topic in found.topics] == [("wide", count - 1)]
    assert (await end(cluster, producer))[0] is NONE, "an end is never too large"


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
async def test_a_refusal_repeats_no_endless_transactional_id_for_each_partition(cluster, version):
    """SEC-L2. Nor could it be written down: an error message has its length in 16 bits up to version 8, and clients take no more in
    later ones."""
    tid = "x" * 32_767
    producer = await begun(cluster, tid)
    fenced = ProducerIdAndEpoch(producer.producer_id + 1, 0)
    places = [("a", index) for index in (0, 1)] * 100
    refused = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    frame = produce_frame(fenced, *places, version=version, tid=tid)
    reply = await produced(cluster, frame, version)
    assert len(reply) < 200 * len(places)
    assert codes_in(reply, version) == [refused] * len(places)


async def test_txn_v2_an_older_epoch_is_refused_before_the_coordinator_is_asked(cluster):
    producer = await begun(cluster)
    assert await send(cluster, producer, ("a", 0)) == [NONE]
    _, after = await end(cluster, producer)
    await complete(cluster)
    assert await send(cluster, after, ("a", 0)) == [NONE]
    assert await send(cluster, producer, ("a", 0), sequence=1) == [ErrorCode.INVALID_PRODUCER_EPOCH]


async def test_txn_v2_a_batch_of_an_ended_transaction_that_comes_again_holds_up_no_other(cluster):
    """A connection that stood still delivers it late; the epoch of old clients is the same in the next transaction."""
    producer = await begun(cluster)
    for sequence in (0, 1):
        assert await add(cluster, producer, ("a", 0)) == {("a", 0): NONE}
        assert await send(cluster, producer, ("a", 0), version=9, sequence=sequence) == [NONE]
        await end(cluster, producer, version=1)
        await complete(cluster)
        assert await send(cluster, producer, ("a", 0), version=9, sequence=sequence) == [NONE]
        assert len(cluster.parts.hosted.by_name["a", 0].log.guards) == 0
    assert stable(cluster, "a") == (4, 4)


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)])
async def test_txn_v1_a_late_record_of_an_old_client_opens_nothing(cluster, version, code):
    """Its epoch is the current one and its sequence is the next, so that only the coordinator can tell."""
    producer = await begun(cluster)
    assert await add(cluster, producer, ("a", 0)) == {("a", 0): NONE}
    assert await send(cluster, producer, ("a", 0), version=version) == [NONE]
    await end(cluster, producer, commit=False, version=1)
    await complete(cluster)
    assert await send(cluster, producer, ("a", 0), version=version, sequence=1) == [code]
    assert stable(cluster, "a") == (2, 2)


async def test_txn_t27_a_leader_waits_a_moment_for_the_transaction_before(cluster):
    producer = await begun(cluster)
    assert await send(cluster, producer, ("a", 0)) == [NONE]
    _, after = await end(cluster, producer)
    assert await send(cluster, after, ("b", 0)) == [NONE]


async def test_with_acks_0_a_transaction_begins_too(cluster):
    producer = await begun(cluster)
    request = Produce(transactional_id="t", acks=0, timeout_ms=5000, topic_data=[])
    assert request.acks == 0
    assert await send(cluster, producer, ("a", 0), acks=1) == [NONE]


async def test_without_verification_old_clients_open_transactions_unasked(cluster):
    cluster.parts.dynamic_config.update({}, {"transaction.partition.verification.enable": "false"})
    producer = await begun(cluster)
    assert await send(cluster, producer, ("a", 0), version=11) == [NONE]
    assert await send(cluster, ProducerIdAndEpoch(999, 0), ("a", 1)) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


async def test_txn_v8_a_produce_that_waits_is_a_barrier_and_has_a_copy_of_its_bytes(cluster):
    producer = await begun(cluster)
    builder = BatchBuilder()
    builder.append(b"k", b"kept", timestamp=1000)
    data = builder.build(
        producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    partition = Produce.PartitionProduceData(index=0, records=bytes(data))
    topic = Produce.TopicProduceData(name="a", partition_data=[partition])
    request = Produce(transactional_id="t", acks=-1, timeout_ms=5000, topic_data=[topic])
    frame = bytearray(b"\0" * 4 + messages.encode_request(0, 12, request))
    outcome: Any = produce.handle(memoryview(frame), cluster.context(0, 12), 4)
    assert inspect.isawaitable(outcome), "the next request waits for it"
    frame[:] = bytes(len(frame))
    reply = await outcome
    assert not hasattr(reply, "deliver_to") or reply.may_be_overtaken
    log = cluster.parts.hosted.by_name["a", 0].log
    assert b"kept" in bytes(log.read(0, 1000, log.log_end_offset, min_one=True))


@pytest.mark.parametrize("leader", [1, 2])
async def test_txn_v8_a_produce_that_waited_over_an_election_is_refused(cluster, leader):
    """Also where the same node was elected again: its guards are those of the leader epoch before."""
    producer, partition = await begun(cluster), cluster.parts.hosted.by_name["a", 0]
    waiting = asyncio.create_task(send(cluster, producer, ("a", 0)))
    await asyncio.sleep(0)
    assert len(partition.log.guards) == 1, "the question is open"
    state = partition.state
    partition.apply(
        replace(
            state,
            leader=leader,
            replicas=(1, 2),
            leader_epoch=state.leader_epoch + 1,
            partition_epoch=state.partition_epoch + 1,
        )
    )
    assert await waiting == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert partition.log.log_end_offset == 0


# Markers


async def test_txn_t35_each_partition_has_its_answer(cluster):
    producer = await begun(cluster)
    await send(cluster, producer, ("a", 0))
    cluster.create("elsewhere", (2, 1), leader=2)
    codes = await marked(cluster, producer, ("a", 0), ("a", 1), ("elsewhere", 0), ("nowhere", 0), ("a", 9))
    assert codes == {
        ("a", 0): NONE,
        ("a", 1): NONE,
        ("elsewhere", 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("a", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert stable(cluster, "a") == (2, 2)
    stale = await marked(cluster, ProducerIdAndEpoch(producer.producer_id, producer.epoch - 1), ("a", 0))
    assert stale == {("a", 0): ErrorCode.INVALID_PRODUCER_EPOCH}


async def test_no_markers_no_results(cluster):
    reply = await cluster.call(write_txn_markers, 1, markers=[])
    assert reply.markers == []


@pytest.mark.parametrize("hangs", [False, True])
async def test_txn_t40_a_client_may_abort_only_what_hangs(cluster, hangs):
    producer = await begun(cluster)
    await send(cluster, producer, ("a", 0))
    if hangs:  # for a quarter of an hour; what its producer says of the time does not count
        cluster.parts.hosted.by_name["a", 0].log.txn_began_ms[producer.producer_id] -= 15 * 60_000 + 1
        cluster.parts.hosted.by_name["a", 0].leadership.began_s -= 15 * 60 + 0.001
    refused = {("a", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    for fields in ({"commit": True}, {"version": 2}):
        assert await marked(cluster, producer, ("a", 0), listener="OTHER", **fields) == refused
    stranger = ProducerIdAndEpoch(producer.producer_id + 1, 0)
    assert await marked(cluster, stranger, ("a", 0), listener="OTHER") == refused
    expected = {("a", 0): NONE} if hangs else refused
    assert await marked(cluster, producer, ("a", 0), listener="OTHER") == expected


# What can be seen


async def test_txn_t37_what_is_not_there(cluster):
    assert (await state_of(cluster, "nobody")).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert (await state_of(cluster, "")).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", list_transactions.VERSIONS)
async def test_txn_t38_transactions_are_listed(cluster, version):
    producer = await begun(cluster, "open")
    await send(cluster, producer, ("a", 0), tid="open")
    await begun(cluster, "idle")

    async def listed(**fields):
        reply = await cluster.call(list_transactions, version, **fields)
        assert reply.error_code == NONE
        return {one.transactional_id: one.transaction_state for one in reply.transaction_states}

    assert await listed() == {"open": "Ongoing", "idle": "Empty"}
    assert await listed(state_filters=["Ongoing"]) == {"open": "Ongoing"}
    assert await listed(state_filters=["Nonsense"]) == {}
    assert await listed(producer_id_filters=[producer.producer_id]) == {"open": "Ongoing"}
    if version >= 1:
        assert await listed(duration_filter=10**9) == {"idle": "Empty"}
    if version >= 2:
        assert await listed(transactional_id_pattern="o.*") == {"open": "Ongoing"}
        reply = await cluster.call(list_transactions, version, transactional_id_pattern="(")
        assert reply.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


async def test_the_longest_transactional_id_there_is(cluster):
    assert (await initialize(cluster, "x" * 32_767))[0] is NONE
