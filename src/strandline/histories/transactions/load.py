"""Transactional producers with their twins, copiers, and a reader of each isolation, as part of the load.

Always true: at the end all faults are undone, every transaction is over within a bounded virtual time, and the copiers
have copied whatever was committed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from strandline.client.aio import Consumer, ConsumerConfig, ProducerConfig
from strandline.client.flow.descriptions import NewTopic
from strandline.errors import KafkaError
from strandline.histories.clients.connecting import connect
from strandline.histories.clients.reader import assign_from_start
from strandline.histories.coverage import TRANSACTION
from strandline.histories.record_history import RecordPosition
from strandline.histories.setting import TopicPlan
from strandline.histories.transactions.copier import Copier
from strandline.histories.transactions.history import ToldEnd, TransactionHistory
from strandline.histories.transactions.plan import COPIES, COPIES_PARTITIONS, LEDGER, TransactionPlan
from strandline.histories.transactions.writer import TransactionalWriter
from strandline.ids import TopicPartition
from strandline.sim.world import SimNode

if TYPE_CHECKING:
    from strandline.histories.load import Load

POLL_S, MAX_WAIT_MS = 5.0, 4_000
COMMITTED_READER, UNCOMMITTED_READER = "ledger-reader", "ledger-observer"


class TransactionLoad:
    def __init__(self, load: Load, plan: TransactionPlan) -> None:
        world = load.cluster.world
        self.load = load
        self.plan = plan
        self.history = TransactionHistory(lambda: world.now, load.observed.committed_end)
        ids = [f"payments-{n}" for n in range(1, plan.ids + 1)]
        self.writers = [TransactionalWriter(self, world.node(each), each, is_twin=False) for each in ids]
        self.writers += [TransactionalWriter(self, world.node(f"{each}-twin"), each, is_twin=True) for each in ids]
        self.copiers = [Copier(self, world.node(f"copier-{n}")) for n in range(1, plan.copiers + 1)]
        self.is_passing = False
        """Transactions write to the passing topic too."""
        self._readers = {name: world.node(name) for name in (COMMITTED_READER, UNCOMMITTED_READER)}
        self._working: list[asyncio.Task[None]] = []
        self._copying: list[asyncio.Task[None]] = []
        self._reading: list[asyncio.Task[None]] = []

    @property
    def hosts(self) -> list[str]:
        return [*(writer.name for writer in self.writers), *(copier.name for copier in self.copiers), *self._readers]

    @property
    def keys(self) -> list[TopicPartition]:
        keys = [(LEDGER, n) for n in range(self.plan.partitions)]
        return keys + [(COPIES, n) for n in range(COPIES_PARTITIONS)] * bool(self.plan.copiers)

    def topics(self, ledger: TopicPlan) -> list[NewTopic]:
        names = (LEDGER, COPIES) if self.plan.copiers else (LEDGER,)
        return [
            NewTopic(
                name,
                self.plan.partitions if name == LEDGER else COPIES_PARTITIONS,
                ledger.replicas,
                configs={**ledger.configs},
            )
            for name in names
        ]

    def producer_config(self, transactional_id: str) -> ProducerConfig:
        return ProducerConfig(
            transactional_id=transactional_id,
            transaction_timeout_ms=self.plan.timeout_ms,
            batch_size=2_000,
            linger_ms=5,
            request_timeout_ms=self.plan.request_ms,
            delivery_timeout_ms=30_000,
        )

    def start(self) -> None:
        self._working = [writer.machine.spawn(writer.run()) for writer in self.writers]
        self._copying = [copier.machine.spawn(copier.run()) for copier in self.copiers]
        self._reading = [
            machine.spawn(self._read(machine, is_committed=name == COMMITTED_READER))
            for name, machine in self._readers.items()
        ]

    async def rest(self, seconds: float) -> None:
        """As all clients do, but never slower: what happens between two steps of a transaction is rare enough."""
        await self.load.rest(seconds / max(self.load.pace, 1.0))

    def heal(self) -> None:
        """None of them is paused."""
        for host in self.hosts:
            self.load.cluster.world.nodes[host].resume()

    def count(self, what: str) -> None:
        self.load.coverage.note(TRANSACTION, what)

    # The end

    async def stop_writing(self) -> None:
        await asyncio.gather(*self._working)

    async def stop_copying(self) -> None:
        for copier in self.copiers:
            copier.is_wanted = False
        self.load.hurry()
        await asyncio.gather(*self._copying)

    async def stop_reading(self) -> None:
        """Read everything once more, now that all of it is stable."""
        for reading in self._reading:
            reading.cancel()
        await self.load.operator.spawn(self._read_last())

    def is_copied(self) -> bool:
        """Whatever producers were told is committed, some copier was told to have copied."""
        told = [each for each in self.history.transactions if each.told is ToldEnd.COMMITTED]
        copied = {value.partition(b">")[0] for each in told if each.sources for value in each.values}
        return not self.copiers or all(value in copied for each in told if not each.sources for value in each.values)

    def describe(self) -> str:
        told: dict[str, int] = {}
        for each in self.history.transactions:
            name = f"{each.who} {each.told.value}"
            told[name] = told.get(name, 0) + 1
        return ", ".join(f"{name}: {count}" for name, count in told.items())

    async def _read_last(self) -> None:
        async with connect(self.load.operator, self.load.cluster.shape) as client:
            consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none", isolation_level="read_committed"))
            ends = {key: self.load.observed.committed_end(*key) for key in self.keys}
            assign_from_start(consumer, self.keys)
            while any([await consumer.position(*key) < ends[key] for key in self.keys]):
                self.load.operations += 1
                for record in await consumer.poll(1.0):
                    self.history.note_final((record.topic, record.partition), record.value or b"")
            await consumer.close()

    # Readers

    async def _read(self, machine: SimNode, *, is_committed: bool) -> None:
        async with connect(machine, self.load.cluster.shape) as client:
            config = ConsumerConfig(
                auto_offset_reset="none",
                isolation_level="read_committed" if is_committed else "read_uncommitted",
                fetch_max_wait_ms=MAX_WAIT_MS,
                request_timeout_ms=MAX_WAIT_MS + 2_000,
                max_partition_fetch_bytes=self.plan.fetch_bytes if is_committed else 1_048_576,
            )
            consumer = Consumer(client, config)
            assign_from_start(consumer, self.keys)
            while True:
                self.load.operations += 1
                try:
                    records = await consumer.poll(POLL_S)
                except KafkaError as error:
                    self.load.note_error(error)
                    if not error.retriable:
                        self.load.problem("unrepeatable-read", f"{machine.name}: {error!r}")
                    await asyncio.sleep(0.1)
                    continue
                for record in records:
                    place = RecordPosition(record.topic, record.partition, record.offset)
                    self.history.note_read(machine.name, place, record.value or b"", is_committed=is_committed)
