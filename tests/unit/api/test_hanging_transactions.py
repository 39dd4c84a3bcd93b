"""What a client may abort because nobody else ends it any more (TXN-T40)."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.errors import ErrorCode

from .transaction_side import NONE, begun, complete, coordinating, end, marked, send

A = ("a", 0)
REFUSED = {A: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
LONG_S = 15 * 60 + 0.001


@pytest.fixture
async def cluster(broker):
    async with coordinating(broker) as cluster:
        yield cluster


async def opened(cluster):
    """A producer with an open transaction, whose records say that they are old."""
    producer = await begun(cluster)
    assert await send(cluster, producer, A) == [NONE]
    return producer


def age(cluster):
    """A quarter of an hour goes by."""
    partition = cluster.parts.hosted.by_name[A]
    partition.leadership.began_s -= LONG_S
    for producer_id in partition.log.txn_began_ms:
        partition.log.txn_began_ms[producer_id] -= round(LONG_S * 1000)


async def from_client(cluster, producer, **fields):
    return await marked(cluster, producer, A, listener="OTHER", **fields)


async def test_txn_t40_what_a_leader_finds_open_is_as_young_as_its_epoch(cluster):
    """Else any client could abort one partition of a transaction that is alive."""
    producer = await opened(cluster)
    age(cluster)
    cluster.change(*A, leader=1)
    assert await from_client(cluster, producer) == REFUSED
    code, _ = await end(cluster, producer)
    assert code is NONE
    assert await complete(cluster) == "CompleteCommit"
    assert not cluster.parts.hosted.by_name[A].log.aborted_between(0, 10)


async def test_txn_t40_it_hangs_a_while_after_the_election(cluster):
    producer = await opened(cluster)
    cluster.change(*A, leader=1)
    age(cluster)
    assert await from_client(cluster, producer) == {A: NONE}


async def test_txn_t40_a_newer_coordinator_epoch_is_nobodys(cluster):
    """Stored, it would have every later marker of this producer refused."""
    producer = await opened(cluster)
    age(cluster)
    for coordinator_epoch in (2**31 - 1, 1, -1):
        assert await from_client(cluster, producer, coordinator_epoch=coordinator_epoch) == REFUSED
    assert await from_client(cluster, producer, coordinator_epoch=0) == {A: NONE}


async def test_txn_t40_the_coordinator_epoch_is_the_one_that_the_partition_remembers(cluster):
    producer = await opened(cluster)
    _, producer = await end(cluster, producer)
    await complete(cluster)
    assert await send(cluster, producer, A) == [NONE]
    last = cluster.parts.hosted.by_name[A].log.producers.by_id[producer.producer_id]
    last.coordinator_epoch = 7
    age(cluster)
    assert await from_client(cluster, producer, coordinator_epoch=0) == REFUSED
    assert await from_client(cluster, producer, coordinator_epoch=7) == {A: NONE}
