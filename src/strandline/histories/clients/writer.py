"""A producer: now and then a burst of records to one partition, each value once, and the result of each send.

Always true: with acks=all a value is acknowledged only once it is committed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from strandline.client.aio import Producer, ProducerConfig
from strandline.client.config import ACKS_ALL
from strandline.client.core.batches import RecordDelivery
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.clients.connecting import REQUEST_TIMEOUT_MS, connect
from strandline.histories.record_history import RecordPosition
from strandline.sim.world import SimNode

if TYPE_CHECKING:
    from strandline.histories.load import Load

UNFINISHED_MAX = 60
BURST, PAUSE_S = (8, 24), (2.5, 9.0)
BRISK_BURST, BRISK_PAUSE_S = (1, 5), (0.1, 0.7)
FILLERS = (b"", b"x" * 10, b"x" * 200)
LARGE, LARGE_SHARE = b"y" * 1_500, 0.06
"""More than a sector: a power loss may tear it."""


EXPECTED = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors with which the send of a sound record may end while faults go on."""
DOUBTFUL = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER})
"""What an idempotent producer says of a record that may be in the log or not, once the log has lost what it never
committed."""


@dataclass(frozen=True, slots=True)
class ProducerKind:
    name: str
    acks: int
    idempotent: bool


WRITERS = (
    ProducerKind("once", ACKS_ALL, idempotent=True),
    ProducerKind("all", ACKS_ALL, idempotent=False),
    ProducerKind("one", 1, idempotent=False),
)


class WritingClient:
    def __init__(self, load: Load, machine: SimNode, writing: ProducerKind) -> None:
        self.writing = writing
        self.acknowledged = 0
        self._load = load
        self._machine = machine
        self._chance = random.Random(f"{machine.world.seed}/{machine.name}")
        self._unfinished = 0
        self._number = 0

    async def run(self) -> None:
        config = ProducerConfig(
            acks=self.writing.acks,
            enable_idempotence=self.writing.idempotent,
            batch_size=2_000,
            linger_ms=5,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            delivery_timeout_ms=30_000,
        )
        async with (
            connect(self._machine, self._load.cluster.shape) as client,
            Producer(client, config, allow_auto_topic_creation=False) as producer,
        ):
            while not self._load.is_stopping:
                self._burst(producer)
                await self._load.rest(self._chance.uniform(*(BRISK_PAUSE_S if self._load.is_brisk else PAUSE_S)))
            await producer.flush()

    def _burst(self, producer: Producer) -> None:
        chance, history, writing = self._chance, self._load.history, self.writing
        topic, partition = chance.choice(self._load.keys)
        for _ in range(chance.randint(*(BRISK_BURST if self._load.is_brisk else BURST))):
            filler = LARGE if chance.random() < LARGE_SHARE else chance.choice(FILLERS)
            if self._unfinished >= UNFINISHED_MAX:
                break
            value = b"%s-%d" % (writing.name.encode(), self._number)
            self._number += 1
            self._unfinished += 1
            self._load.operations += 1
            history.note_sent(
                writing.name,
                value,
                topic,
                partition,
                by_all=writing.acks == ACKS_ALL,
                idempotent=writing.idempotent,
            )
            delivery = producer.send(topic, value, key=filler, partition=partition)
            delivery.add_done_callback(partial(self._delivered, value, delivery))

    def _delivered(self, value: bytes, delivery: RecordDelivery) -> None:
        self._unfinished -= 1
        try:
            metadata = delivery.result()
        except KafkaError as error:
            self._load.note_error(error)
            self._load.history.note_failed(value)
            if error.code not in EXPECTED and not (self.writing.idempotent and error.code in DOUBTFUL):
                self._load.problem("unexpected-error", f"{self.writing.name} got an error for {value!r}: {error!r}")
            return
        self.acknowledged += 1
        self._load.history.note_acknowledged(value, RecordPosition(metadata.topic, metadata.partition, metadata.offset))
