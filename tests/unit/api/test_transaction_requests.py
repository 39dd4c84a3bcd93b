"""Requests about transactions: who may send them, what they may name, what is answered in which version."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode

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
