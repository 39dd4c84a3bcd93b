"""FindCoordinator: groups, and what has no coordinator here."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import asyncio

import pytest

from strandline.api import find_coordinator
from strandline.errors import ErrorCode

from .conftest import registration

GROUP, TRANSACTION, SHARE = range(3)
OFFSETS = "__consumer_offsets"


@pytest.mark.parametrize("version", range(4))
async def test_one_key(broker, version):
    reply = await broker.call(find_coordinator, version, key="k")
    assert (reply.error_code, reply.node_id, reply.host, reply.port) == (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        -1,
        "",
        -1,
    )


@pytest.mark.parametrize("version", find_coordinator.VERSIONS[1:])
async def test_txn_t36_the_coordinator_of_a_transactional_id_leads_its_partition(broker, version):
    async def ask():
        if version < 4:
            return await broker.call(find_coordinator, version, key_type=TRANSACTION, key="k")
        reply = await broker.call(find_coordinator, version, key_type=TRANSACTION, coordinator_keys=["k"])
        return reply.coordinators[0]

    found = await ask()
    assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    broker.create("__transaction_state", *[(1,)] * 3)
    found = await ask()
    assert (found.error_code, found.node_id, found.port) == (0, 1, 9091)


async def test_txn_t5_the_topic_is_created_when_it_is_first_asked_for(broker):
    await broker.call(find_coordinator, 4, key_type=TRANSACTION, coordinator_keys=["k"])
    await asyncio.gather(*broker.beside)
    topic = broker.image.topics.get("__transaction_state")
    if topic is None:
        assert any("replication" in line for line in broker.lines), "one broker can't hold three replicas"
    else:
        assert len(topic.partitions) == 50


@pytest.mark.parametrize("version", range(4, 7))
async def test_several_keys(broker, version):
    reply = await broker.call(find_coordinator, version, key_type=GROUP, coordinator_keys=["a", "b", ""])
    assert [(c.key, c.error_code, c.node_id, c.port) for c in reply.coordinators] == [
        (key, ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, -1) for key in ("a", "b", "")
    ]
    assert (await broker.call(find_coordinator, version, key_type=GROUP, coordinator_keys=[])).coordinators == []


@pytest.mark.parametrize("version", find_coordinator.VERSIONS)
async def test_the_leader_on_the_listener_that_asks(broker, version):
    broker.commit([registration(2)])
    broker.create(OFFSETS, (2,))
    for listener, host, port in (("PLAINTEXT", "host2", 9092), ("OTHER", "other2", 9192)):
        if version < 4:
            found = await broker.call(find_coordinator, version, listener, key="g")
        else:
            reply = await broker.call(find_coordinator, version, listener, coordinator_keys=["g"])
            [found] = reply.coordinators
        assert (found.error_code, found.node_id, found.host, found.port) == (0, 2, host, port)


async def test_each_group_has_its_partition(broker):
    broker.commit([registration(2)])
    broker.create(OFFSETS, (1,), (2,))
    reply = await broker.call(find_coordinator, 4, coordinator_keys=["a", "b", "c"])
    assert [c.node_id for c in reply.coordinators] == [2, 1, 2]


async def test_a_leader_that_is_fenced_or_suspected_or_none_is_no_coordinator(broker):
    broker.commit([registration(2), registration(3, fenced=True)])
    broker.create(OFFSETS, (2, 3))

    async def error():
        return (await broker.call(find_coordinator, 3, key="g")).error_code

    assert await error() == 0
    broker.suspects = frozenset({2})
    assert await error() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    broker.suspects = frozenset()
    for leader in (3, -1):
        broker.change(OFFSETS, leader=leader)
        assert await error() == ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(("version", "key_type"), [(1, 2), (3, 9), (4, -1), (5, SHARE), (6, 3)])
async def test_types_that_do_not_exist_in_a_version(broker, version, key_type):
    fields = {"coordinator_keys": ["k"]} if version >= 4 else {"key": "k"}
    reply = await broker.call(find_coordinator, version, key_type=key_type, **fields)
    error = reply.coordinators[0].error_code if version >= 4 else reply.error_code
    assert error == ErrorCode.INVALID_REQUEST


async def test_share_coordinators_since_v6(broker):
    reply = await broker.call(find_coordinator, 6, key_type=SHARE, coordinator_keys=["k"])
    assert reply.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
