"""The producer of the compacted topic: a few keys, again and again, with a tombstone now and then; and its reader at
the end.

Always true: with acks=all and idempotence a send is acknowledged with the offset at which it stands, and stands there
only.
"""

from __future__ import annotations

import asyncio
import random
from functools import partial
from typing import TYPE_CHECKING

from strandline.client.aio import Consumer, ConsumerConfig, Producer, ProducerConfig
from strandline.client.config import ACKS_ALL
from strandline.client.core.batches import RecordDelivery
from strandline.errors import KafkaError
from strandline.histories.clients.connecting import REQUEST_TIMEOUT_MS, connect
from strandline.histories.clients.writer import DOUBTFUL, EXPECTED
from strandline.histories.compaction.history import FoundRecord, KeyedHistory, KeyedSend
from strandline.histories.compaction.plan import COMPACTED, CompactionPlan

if TYPE_CHECKING:
    from strandline.histories.load import Load

BURST, PAUSE_S = (4, 12), (2.0, 6.0)
BRISK_BURST, BRISK_PAUSE_S = (1, 5), (0.3, 1.2)
UNFINISHED_MAX = 30
HASTY_PAUSE_S = (0.2, 0.6)
TOMBSTONES = 0.12
FILLER = b"." * 60


class KeyedLoad:
    def __init__(self, load: Load, plan: CompactionPlan) -> None:
        world = load.cluster.world
        self.load = load
        self.plan = plan
        self.history = KeyedHistory()
        self.acknowledged = 0
        self.is_hasty = False
        """A nemesis waits until there is something to clean."""
        self._machine = world.node("writer-keys")
        self._chance = random.Random(f"{world.seed}/{self._machine.name}")
        self._unfinished = 0
        self._writing: asyncio.Task[None] | None = None

    @property
    def hosts(self) -> list[str]:
        return [self._machine.name]

    def start(self) -> None:
        self._writing = self._machine.spawn(self._write())

    async def stop(self) -> None:
        """Once no client begins anything more."""
        assert self._writing is not None
        await self._writing

    async def _write(self) -> None:
        config = ProducerConfig(
            acks=ACKS_ALL,
            enable_idempotence=True,
            batch_size=1_000,
            linger_ms=5,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=30_000,
        )
        load = self.load
        async with (
            connect(self._machine, load.cluster.shape) as client,
            Producer(client, config, allow_auto_topic_creation=False) as producer,
        ):
            while not load.is_stopping:
                self._burst(producer)
                pauses_s = HASTY_PAUSE_S if self.is_hasty else BRISK_PAUSE_S if load.is_brisk else PAUSE_S
                await load.rest(self._chance.uniform(*pauses_s))
            await producer.flush()

    def _burst(self, producer: Producer) -> None:
        chance = self._chance
        for _ in range(chance.randint(*(BRISK_BURST if self.is_hasty or self.load.is_brisk else BURST))):
            key = b"key-%d" % chance.randrange(self.plan.keys)
            is_tombstone = chance.random() < TOMBSTONES
            if self._unfinished >= UNFINISHED_MAX * (1 + self.is_hasty):
                return
            value = None if is_tombstone else b"%s=%d%s" % (key, len(self.history.sends), FILLER)
            self._unfinished += 1
            self.load.operations += 1
            send = self.history.note_sent(key, value)
            delivery = producer.send(COMPACTED, value, key=key, partition=0)
            delivery.add_done_callback(partial(self._delivered, send, delivery))

    def _delivered(self, send: KeyedSend, delivery: RecordDelivery) -> None:
        self._unfinished -= 1
        try:
            send.offset = delivery.result().offset
        except KafkaError as error:
            self.load.note_error(error)
            if error.code not in EXPECTED | DOUBTFUL:
                self.load.problem(
                    "unexpected-error", f"{self._machine.name} got an error for {send.value!r}: {error!r}"
                )
            return
        self.acknowledged += 1

    async def read(self) -> None:
        """Everything that is left, from the beginning."""
        self.history.read = await self._machine.spawn(self._read())

    async def _read(self) -> list[FoundRecord]:
        async with connect(self._machine, self.load.cluster.shape) as client:
            consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none"))
            consumer.assign([(COMPACTED, 0)])
            consumer.seek(COMPACTED, 0, 0)
            end = (await consumer.end_offsets([(COMPACTED, 0)]))[COMPACTED, 0]
            found: list[FoundRecord] = []
            while await consumer.position(COMPACTED, 0) < end:
                self.load.operations += 1
                found += [FoundRecord(r.offset, r.key or b"", r.value) for r in await consumer.poll(1.0)]
            await consumer.close()
            return found
