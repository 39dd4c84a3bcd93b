"""A broker that coordinates all transactions at level 2 and leads every partition of them, and a producer of it.

async with coordinating(broker) as cluster:
    producer = await begun(cluster)
    assert await send(cluster, producer, ("a", 0)) == [NONE]
    assert (await end(cluster, producer))[0] is NONE
"""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator
from typing import Any

from strandline.api import (
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    produce,
    write_txn_markers,
)
from strandline.errors import ErrorCode
from strandline.metadata import records as r
from strandline.records.batch import BatchBuilder
from strandline.transactions.metadata import ProducerIdAndEpoch
from strandline.wire import messages

from .conftest import TestBroker

NONE = ErrorCode.NONE
STATE, OFFSETS = "__transaction_state", "__consumer_offsets"
Produce = messages.request(0)


@contextlib.asynccontextmanager
async def coordinating(broker: TestBroker) -> AsyncIterator[TestBroker]:
    """With two topics."""
    broker.commit([r.FeatureLevelRecord(name="transaction.version", feature_level=2)])
    broker.create(STATE, *[(1,)] * 4)
    broker.create(OFFSETS, *[(1,)] * 4)
    broker.create("a", (1,), (1,))
    broker.create("b")
    for runner in broker.transactions.runners.values():
        await runner._loading
    yield broker
    broker.groups.close()
    broker.transactions.close()
    broker.marker_sender.close()


async def initialize(cluster, tid="t", version=5, **fields):
    reply = await cluster.call(
        init_producer_id, version, transactional_id=tid, **{"transaction_timeout_ms": 60_000, **fields}
    )
    return ErrorCode(reply.error_code), ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)


async def begun(cluster, tid="t"):
    code, producer = await initialize(cluster, tid)
    assert code is NONE
    return producer


async def send(cluster, producer, *places, version=12, **fields):
    """The codes of the partitions, in order."""
    return await codes_of(cluster, produce_frame(producer, *places, version=version, **fields), version)


def produce_frame(producer, *places, version=12, sequence=0, tid="t", value=b"v", acks=-1):
    topics: dict[str, list[Any]] = {}
    for name, index in places:
        builder = BatchBuilder()
        builder.append(b"k", value, timestamp=1000)
        data = builder.build(
            producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=sequence, transactional=True
        )
        topics.setdefault(name, []).append(Produce.PartitionProduceData(index=index, records=bytes(data)))
    request = Produce(
        transactional_id=tid,
        acks=acks,
        timeout_ms=5000,
        topic_data=[Produce.TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
    )
    return b"\0" * 4 + messages.encode_request(0, version, request)


async def codes_of(cluster, frame, version):
    return codes_in(await produced(cluster, frame, version), version)


async def produced(cluster, frame, version):
    """The reply's bytes."""
    outcome: Any = produce.handle(memoryview(bytearray(frame)), cluster.context(0, version), 4)
    if inspect.isawaitable(outcome):
        outcome = await outcome
    if hasattr(outcome, "deliver_to"):
        done = asyncio.get_running_loop().create_future()
        outcome.deliver_to(done.set_result)
        outcome = await done
    return outcome


def codes_in(reply, version):
    reply = messages.decode_response(0, version, reply)
    return [ErrorCode(p.error_code) for topic in reply.responses for p in topic.partition_responses]


async def add(cluster, producer, *places, tid="t", version=3):
    topics: dict[str, list[Any]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    Add = messages.request(24)
    listed = [Add.AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()]
    reply = await cluster.call(
        add_partitions_to_txn,
        version,
        v3_and_below_transactional_id=tid,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=listed,
    )
    return {
        (topic.name, p.partition_index): ErrorCode(p.partition_error_code)
        for topic in reply.results_by_topic_v3_and_below
        for p in topic.results_by_partition
    }


async def add_for_leader(cluster, producer, *places, tid="t", version=5, verify_only=False):
    """As the leaders of the partitions ask."""
    topics: dict[str, list[Any]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    Add = messages.request(24)
    asked = Add.AddPartitionsToTxnTransaction(
        transactional_id=tid,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[Add.AddPartitionsToTxnTopic(name=name, partitions=found) for name, found in topics.items()],
    )
    reply = await cluster.call(add_partitions_to_txn, version, transactions=[asked])
    [result] = reply.results_by_transaction
    return {
        (topic.name, p.partition_index): ErrorCode(p.partition_error_code)
        for topic in result.topic_results
        for p in topic.results_by_partition
    }


async def end(cluster, producer, *, commit=True, tid="t", version=5):
    reply = await cluster.call(
        end_txn,
        version,
        transactional_id=tid,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    return ErrorCode(reply.error_code), ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)


async def state_of(cluster, tid="t"):
    reply = await cluster.call(describe_transactions, 0, transactional_ids=[tid])
    return reply.transaction_states[0]


async def complete(cluster, tid="t"):
    """Until the transaction is ended everywhere."""
    async with asyncio.timeout(5):
        while True:
            found = await state_of(cluster, tid)
            if found.transaction_state.startswith("Complete"):
                return found.transaction_state
            await asyncio.sleep(0)


def stable(cluster, name, index=0):
    partition = cluster.parts.hosted.by_name[name, index]
    return partition.last_stable_offset, partition.high_watermark


def markers(producer, *places, commit=False, coordinator_epoch=0, version=0):
    Write = messages.request(27)
    topics: dict[str, list[Any]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    return [
        Write.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            transaction_result=commit,
            topics=[Write.WritableTxnMarkerTopic(name=name, partition_indexes=found) for name, found in topics.items()],
            coordinator_epoch=coordinator_epoch,
            transaction_version=version,
        )
    ]


async def marked(cluster, producer, *places, api_version=2, listener=None, **fields):
    reply = await cluster.call(
        write_txn_markers,
        api_version,
        **({} if listener is None else {"listener": listener}),
        markers=markers(producer, *places, **fields),
    )
    return {
        (topic.name, p.partition_index): ErrorCode(p.error_code)
        for marker in reply.markers
        for topic in marker.topics
        for p in topic.partitions
    }
