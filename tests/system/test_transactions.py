"""Transactions by three client libraries against three nodes, at both levels of transaction.version, and while that level changes.

What nodes that die do to them is in test_transactions_kill.py, and how our own client has them in test_transactions_client.py.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator

import pytest

from strandline.client.blocking import Admin, Client, ClientConfig
from strandline.errors import KafkaError
from tests.system.group_members import GROUPS_SOON
from tests.system.load import make_topic
from tests.system.local import Cluster, up
from tests.system.transaction_version import set_transaction_version
from tests.system.transactional_clients import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TIMEOUT_S,
    TRANSACTIONAL,
    Place,
    TransactionalClient,
    TransactionalProducer,
    Values,
)

REPLICAS = [[1, 2, 3], [2, 3, 1]]
SETTINGS = (
    "transaction.state.log.num.partitions=3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=300",
)
LEVELS = (0, 2)
FENCED = "fenced|epoch|newer|another"
"""What the libraries say to a producer that was replaced, in any case of letters."""

each_client = pytest.mark.parametrize("client", TRANSACTIONAL, ids=lambda client: client.name)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = [word for each in SETTINGS for word in ("--config", each)]
    with up(tmp_path_factory.mktemp("transactions") / "cluster", 3, 0, *GROUPS_SOON, *settings) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=LEVELS, ids="transaction.version {}".format)
def cluster(request: pytest.FixtureRequest, started: Cluster) -> Cluster:
    set_transaction_version(started, request.param)
    return started


class Places:
    """Two partitions of each of two topics, and what committed readers should see there."""

    def __init__(self, cluster: Cluster) -> None:
        name = uuid.uuid4().hex[:8]
        self.name = name
        self.bootstrap = cluster.bootstrap
        self.topics = [make_topic(cluster, f"{name}-{which}", REPLICAS) for which in "ab"]
        self.all: list[Place] = [(topic, index) for topic in self.topics for index in range(2)]
        self.committed: Values = {place: [] for place in self.all}
        self.written: Values = {place: [] for place in self.all}

    async def write(self, producer: TransactionalProducer, value: bytes, *, commits: bool) -> None:
        for place in self.all:
            await producer.send(place, value)
            self.written[place].append(value)
            if commits:
                self.committed[place].append(value)
        await producer.flush()

    async def are_read(self, *, by: tuple[TransactionalClient, ...] = TRANSACTIONAL) -> None:
        """By readers of every library, at once what was written, and what was committed as soon as its markers are there."""
        for reader in by:
            assert await reader.read(self.bootstrap, self.all, READ_UNCOMMITTED) == self.written, reader.name
            deadline = time.monotonic() + TIMEOUT_S
            while (found := await reader.read(self.bootstrap, self.all, READ_COMMITTED)) != self.committed:
                for place, values in found.items():
                    assert values == self.committed[place][: len(values)], (reader.name, place)
                assert time.monotonic() < deadline, (reader.name, found, self.committed)


@pytest.fixture
def places(cluster: Cluster) -> Places:
    return Places(cluster)


@each_client
async def test_readers_see_what_was_committed(client: TransactionalClient, places: Places) -> None:
    producer = client.producer(places.bootstrap, places.name)
    await producer.init()
    try:
        for number, commits in enumerate((True, False, True, True, False, False, True)):
            await producer.begin()
            await places.write(producer, b"%d" % number, commits=False)
            if number < 2:
                await places.are_read(by=(client, TRANSACTIONAL[TRANSACTIONAL.index(client) - 1]))
            if commits:
                await producer.commit()
                for place in places.all:
                    places.committed[place].append(b"%d" % number)
            else:
                await producer.abort()
        await places.are_read()
    finally:
        await producer.close()


@each_client
async def test_a_second_producer_fences_the_first(client: TransactionalClient, places: Places) -> None:
    first, second = (client.producer(places.bootstrap, places.name) for _ in range(2))
    try:
        await first.init()
        await first.begin()
        await places.write(first, b"first", commits=True)
        await first.commit()
        await first.begin()
        await places.write(first, b"open", commits=False)
        await second.init()
        await places.are_read(by=TRANSACTIONAL[:1])  # the second has the open transaction of the first aborted
        with pytest.raises(Exception, match=f"(?i){FENCED}"):
            await first.commit()
        await second.begin()
        await places.write(second, b"second", commits=True)
        await second.commit()
        await places.are_read()
    finally:
        await first.close()
        await second.close()


@each_client
async def test_a_transaction_that_takes_too_long_is_aborted(client: TransactionalClient, places: Places) -> None:
    producer = client.producer(places.bootstrap, places.name, timeout_ms=1_000)
    later = client.producer(places.bootstrap, places.name)
    try:
        await producer.init()
        await producer.begin()
        await places.write(producer, b"late", commits=False)
        with Client(places.bootstrap) as asking:
            admin = Admin(asking)

            def state() -> str:
                described = admin.describe_transactions([places.name])[places.name]
                assert not isinstance(described, KafkaError)
                return described.state

            deadline = time.monotonic() + TIMEOUT_S
            while state() != "CompleteAbort":
                assert time.monotonic() < deadline, state()
                await asyncio.sleep(0.05)
        with pytest.raises(Exception, match=f"(?i){FENCED}|state|mapping"):
            await producer.commit()
        await later.init()
        await later.begin()
        await places.write(later, b"in time", commits=True)
        await later.commit()
        await places.are_read()
    finally:
        await producer.close()
        await later.close()


@pytest.mark.parametrize(
    ("client", "protocol"),
    [(client, protocol) for client in TRANSACTIONAL for protocol in client.protocols],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
async def test_offsets_are_committed_with_the_transaction(
    client: TransactionalClient, protocol: str, places: Places
) -> None:
    producer = client.producer(places.bootstrap, places.name)
    await producer.init()
    await producer.begin()
    await places.write(producer, b"input", commits=True)
    await producer.commit()
    await places.are_read(by=(client,))
    source, group = places.topics[0], f"{places.name}-group"
    try:
        async with client.member(places.bootstrap, group, source, 2, protocol) as member:
            for offset, commits in ((1, False), (2, True), (3, False), (4, True)):
                offsets: dict[Place, int] = {(source, 0): offset, (source, 1): offset + 100}
                before = committed(places, group, stable=True)
                await producer.begin()
                await producer.send((places.topics[1], 0), b"output")
                await producer.send_offsets(offsets, member)
                assert committed(places, group, stable=False) == before
                with pytest.raises(KafkaError, match="UNSTABLE"):
                    committed(places, group, stable=True, timeout_s=0.3)
                await (producer.commit() if commits else producer.abort())
                assert committed(places, group, stable=True) == (offsets if commits else before)
    finally:
        await producer.close()


def committed(places: Places, group: str, *, stable: bool, timeout_s: float = TIMEOUT_S) -> dict[Place, int]:
    """What a group has committed; if it has to be stable, once it is."""
    config = ClientConfig(default_api_timeout_ms=round(1_000 * timeout_s))
    with Client(places.bootstrap, config=config) as client:
        answer = Admin(client).list_group_offsets({group: places.all}, require_stable=stable)[group]
    if isinstance(answer, KafkaError):
        raise answer
    found = {}
    for place, offset in answer.items():
        if isinstance(offset, KafkaError):
            raise offset
        if offset is not None:
            found[place] = offset.offset
    return found


@each_client
async def test_the_level_changes_while_a_transaction_is_open(client: TransactionalClient, started: Cluster) -> None:
    """TXN-T47. Three open transactions meet another level: one that is committed, one that is aborted, one that is fenced."""
    set_transaction_version(started, 0)
    places = Places(started)
    producer = client.producer(places.bootstrap, places.name)
    await producer.init()
    try:
        for level in (2, 0):
            for commits in (True, False):
                await producer.begin()
                value = b"%d before" % level
                for place in places.all[:2]:
                    await producer.send(place, value)
                    places.written[place].append(value)
                await producer.flush()
                set_transaction_version(started, level)
                for place in places.all:
                    await producer.send(place, b"after")
                    places.written[place].append(b"after")
                await producer.flush()
                if commits:
                    await producer.commit()
                    for place in places.all:
                        places.committed[place] += [value, b"after"] if place in places.all[:2] else [b"after"]
                else:
                    await producer.abort()
                set_transaction_version(started, 2 - level)
            await producer.begin()
            await places.write(producer, b"fenced", commits=False)
            set_transaction_version(started, level)
            successor = client.producer(places.bootstrap, places.name)
            await successor.init()
            with pytest.raises(Exception, match=f"(?i){FENCED}"):
                await producer.commit()
            await producer.close()
            producer = successor
        await places.are_read()
    finally:
        await producer.close()
