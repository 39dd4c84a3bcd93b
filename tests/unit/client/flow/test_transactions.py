"""What the calls of a transactional producer do when the coordinator is silent, and when the application stops."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from strandline.client.aio import AsyncClient, ClientConfig, Producer, ProducerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.group.member import GroupMetadata
from strandline.client.errors import Closed, ProducerUnusable, TimedOut, TransactionAbortable
from strandline.errors import ErrorCode, KafkaError
from strandline.runtime.clock import SystemClock
from strandline.wire import messages

from ..server import SILENCE, Broker, serve

QUICK = Backoff(5, 10)
STAMP = GroupMetadata("g", -1, "", None)
TRANSACTIONAL = {10: (0, 6), 26: (0, 5), 28: (0, 5)}


class Coordinator(Broker):
    """Of transactions and groups, at transaction.version 2. Ends that come while it is silent are heard, not answered."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = -1
        self.ends: list[tuple[int, bool]] = []
        self.has_heard_an_end = asyncio.Event()
        self.is_silent = False
        self.is_fenced = False
        self.init_version_max = 5
        self.initialized: list[bool] = []
        """Whether each asked for two-phase commit."""

    def answerers(self) -> Any:
        return super().answerers() | {10: self.find, 26: self.end, 28: self.offsets_of_a_group}

    def versions(self, request: Any) -> Any:
        R = messages.response(18)
        answer = super().versions(request)
        assert answer.api_keys
        answer.api_keys += [
            R.ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in TRANSACTIONAL.items()
        ]
        for entry in answer.api_keys:
            if entry.api_key == 22:
                entry.max_version = self.init_version_max
        answer.finalized_features_epoch = 1
        level = R.FinalizedFeatureKey(name="transaction.version", max_version_level=2, min_version_level=2)
        answer.finalized_features = [level]
        return answer

    def find(self, request: Any) -> Any:
        R = messages.response(10)
        here = [R.Coordinator(key=k, node_id=1, host=self.host, port=self.port) for k in request.coordinator_keys]
        return R(coordinators=here)

    def init(self, request: Any) -> Any:
        assert (request.transactional_id, request.transaction_timeout_ms) == ("tid", 60_000)
        self.epoch += 1
        self.initialized.append(request.enable2_pc)
        return messages.response(22)(producer_id=5, producer_epoch=self.epoch)

    def end(self, request: Any) -> Any:
        self.ends.append((request.producer_epoch, request.committed))
        self.has_heard_an_end.set()
        if self.is_silent:
            return SILENCE
        if self.is_fenced:
            return messages.response(26)(error_code=ErrorCode.PRODUCER_FENCED)
        self.epoch = request.producer_epoch + 1
        return messages.response(26)(producer_id=5, producer_epoch=self.epoch)

    def offsets_of_a_group(self, request: Any) -> Any:
        R = messages.response(28)
        code = ErrorCode.NONE if request.group_id == "g" else ErrorCode.ILLEGAL_GENERATION
        partition = R.TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)
        return R(topics=[R.TxnOffsetCommitResponseTopic(name="t", partitions=[partition])])


@asynccontextmanager
async def producing(coordinator: Coordinator, **settings: bool) -> AsyncIterator[Producer]:
    server = await serve(coordinator)
    config = ClientConfig(request_timeout_ms=100, retry_backoff=QUICK, reconnect_backoff=QUICK)
    address = f"127.0.0.1:{coordinator.port}"
    async with (
        asyncio.timeout(10),
        AsyncClient(address, clock=SystemClock(), randomness=random.Random(1), config=config) as client,
    ):
        producer = Producer(
            client,
            ProducerConfig(transactional_id="tid", request_timeout_ms=100, **settings),  # type: ignore[arg-type]
        )
        yield producer
        await producer.close(0)
    server.close()


async def _fail(producer: Producer) -> None:
    async with producer.transaction():
        await producer.send("t", b"v")
        raise ValueError("mine")


async def test_a_commit_that_timed_out_is_called_again() -> None:
    coordinator = Coordinator()
    async with producing(coordinator) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v")
        coordinator.is_silent = True
        with pytest.raises(TimedOut, match="commit_transaction of transactional id 'tid' took more than 150 ms"):
            await producer.commit_transaction(timeout_ms=150)
        for refused in (producer.begin_transaction, lambda: producer.send("t", b"v")):
            with pytest.raises(KafkaError, match="call commit_transaction again"):
                refused()
        coordinator.is_silent = False
        await producer.commit_transaction()
        assert len(coordinator.ends) >= 2
        assert set(coordinator.ends) == {(0, True)}
        async with producer.transaction():
            producer.send("t", b"v")
        assert coordinator.ends[-1] == (1, True)


async def test_a_commit_that_timed_out_is_given_up() -> None:
    coordinator = Coordinator()
    async with producing(coordinator) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v")
        coordinator.is_silent = True
        with pytest.raises(TimedOut):
            await producer.commit_transaction(timeout_ms=50)
        await producer.init_transactions()
        coordinator.is_silent = False
        async with producer.transaction():
            producer.send("t", b"v")
        assert coordinator.ends[-1] == (1, True)
        assert {epoch for epoch, _ in coordinator.ends[:-1]} == {0}


async def test_an_exception_aborts_and_so_does_cancelling() -> None:
    coordinator = Coordinator()

    async def block(producer: Producer, is_in: asyncio.Event) -> None:
        async with producer.transaction():
            await producer.send("t", b"v")
            is_in.set()
            await asyncio.Event().wait()

    async with producing(coordinator) as producer:
        with pytest.raises(ValueError, match="mine"):
            await _fail(producer)
        assert coordinator.ends == [(0, False)]
        is_in = asyncio.Event()
        task = asyncio.ensure_future(block(producer, is_in))
        await is_in.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert coordinator.ends == [(0, False), (1, False)]
        async with producer.transaction():
            await producer.send("t", b"v")
            await producer.abort_transaction()
        assert coordinator.ends[2:] == [(2, False)], "it was ended inside the block"


async def test_offsets_that_a_group_refuses_end_the_block_with_an_abort() -> None:
    coordinator = Coordinator()
    async with producing(coordinator) as producer:
        async with producer.transaction():
            await producer.send_offsets_to_transaction({("t", 0): 5}, STAMP)
            await producer.send_offsets_to_transaction({}, STAMP)
        with pytest.raises(TransactionAbortable, match="ILLEGAL_GENERATION: offsets of group 'other'"):
            async with producer.transaction():
                await producer.send_offsets_to_transaction({("t", 0): 5}, STAMP._replace(group_id="other"))
        assert coordinator.ends == [(0, True), (1, False)]


async def test_a_block_that_cannot_be_committed_is_aborted() -> None:
    coordinator = Coordinator()
    async with producing(coordinator) as producer:
        with pytest.raises(TransactionAbortable, match="t has partitions 0-0, not 9"):
            async with producer.transaction():
                producer.send("t", b"v", partition=9)
        async with producer.transaction():
            producer.send("t", b"v")
        assert coordinator.ends == [(0, True)], "nothing of the first was sent"


async def test_the_exception_of_the_block_is_raised_if_the_abort_fails_too() -> None:
    coordinator = Coordinator()
    async with producing(coordinator) as producer:
        coordinator.is_fenced = True
        with pytest.raises(ValueError, match="mine") as caught:
            await _fail(producer)
        assert "could not be aborted: PRODUCER_FENCED" in caught.value.__notes__[0]
        with pytest.raises(ProducerUnusable, match="can only be closed"):
            producer.begin_transaction()


async def test_closing_aborts_what_is_open() -> None:
    coordinator = Coordinator()
    async with producing(coordinator) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        delivery = producer.send("t", b"v")
        await delivery
        await producer.close()
        assert coordinator.ends == [(0, False)]
        with pytest.raises(Closed):
            producer.begin_transaction()
        assert producer._client.on_closed == [], "no coordinator is looked for any more"


async def test_a_producer_that_closes_lets_go_of_who_waits() -> None:
    coordinator = Coordinator()
    async with producing(coordinator) as producer:
        await producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"v")
        coordinator.is_silent = True
        waiting = asyncio.ensure_future(producer.commit_transaction())
        await coordinator.has_heard_an_end.wait()
        await producer.close(0)
        with pytest.raises(Closed):
            await waiting


@pytest.mark.parametrize("newest", [5, 6])
async def test_txn_q1_two_phase_commit_needs_a_broker_that_serves_it(newest: int) -> None:
    coordinator = Coordinator()
    coordinator.init_version_max = newest
    async with producing(coordinator, transaction_two_phase_commit_enable=True) as producer:
        if newest == 5:
            with pytest.raises(ProducerUnusable, match=r"two-phase commit .*unstable\.api\.versions\.enable.* 0-5"):
                await producer.init_transactions()
            assert coordinator.initialized == []
            return
        async with producer.transaction():
            producer.send("t", b"v")
        assert (coordinator.initialized, coordinator.ends) == ([True], [(0, True)])


async def test_a_producer_without_a_transactional_id_has_no_transactions() -> None:
    coordinator = Coordinator()
    server = await serve(coordinator)
    address = f"127.0.0.1:{coordinator.port}"
    async with AsyncClient(address, clock=SystemClock(), randomness=random.Random(1)) as client:
        producer = Producer(client)
        with pytest.raises(KafkaError, match="no transactional_id"):
            producer.transaction()
        with pytest.raises(KafkaError, match="no transactional_id"):
            await producer.init_transactions()
    server.close()
