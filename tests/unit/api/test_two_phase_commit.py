"""Two-phase commit (KIP-939) through the APIs: InitProducerId 6, what others see of it, and who may abort it."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.api import api_versions, init_producer_id
from strandline.api.table import ALL, BROKER_APIS
from strandline.errors import ErrorCode

from .transaction_side import (
    NONE,
    add,
    begun,
    complete,
    coordinating,
    end,
    initialize,
    marked,
    send,
    stable,
    state_of,
)

NO_TIMEOUT_MS = 2**31 - 1
UNSTABLE = {"unstable_api_versions_enable": "true"}
ALLOWED = {**UNSTABLE, "transaction_two_phase_commit_enable": "true"}
SOFTWARE = {"client_software_name": "strandline", "client_software_version": "1"}
V6 = init_producer_id.UNSTABLE_VERSIONS[-1]


@pytest.fixture
async def cluster(make_broker):
    async with coordinating(make_broker(**ALLOWED)) as cluster:
        yield cluster


@pytest.mark.parametrize("is_turned_on", [False, True])
async def test_txn_q1_version_6_is_advertised_with_the_switch_alone(make_broker, is_turned_on):
    broker = make_broker(**(UNSTABLE if is_turned_on else {}))
    reply = await broker.call(api_versions, 4, **SOFTWARE)
    ranges = {key.api_key: (key.min_version, key.max_version) for key in reply.api_keys}
    assert ranges[init_producer_id.KEY] == (0, 6 if is_turned_on else 5)
    others = {key: found[1] for key, found in ranges.items() if key != init_producer_id.KEY}
    assert others == {key: api.versions[-1] for key, api in BROKER_APIS.items() if key != init_producer_id.KEY}


def test_txn_q1_no_other_api_has_versions_that_kafka_may_still_change():
    found = {api.name: list(api.unstable_versions) for api in ALL if api.unstable_versions}
    assert found == {"InitProducerId": [6]}
    api = BROKER_APIS[init_producer_id.KEY]
    assert (api.versions_served(unstable=False), api.versions_served(unstable=True)) == (range(6), range(7))
    assert BROKER_APIS[3].versions_served(unstable=True) == BROKER_APIS[3].versions


async def test_txn_q4_it_shows_no_timeout_and_is_committed_like_any_other(cluster):
    code, producer = await initialize(cluster, version=V6, enable2_pc=True, transaction_timeout_ms=0)
    assert code is NONE
    assert await send(cluster, producer, ("a", 0)) == [NONE]
    found = await state_of(cluster)
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", NO_TIMEOUT_MS)
    assert (await end(cluster, producer))[0] is NONE
    assert await complete(cluster) == "CompleteCommit"


async def test_txn_q1_version_6_without_two_phase_commit_is_version_5(cluster):
    reply = await cluster.call(init_producer_id, V6, transactional_id="t", transaction_timeout_ms=60_000)
    assert (reply.error_code, reply.producer_epoch) == (NONE, 0)
    assert (reply.ongoing_txn_producer_id, reply.ongoing_txn_producer_epoch) == (-1, -1)
    assert (await state_of(cluster)).transaction_timeout_ms == 60_000
    too_long = await initialize(cluster, version=V6, transaction_timeout_ms=NO_TIMEOUT_MS)
    assert too_long[0] is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    plain = await cluster.call(init_producer_id, V6, transactional_id=None, enable2_pc=True)
    assert plain.error_code == NONE


async def test_txn_q1_what_is_refused(cluster, make_broker):
    kept = await initialize(cluster, version=V6, enable2_pc=True, keep_prepared_txn=True)
    assert kept == (ErrorCode.UNSUPPORTED_VERSION, (-1, -1))
    async with coordinating(make_broker(**UNSTABLE)) as strict:
        refused = await initialize(strict, version=V6, enable2_pc=True)
        assert refused == (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, (-1, -1))
        assert (await state_of(strict)).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_txn_q4_an_initialization_without_a_pair_ends_it_and_sets_a_timeout(cluster):
    _, producer = await initialize(cluster, version=V6, enable2_pc=True)
    await send(cluster, producer, ("a", 0))
    assert (await initialize(cluster, version=5))[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert await complete(cluster) == "CompleteAbort"
    assert stable(cluster, "a") == (2, 2)
    code, timed = await initialize(cluster, version=5, transaction_timeout_ms=30_000)
    assert (code, (await state_of(cluster)).transaction_timeout_ms) == (NONE, 30_000)
    assert (await end(cluster, producer))[0] is ErrorCode.PRODUCER_FENCED
    assert await add(cluster, timed, ("a", 0)) == {("a", 0): NONE}


@pytest.mark.parametrize("version", [0, 5])
async def test_txn_q1_older_versions_can_not_ask_for_it(cluster, version):
    code, _ = await initialize(cluster, version=version, enable2_pc=True, keep_prepared_txn=True)
    assert (code, (await state_of(cluster)).transaction_timeout_ms) == (NONE, 60_000)


async def test_txn_q4_where_two_phase_commit_is_allowed_no_client_ends_a_silent_transaction_at_one_partition(cluster):
    """It may be decided elsewhere, hours later: aborted here and committed there it would be torn."""
    producer = await begun(cluster)
    await send(cluster, producer, ("a", 0))
    cluster.parts.hosted.by_name["a", 0].log.txn_began_ms[producer.producer_id] -= 24 * 3600 * 1000
    refused = await marked(cluster, producer, ("a", 0), listener="OTHER")
    assert refused == {("a", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert await marked(cluster, producer, ("a", 0)) == {("a", 0): NONE}, "brokers and their listener may"
