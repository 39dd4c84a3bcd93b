"""Producers and consumers of replicated topics: acks=all with and without idempotence, acks=1, consumers of assigned partitions.

Always true: a value is acknowledged only once it is committed, and read only then; a consumer sees every offset, one after the
other.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from strandline.client.aio import Admin, AsyncClient, ClientConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from strandline.client.config import ACKS_ALL
from strandline.client.core.backoff import Backoff
from strandline.client.core.batches import Delivery
from strandline.client.flow.described import NewTopic
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.cluster import BROKER_PORT, Cluster, Stuck, host
from strandline.histories.record_history import Place, RecordHistory
from strandline.histories.replica_sight import Key, ReplicaSight
from strandline.sim.world import SimNode

CACHED, SYNCED = "cached", "synced"
"""The topics: committed in the memory of all in sync, and on their devices."""
PARTITIONS = {CACHED: 2, SYNCED: 1}
KEYS = [(topic, partition) for topic, count in PARTITIONS.items() for partition in range(count)]
MIN_ISR = 2
UNFINISHED_MAX = 60
"""Records of one producer."""
PAUSE_S = (0.02, 0.4)
TIMEOUT_MS = 1_500


@dataclass(frozen=True, slots=True)
class Writing:
    name: str
    acks: int
    idempotent: bool


WRITERS = (
    Writing("once", ACKS_ALL, idempotent=True),
    Writing("all", ACKS_ALL, idempotent=False),
    Writing("one", 1, idempotent=False),
)


@dataclass(slots=True)
class _Reading:
    """A consumer, and what it has seen since it last began."""

    seen: dict[Place, None] = field(default_factory=dict)
    next_offset: dict[tuple[str, int], int] = field(default_factory=dict)
    losses: int = 0
    is_done: bool = False


class RecordLoad:
    def __init__(self, cluster: Cluster, sight: ReplicaSight, *, replicas: int = 3) -> None:
        self.cluster = cluster
        self.history = RecordHistory()
        self.problems: list[str] = self.history.problems
        self._sight = sight
        self._replicas = replicas
        self._writers = [cluster.world.node(f"writer-{writing.name}") for writing in WRITERS]
        self._reader = cluster.world.node("reader")
        self.operator = cluster.world.node("operator")
        self._reading = _Reading()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._ends: dict[tuple[str, int], int] | None = None
        """Where consumers may stop, once all is written."""
        sight.on_loss = self._lost

    @property
    def acknowledged(self) -> int:
        return len(self.history.acknowledged) + len(self.history.acknowledged_by_one)

    def acknowledged_by(self, name: str) -> int:
        prefix = name.encode() + b"-"
        known = self.history.acknowledged if name != "one" else self.history.acknowledged_by_one
        return sum(value.startswith(prefix) for value in known)

    # Beginning and ending

    async def create_topics(self) -> None:
        configs = {"min.insync.replicas": str(MIN_ISR), "internal.segment.bytes": "8192"}
        topics = [
            NewTopic(CACHED, PARTITIONS[CACHED], self._replicas, configs=configs),
            NewTopic(SYNCED, PARTITIONS[SYNCED], self._replicas, configs=configs | {"flush.messages": "1"}),
        ]
        await self.operate(lambda admin: self._create(admin, topics))

    async def _create(self, admin: Admin, topics: list[NewTopic]) -> None:
        for _ in range(100):
            answers = await admin.create_topics(topics)
            topics = [
                topic
                for topic in topics
                if isinstance(error := answers[topic.name], KafkaError)
                and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS
            ]
            if not topics:
                return
            await asyncio.sleep(0.1)
        raise Stuck(f"cannot make {topics}: {answers}")

    async def operate(self, work: Callable[[Admin], object]) -> object:
        """Do something as the operator."""

        async def run() -> object:
            async with self._client(self.operator) as client:
                return await work(Admin(client))  # type: ignore[misc]

        return await self.operator.spawn(run())

    def start(self) -> None:
        self._tasks = [
            machine.spawn(self._write(machine, writing))
            for machine, writing in zip(self._writers, WRITERS, strict=True)
        ]
        self._tasks.append(self._reader.spawn(self._read()))

    async def stop_writing(self) -> None:
        """Let the producers come to an end."""
        self._stopping = True
        await asyncio.gather(*self._tasks[:-1])

    async def stop_reading(self) -> None:
        """Now that all is committed: read everything once more, and let the consumer come to where that ends."""
        self._ends = await self.operator.spawn(self._read_everything())
        await self._tasks[-1]

    def judge(self) -> list[str]:
        once = [writing.name.encode() for writing in WRITERS if writing.idempotent]
        return self.history.judge({"reader": self._reading.seen}, once)

    def _client(self, machine: SimNode) -> AsyncClient:
        config = ClientConfig(
            client_id=machine.name,
            request_timeout_ms=TIMEOUT_MS,
            connection_setup_timeout_ms=400,
            retry_backoff=Backoff(20, 200),
            reconnect_backoff=Backoff(20, 200),
        )
        addresses = [f"{host(broker_id)}:{BROKER_PORT}" for broker_id in self.cluster.shape.broker_ids]
        return AsyncClient(addresses, clock=machine.clock, randomness=machine.randomness, config=config)

    def _problem(self, who: str, what: str) -> None:
        self.problems.append(f"{who}: {what}")
        self.cluster.transcript.note(who, f"PROBLEM {what}")

    # Writing

    async def _write(self, machine: SimNode, writing: Writing) -> None:
        chance = random.Random(f"{machine.world.seed}/{machine.name}")
        config = ProducerConfig(
            acks=writing.acks,
            enable_idempotence=writing.idempotent,
            batch_size=1_000,
            linger_ms=2,
            request_timeout_ms=TIMEOUT_MS,
            delivery_timeout_ms=20_000,
        )
        unfinished: set[asyncio.Future[None]] = set()
        number = 0
        async with (
            self._client(machine) as client,
            Producer(client, config, allow_auto_topic_creation=False) as producer,
        ):
            while not self._stopping:
                topic, partition = chance.choice(KEYS)
                for _ in range(chance.randrange(1, 6)):
                    if len(unfinished) >= UNFINISHED_MAX:
                        break
                    value = b"%s-%d" % (writing.name.encode(), number)
                    number += 1
                    self.history.sent[value] = None
                    filler = b"x" * chance.choice((0, 10, 300))
                    delivery = producer.send(topic, value, key=filler, partition=partition)
                    watching = asyncio.ensure_future(self._watch(machine.name, writing, value, delivery))
                    unfinished.add(watching)
                    watching.add_done_callback(unfinished.discard)
                await asyncio.sleep(chance.uniform(*PAUSE_S))
            await producer.flush()
            if unfinished:
                await asyncio.wait(unfinished)

    async def _watch(self, who: str, writing: Writing, value: bytes, delivery: Delivery) -> None:
        try:
            metadata = await delivery
        except KafkaError:
            return
        place = Place(metadata.topic, metadata.partition, metadata.offset)
        by_all = writing.acks == ACKS_ALL
        if by_all and not self._is_committed(place) and value not in self.history._excused:
            self._problem(who, f"acknowledged before it was committed: {value!r}, {place}")
        self.history.note_acknowledged(value, place, by_all=by_all)

    def _is_committed(self, place: Place) -> bool:
        topic = self._sight.image.topics.get(place.topic)
        committed = None if topic is None else self._sight.committed.get((topic.topic_id, place.partition))
        return committed is not None and place.offset < committed.end_offset

    def _lost(self, key: Key, offset: int) -> None:
        self.history.note_loss(self._sight.image.topics_by_id[key[0]].name, key[1], offset)

    # Reading

    async def _read(self) -> None:
        async with self._client(self._reader) as client:
            consumer = self._begin(client)
            while self._ends is None or any(self._reading.next_offset.get(k, 0) < e for k, e in self._ends.items()):
                if self._reading.losses != len(self.history.lost):
                    await consumer.close()
                    consumer = self._begin(client)
                try:
                    records = await consumer.poll(0.3)
                except KafkaError as error:
                    if self._reading.losses != len(self.history.lost):
                        continue
                    if error.code is ErrorCode.OFFSET_OUT_OF_RANGE or not error.retriable:
                        self._problem("reader", f"unrepeatable read: {error!r}")
                        return
                    continue
                if self._reading.losses != len(self.history.lost):
                    continue  # it may have been fetched before
                for record in records:
                    self._see(Place(record.topic, record.partition, record.offset), record.value or b"")
            await consumer.close()
            self._reading.is_done = True

    def _begin(self, client: AsyncClient) -> Consumer:
        """From the beginning. After a loss nobody expects a consumer to have seen what is gone, or to know where it stands."""
        self._reading = _Reading(losses=len(self.history.lost))
        consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none", fetch_max_wait_ms=300))
        consumer.assign(KEYS)
        for topic, partition in KEYS:
            consumer.seek(topic, partition, 0)
        return consumer

    def _see(self, place: Place, value: bytes) -> None:
        reading, key = self._reading, (place.topic, place.partition)
        expected = reading.next_offset.get(key, 0)
        if place.offset != expected:
            kind = "poll-skip" if place.offset > expected else "nonmonotonic-poll"
            self._problem("reader", f"{kind}: {place} after {expected - 1}")
        if not self._is_committed(place):
            self._problem("reader", f"dirty read: {value!r} at {place} is not committed")
        reading.next_offset[key] = place.offset + 1
        reading.seen[place] = None
        self.history.note_read(place, value)

    async def _read_everything(self) -> dict[tuple[str, int], int]:
        async with self._client(self.operator) as client:
            consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none"))
            ends = await consumer.end_offsets(KEYS)
            consumer.assign(KEYS)
            for topic, partition in KEYS:
                consumer.seek(topic, partition, 0)
            while any([await consumer.position(*key) < ends[key] for key in KEYS]):
                for record in await consumer.poll(1.0):
                    place = Place(record.topic, record.partition, record.offset)
                    self.history.stored[place] = record.value or b""
            await consumer.close()
            return ends
