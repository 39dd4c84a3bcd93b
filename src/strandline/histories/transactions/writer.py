"""A transactional producer, and its twin with the same transactional id: transactions over several partitions, most of
which are committed.

The twin begins now and then, as a process that was believed dead does: each fences the other.

Always true: what an end that failed has done is noted as unknown, and the next transaction begins after a new
InitProducerId.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from strandline.client.aio import AsyncClient, Producer
from strandline.client.errors import ProducerUnusable, TimedOut, TransactionAbortable
from strandline.errors import KafkaError
from strandline.histories.clients.connecting import connect
from strandline.histories.transactions.history import ClientTransaction, ToldEnd
from strandline.histories.transactions.plan import LEDGER, PASSING
from strandline.sim.world import SimNode

if TYPE_CHECKING:
    from strandline.histories.transactions.load import TransactionLoad

PAUSE_S, BRISK_PAUSE_S = (0.5, 3.0), (0.1, 1.0)
TWIN_PAUSE_S, TWIN_TRANSACTIONS = (6.0, 20.0), (1, 3)
RECORDS = (1, 6)
ABORT_SHARE, FLUSH_SHARE, LINGER_SHARE, VANISH_SHARE = 0.25, 0.4, 0.3, 0.3
AT_ONCE_SHARE = 0.5
"""While clients are brisk, so many transactions begin as soon as the one before is answered."""
LINGER_S = (0.05, 1.5)
"""So long some transactions stay open."""
PATIENCE_S = (0.3, 2.0)
FILLERS = (b"", b"x" * 40)
END_MS, END_ATTEMPTS = 6_000, 4
AGAIN_S = (0.3, 2.0)


class TransactionalWriter:
    def __init__(self, load: TransactionLoad, machine: SimNode, transactional_id: str, *, is_twin: bool) -> None:
        self.name = machine.name
        self.machine = machine
        self.committed = 0
        self._load = load
        self._id = transactional_id
        self._is_twin = is_twin
        self._chance = random.Random(f"{machine.world.seed}/{machine.name}")

    async def run(self) -> None:
        chance, load = self._chance, self._load.load
        async with connect(self.machine, load.cluster.shape, self._load.plan.request_ms) as client:
            while not load.is_stopping:
                if self._is_twin:
                    await self._load.rest(chance.uniform(*TWIN_PAUSE_S))
                await self._live(client, chance.randint(*TWIN_TRANSACTIONS) if self._is_twin else None)
                await self._load.rest(chance.uniform(*AGAIN_S))

    async def _live(self, client: AsyncClient, transactions: int | None) -> None:
        """One producer, until it can't go on or has done so many."""
        load = self._load.load
        producer = Producer(client, self._load.producer_config(self._id), allow_auto_topic_creation=False)
        is_vanishing = self._is_twin and self._chance.random() < VANISH_SHARE
        try:
            load.operations += 1
            await producer.init_transactions(timeout_ms=4 * END_MS)
            while not load.is_stopping and transactions != 0:
                transactions = None if transactions is None else transactions - 1
                await self._transact(producer, vanish=is_vanishing and transactions == 0)
                if not load.is_brisk or self._chance.random() >= AT_ONCE_SHARE:
                    await self._load.rest(self._chance.uniform(*(BRISK_PAUSE_S if load.is_brisk else PAUSE_S)))
        except KafkaError as error:
            load.note_error(error)
            self._load.count(f"producer gives up: {error.code.name}")
        finally:
            await producer.close(0 if is_vanishing else END_MS / 1000)

    async def _transact(self, producer: Producer, *, vanish: bool) -> None:
        chance, load, history = self._chance, self._load, self._load.history
        producer.begin_transaction()
        begun, commit = history.begin(self.name), True
        try:
            if load.is_passing:
                producer.send(PASSING, b"%d" % begun.number, partition=0).add_done_callback(_nothing)
            for index in range(chance.randint(*RECORDS)):
                key = (LEDGER, chance.randrange(load.plan.partitions))
                value = b"%s-%d-%d" % (self.name.encode(), begun.number, index)
                begun.values[value] = key
                load.load.operations += 1
                producer.send(LEDGER, value, key=chance.choice(FILLERS), partition=key[1]).add_done_callback(_nothing)
                if chance.random() < LINGER_SHARE:
                    await asyncio.sleep(chance.uniform(*LINGER_S))
            if chance.random() < FLUSH_SHARE:
                commit = await self._flush(producer)
        except TransactionAbortable as error:
            load.load.note_error(error)
        if vanish:
            return
        if await end(load, producer, begun, commit=commit and chance.random() >= ABORT_SHARE):
            self.committed += 1

    async def _flush(self, producer: Producer) -> bool:
        """False if that takes longer than the application would like: it aborts, and records may be on their way."""
        flushing = asyncio.ensure_future(producer.flush())
        await asyncio.wait([flushing], timeout=self._chance.uniform(*PATIENCE_S))
        if flushing.done():
            flushing.result()
            return True
        flushing.cancel()
        self._load.count("flushed for too long")
        return False


async def end(load: TransactionLoad, producer: Producer, begun: ClientTransaction, *, commit: bool) -> bool:
    """Whether it is committed; raises what the producer can't go on after."""
    if commit:
        begun.asked_to_commit = True
        try:
            await _until_answered(load, lambda: producer.commit_transaction(END_MS))
        except TransactionAbortable as error:
            load.load.note_error(error)
            load.count("commit refused")
        else:
            begun.told = ToldEnd.COMMITTED
            load.count("committed")
            return True
    await _until_answered(load, lambda: producer.abort_transaction(END_MS))
    begun.told = ToldEnd.ABORTED
    load.count("aborted")
    return False


async def _until_answered(load: TransactionLoad, ask: Callable[[], Awaitable[None]]) -> None:
    for attempt in range(END_ATTEMPTS):
        load.load.operations += 1
        try:
            return await ask()
        except ProducerUnusable:
            raise
        except TimedOut:
            if attempt + 1 == END_ATTEMPTS:
                raise
    return None


def _nothing() -> None:
    """What became of each record is known from its transaction."""
