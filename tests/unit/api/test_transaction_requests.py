"""Requests about transactions: who may send them, what they may name, what is answered in which version."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio

import pytest

from strandline.api import add_offsets_to_txn, list_transactions
from strandline.api.groups.placement import partition_of
from strandline.errors import ErrorCode

from .conftest import registration
from .transaction_side import (
    NONE,
    OFFSETS,
    STATE,
    add,
    add_for_leader,
    begun,
    complete,
    coordinating,
    end,
    send,
    state_of,
)

UNAUTHORIZED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
A = ("a", 0)


@pytest.fixture
async def cluster(broker):
    async with coordinating(broker) as cluster:
        yield cluster


# Internal topics


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("topic", [STATE, OFFSETS])
async def test_txn_t16_a_client_adds_no_internal_topic(cluster, topic, version):
    producer = await begun(cluster)
    assert await add(cluster, producer, A, (topic, 0), version=version) == {
        A: ErrorCode.OPERATION_NOT_ATTEMPTED,
        (topic, 0): UNAUTHORIZED,
    }
    assert (await state_of(cluster)).transaction_state == "Empty"


async def test_txn_t16_a_leader_adds_the_partition_of_a_group(cluster):
    producer = await begun(cluster)
    assert await add_for_leader(cluster, producer, (OFFSETS, 0)) == {(OFFSETS, 0): NONE}


async def test_txn_t16_nor_by_sending_records_there(cluster):
    producer = await begun(cluster)
    refused = ErrorCode.INVALID_TOPIC_EXCEPTION
    assert await send(cluster, producer, (STATE, 0), (OFFSETS, 0), A) == [refused, refused, NONE]
    assert [topic.topic for topic in (await state_of(cluster)).topics] == ["a"]
    assert (await end(cluster, producer))[0] is NONE
    assert await complete(cluster) == "CompleteCommit"
    assert not cluster.parts.hosted.by_name[STATE, 0].log.producers.by_id


# Which versions are whose


def level_of_client(cluster):
    return cluster.transactions.runners[partition_of("t", 4)].shard.transactions["t"].transaction_version


async def test_txn_t17_the_version_of_an_addition_says_the_level_of_its_client(cluster):
    producer = await begun(cluster)
    await add(cluster, producer, A, version=3)
    assert level_of_client(cluster) == 0
    await add_for_leader(cluster, producer, ("a", 1), version=4)
    assert level_of_client(cluster) == 2
    fields = {"transactional_id": "t", "producer_id": producer.producer_id, "group_id": "g"}
    reply = await cluster.call(add_offsets_to_txn, 4, producer_epoch=producer.epoch, **fields)
    assert (reply.error_code, level_of_client(cluster)) == (NONE, 0)


@pytest.mark.parametrize("version", range(4))
async def test_txn_t14_whose_partitions_are_refused_hears_it_in_its_version(cluster, version):
    producer = await begun(cluster)
    await begun(cluster)
    expected = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert await add(cluster, producer, A, version=version) == {A: expected}


# What waits


def replicate_state(cluster):
    """What the coordinator of "t" writes is committed once a follower has it, too; until then nothing new is."""
    index = partition_of("t", 4)
    cluster.commit([registration(2)])
    cluster.change(STATE, index, replicas=(1, 2), isr=(1, 2))
    return lambda: cluster.follow(2, cluster.parts.hosted.by_name[STATE, index].log.log_end_offset, STATE, index)


async def turns():
    for _ in range(20):
        await asyncio.sleep(0)


async def verified_by_request(cluster, producer):
    return await add_for_leader(cluster, producer, A, verify_only=True)


async def verified_here(cluster, producer):
    """As the node's own partitions ask it."""
    return await cluster.parts.transactions.verify("t", producer, frozenset({A}), verify_only=True)


@pytest.mark.parametrize("verify", [verified_by_request, verified_here])
async def test_txn_t2_a_verification_waits_until_what_it_has_seen_is_committed(cluster, verify):
    """Else a leader writes on the word of a log that the next coordinator does not have."""
    producer = await begun(cluster)
    replicate = replicate_state(cluster)
    adding = asyncio.get_running_loop().create_task(add_for_leader(cluster, producer, A))
    await turns()
    verifying = asyncio.get_running_loop().create_task(verify(cluster, producer))
    await turns()
    assert not adding.done()
    assert not verifying.done()
    replicate()
    assert (await adding, await verifying) == ({A: NONE}, {A: NONE})


async def ending(cluster, retry_ms):
    """A producer whose last transaction waits for one marker, and how that is written at last."""
    cluster.parts.dynamic_config.update({}, {"add.partitions.to.txn.retry.backoff.max.ms": str(retry_ms)})
    producer = await begun(cluster)
    cluster.commit([registration(2)])
    cluster.create("far", (1, 2))
    asyncio.get_running_loop().create_task(send(cluster, producer, ("far", 0), acks=1))
    await turns()
    code, producer = await end(cluster, producer)
    assert code is NONE
    await turns()
    log = cluster.parts.hosted.by_name["far", 0].log
    return producer, lambda: cluster.follow(2, log.log_end_offset, "far", 0)


async def test_txn_t27_it_is_asked_again_until_the_transaction_before_is_ended(cluster):
    producer, replicate = await ending(cluster, 60_000)
    sending = asyncio.get_running_loop().create_task(send(cluster, producer, A))
    await turns()
    assert not sending.done()
    replicate()
    async with asyncio.timeout(5):
        assert await sending == [NONE]


async def test_txn_t27_but_not_for_ever(cluster):
    producer, _ = await ending(cluster, 50)
    async with asyncio.timeout(5):
        assert await send(cluster, producer, A) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert (await state_of(cluster)).transaction_state == "PrepareCommit"


async def test_txn_t38_while_a_partition_is_loaded_nobody_says_which_transactions_there_are(cluster):
    await begun(cluster)
    cluster.change(STATE, 0, leader=1)
    reply = await cluster.call(list_transactions, 0)
    assert (reply.error_code, reply.transaction_states) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
    await cluster.transactions.runners[0]._loading
    reply = await cluster.call(list_transactions, 0)
    assert (reply.error_code, [one.transactional_id for one in reply.transaction_states]) == (NONE, ["t"])
