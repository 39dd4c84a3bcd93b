"""A consumer of assigned partitions, from the beginning on.

Always true: what each poll gave is noted as it came. After a loss it need not have seen what is gone, nor
know its position: it begins again.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from strandline.client.aio import AsyncClient, Consumer, ConsumerConfig
from strandline.client.core.completed_fetch import ConsumerRecord
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.clients.connecting import connect
from strandline.histories.record_history import RecordPosition
from strandline.ids import TopicPartition
from strandline.sim.world import SimNode

if TYPE_CHECKING:
    from strandline.histories.load import Load

MAX_WAIT_MS = 4_000
POLL_S = 5.0
ENDS_ASKED = 0.15
"""How often, while faults go on, it asks where the partitions end: no answer may be less than an earlier one (A13)."""


class ReadingClient:
    def __init__(self, load: Load, machine: SimNode) -> None:
        self._load = load
        self._machine = machine
        self._chance = random.Random(f"{machine.world.seed}/{machine.name}")
        self._losses = 0
        """Of which it knew when it last began."""
        self._next_offset: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] | None = None
        """Where it may stop, once all is written."""

    async def read_to(self, ends: dict[TopicPartition, int], reading: asyncio.Task[None]) -> None:
        """Return once everything below these is read."""
        self._ends = ends
        if self._is_done():  # it waits for records that will not come
            reading.cancel()
            self._load.history.note_caught_up(self._machine.name)
        else:
            await reading

    async def run(self) -> None:
        history, name = self._load.history, self._machine.name
        async with connect(self._machine, self._load.cluster.shape) as client:
            consumer = self._begin(client)
            while not self._is_done():
                if self._has_lost():
                    await consumer.close()
                    consumer = self._begin(client)
                invoked_at = self._machine.world.now
                records = await self._poll(consumer)
                places = [(RecordPosition(r.topic, r.partition, r.offset), r.value or b"") for r in records]
                history.note_poll(name, places, invoked_at)
                for place, _ in places:
                    self._next_offset[place[:2]] = place.offset + 1
            history.note_caught_up(name)
            await consumer.close()

    async def _poll(self, consumer: Consumer) -> list[ConsumerRecord]:
        self._load.operations += 1
        try:
            if self._load.is_brisk and self._chance.random() < ENDS_ASKED:
                await self._load.ask_ends(self._machine.name, consumer, self._load.keys)
            records = await consumer.poll(POLL_S)
        except KafkaError as error:
            self._load.note_error(error)
            if not self._has_lost() and (error.code is ErrorCode.OFFSET_OUT_OF_RANGE or not error.retriable):
                self._load.problem("unrepeatable-read", f"{self._machine.name}: {error!r}")
            await asyncio.sleep(0.1)
            return []
        return [] if self._has_lost() else records  # they may have been fetched before

    def _is_done(self) -> bool:
        ends = self._ends
        if ends is None or self._has_lost():
            return False
        return all(self._next_offset.get(key, 0) >= end for key, end in ends.items())

    def _has_lost(self) -> bool:
        return self._losses != len(self._load.history.lost)

    def _begin(self, client: AsyncClient) -> Consumer:
        self._losses, self._next_offset = len(self._load.history.lost), {}
        config = ConsumerConfig(
            auto_offset_reset="none", fetch_max_wait_ms=MAX_WAIT_MS, request_timeout_ms=MAX_WAIT_MS + 2_000
        )
        consumer = Consumer(client, config)
        assign_from_start(consumer, self._load.keys)
        self._load.history.note_begin(self._machine.name, dict.fromkeys(self._load.keys, 0))
        return consumer


def assign_from_start(consumer: Consumer, keys: list[TopicPartition]) -> None:
    consumer.assign(keys)
    for topic, partition in keys:
        consumer.seek(topic, partition, 0)
