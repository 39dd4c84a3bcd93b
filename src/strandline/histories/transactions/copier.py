"""A copier: reads the ledger as a member of a group, and writes each record once more, with its offset, in one
transaction.

Always true: after a transaction that was not committed it begins anew from what its group has committed.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from strandline.client.aio import AsyncClient, Consumer, ConsumerConfig, Producer
from strandline.errors import KafkaError
from strandline.histories.clients.connecting import connect
from strandline.histories.transactions.plan import COPIERS, COPIES, COPIES_PARTITIONS, LEDGER, SESSION_MS
from strandline.histories.transactions.writer import END_MS, _nothing, end
from strandline.sim.world import SimNode

if TYPE_CHECKING:
    from strandline.histories.transactions.load import TransactionLoad

POLL_S, MAX_WAIT_MS = 2.0, 1_500
AGAIN_S = (0.3, 2.0)
CLOSE_S = 5.0
METADATA_AGE_MS = 10_000
ABORT_SHARE = 0.1


class Copier:
    def __init__(self, load: TransactionLoad, machine: SimNode) -> None:
        self.name = machine.name
        self.machine = machine
        self.is_wanted = True
        self._load = load
        self._chance = random.Random(f"{machine.world.seed}/{machine.name}")

    async def run(self) -> None:
        shape, plan = self._load.load.cluster.shape, self._load.plan
        async with connect(self.machine, shape, plan.request_ms, metadata_max_age_ms=METADATA_AGE_MS) as client:
            while self.is_wanted:
                await self._live(client)
                await self._load.load.rest(self._chance.uniform(*AGAIN_S))

    async def _live(self, client: AsyncClient) -> None:
        load = self._load.load
        producer = Producer(client, self._load.producer_config(self.name), allow_auto_topic_creation=False)
        consumer = Consumer(client, self._config())
        try:
            await producer.init_transactions(timeout_ms=4 * END_MS)
            consumer.subscribe([LEDGER])
            while self.is_wanted:
                load.operations += 1
                if not await self._copy(producer, consumer):
                    return
        except KafkaError as error:
            load.note_error(error)
            self._load.count(f"copier gives up: {error.code.name}")
        finally:
            await consumer.close(CLOSE_S)
            await producer.close(END_MS / 1000)

    async def _copy(self, producer: Producer, consumer: Consumer) -> bool:
        """False: the consumer is past what is not committed."""
        try:
            records = await consumer.poll(POLL_S)
        except KafkaError as error:
            if not error.retriable:
                raise
            self._load.load.note_error(error)
            records = []
        if not records:
            return True
        producer.begin_transaction()
        begun = self._load.history.begin(self.name)
        for record in records:
            value = b"%s>%s-%d" % (record.value or b"", self.name.encode(), begun.number)
            key = (COPIES, record.partition % COPIES_PARTITIONS)
            begun.values[value] = key
            begun.sources[record.topic, record.partition] = record.offset + 1
            producer.send(COPIES, value, partition=key[1]).add_done_callback(_nothing)
        commit = self._chance.random() >= ABORT_SHARE
        try:
            await producer.send_offsets_to_transaction(begun.sources, consumer.group_metadata(), END_MS)
        except KafkaError as error:
            self._load.load.note_error(error)
            commit = False
        return await end(self._load, producer, begun, commit=commit)

    def _config(self) -> ConsumerConfig:
        return ConsumerConfig(
            group_id=COPIERS,
            group_protocol=self._load.plan.protocol,
            isolation_level="read_committed",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=SESSION_MS // 3,
            max_poll_interval_ms=4 * SESSION_MS,  # so long it waits for the answer of a host that is dark
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=MAX_WAIT_MS,
            request_timeout_ms=MAX_WAIT_MS + self._load.plan.request_ms,
        )
