"""One broker that loses its power, is killed and cut off while clients write and read, on a topic with `flush.messages=1`.

The node, its client, its log: all the shipped code. One seed is one history.
"""

from __future__ import annotations

import asyncio
import contextlib
import random

from strandline.client.aio import Admin, AsyncClient, ClientConfig, Consumer, ConsumerConfig, Producer, ProducerConfig
from strandline.client.core.backoff import Backoff
from strandline.client.core.batches import Delivery
from strandline.client.flow.described import NewTopic
from strandline.config import properties
from strandline.config.node import NodeConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.history import History
from strandline.histories.outcome import Outcome
from strandline.histories.transcript import WORLD, Transcript
from strandline.node.log_dirs import format_dirs
from strandline.node.node import Node
from strandline.runtime.logging import LEVELS, JsonLogger
from strandline.sim.world import SimNode, World

NAME = "one node"
TOPIC, PARTITIONS = "durable", 2
SCRATCH = "scratch"
"""A topic that is deleted and made again all the time."""
BROKER, PORT = "broker", 9092
CLUSTER_ID = "c2ltdWxhdGVkY2x1c3Rlcg"
FAULTS = 4
FAULT_EVERY_S = (0.2, 1.5)
DOWN_S = (0.05, 0.6)
CALM_S = 1.0
VIRTUAL_S_MAX = 60.0
"""After the last harm everything must be well again long before."""

CONFIG = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": f"PLAINTEXT://{BROKER}:{PORT},CONTROLLER://{BROKER}:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": f"1@{BROKER}:9093",
    "log.dirs": "/data",
    "log.index.interval.bytes": "512",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "replica.high.watermark.checkpoint.interval.ms": "400",
}


def play(seed: int) -> Outcome:
    """One history from its first byte to the verdict."""
    with World(seed) as world:
        story = _Story(world)
        problems = []
        try:
            world.run(story.run(), until=VIRTUAL_S_MAX)
        except Exception as error:
            problems.append(f"the history did not come to its end: {error!r}")
        else:
            problems = story.history.judge()
        return Outcome(
            seed,
            NAME,
            problems,
            world.trace_hash,
            world.now,
            len(story.history.acknowledged),
            story.faults,
            str(story.transcript),
        )


class _Story:
    def __init__(self, world: World) -> None:
        self.world = world
        self.history = History()
        self.faults: dict[str, int] = {}
        self.transcript = Transcript(lambda: world.now)
        self.log: list[str] = []
        self._chance = world.faults
        self._stopping = False
        self._node: Node
        self._scratched: dict[bytes, int] = {}
        """What the broker acknowledged of the topic as it is now, and where."""
        self._scratch_start = 0

    async def run(self) -> None:
        broker = self.world.node(BROKER)
        broker.disk.cold_probability = 0.02
        format_dirs(broker.disk, ["/data"], CLUSTER_ID, 1, broker.randomness)
        await self._start(broker)
        admin = self.world.node("admin")
        await admin.spawn(self._create_topic(admin))
        clients = [self.world.node(f"writer{i}") for i in range(2)]
        writing = [node.spawn(self._write(node)) for node in clients]
        reader = self.world.node("reader")
        reading = reader.spawn(self._read(reader))
        scratcher = self.world.node("scratcher")
        scratching = scratcher.spawn(self._scratch(scratcher))
        for _ in range(FAULTS):
            await asyncio.sleep(self._chance.uniform(*FAULT_EVERY_S))
            await self._harm(broker)
        await asyncio.sleep(CALM_S)
        self._stopping = True
        await asyncio.gather(*writing, reading, scratching)
        await admin.spawn(self._read_everything(admin))
        await admin.spawn(self._judge_scratch(admin))

    async def _start(self, broker: SimNode) -> None:
        async def start() -> None:
            config = NodeConfig.build(properties.of(CONFIG), insecure=True)
            node = Node(
                config, broker.disk, broker.clock, broker.randomness, JsonLogger(self.log.append, LEVELS["warning"])
            )
            await node.start()
            self._node = node
            self.transcript.note(BROKER, f"is started, {len(self.history.acknowledged)} records acknowledged so far")

        await broker.spawn(start())

    # Harm

    async def _harm(self, broker: SimNode) -> None:
        kind = self._chance.choices(("power loss", "kill", "stop", "reset", "cut"), weights=(5, 2, 2, 2, 1))[0]
        self.faults[kind] = self.faults.get(kind, 0) + 1
        self.transcript.note(WORLD, kind)
        others = [name for name in self.world.nodes if name != BROKER]
        if kind == "reset":
            for name in others:
                self.world.network.reset_connections(BROKER, name)
        elif kind == "cut":
            self.world.network.isolate(BROKER)
            await asyncio.sleep(self._chance.uniform(*DOWN_S))
            self.world.network.heal_all()
        else:
            if kind == "stop":
                await broker.spawn(self._node.stop())
            broker.power_loss() if kind == "power loss" else broker.kill()
            await asyncio.sleep(self._chance.uniform(*DOWN_S))
            broker.restart()
            await self._start(broker)

    # Clients

    def _client(self, node: SimNode) -> AsyncClient:
        config = ClientConfig(
            client_id=node.name,
            request_timeout_ms=2_000,
            connection_setup_timeout_ms=500,
            retry_backoff=Backoff(20, 200),
            reconnect_backoff=Backoff(20, 200),
        )
        return AsyncClient(f"{BROKER}:{PORT}", clock=node.clock, randomness=node.randomness, config=config)

    async def _create_topic(self, node: SimNode) -> None:
        async with self._client(node) as client:
            topic = NewTopic(TOPIC, PARTITIONS, 1, configs={"flush.messages": "1", "internal.segment.bytes": "16384"})
            created = await Admin(client).create_topics([topic])
            assert not isinstance(created[TOPIC], KafkaError), created[TOPIC]

    async def _write(self, node: SimNode) -> None:
        chance = random.Random(f"{self.world.seed}/{node.name}")
        config = ProducerConfig(batch_size=2_000, linger_ms=2, request_timeout_ms=2_000, delivery_timeout_ms=60_000)
        async with self._client(node) as client, Producer(client, config) as producer:
            watching = []
            number = 0
            while not self._stopping:
                for _ in range(chance.randrange(1, 8)):
                    value = b"%s-%d" % (node.name.encode(), number)
                    number += 1
                    self.history.sent[value] = None
                    filler = b"x" * chance.choice((0, 10, 300))
                    delivery = producer.send(TOPIC, value, key=filler, partition=chance.randrange(PARTITIONS))
                    watching.append(asyncio.ensure_future(self._watch(value, delivery)))
                await asyncio.sleep(chance.uniform(0.0, 0.15))
            await producer.flush()
            await asyncio.gather(*watching)

    async def _watch(self, value: bytes, delivery: Delivery) -> None:
        try:
            metadata = await delivery
        except KafkaError:
            return
        self.history.acknowledged[value] = (metadata.partition, metadata.offset)

    async def _read(self, node: SimNode) -> None:
        async with self._client(node) as client:
            consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none", fetch_max_wait_ms=100))
            self._assign_from_start(consumer)
            while not self._stopping:
                try:
                    records = await consumer.poll(0.2)
                except KafkaError as error:
                    self.history.problems.append(f"unrepeatable read: {error}")
                    break
                for record in records:
                    self.history.note_read((record.partition, record.offset), record.value or b"")
            await consumer.close()

    async def _scratch(self, node: SimNode) -> None:
        """Make a topic, write to it, cut its beginning off, delete it, and again. The last one stays, to be judged."""
        chance = random.Random(f"{self.world.seed}/{node.name}")
        async with self._client(node) as client:
            admin = Admin(client)
            number = 0
            while True:
                topic = NewTopic(SCRATCH, 1, 1, configs={"flush.messages": "1"})
                created = (await admin.create_topics([topic]))[SCRATCH]
                if isinstance(created, KafkaError) and created.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    continue
                self._scratched, self._scratch_start = {}, 0
                async with Producer(client, ProducerConfig(linger_ms=0)) as producer:
                    for _ in range(chance.randrange(1, 12)):
                        number += 1
                        value = b"scratch-%d" % number
                        with contextlib.suppress(KafkaError):
                            self._scratched[value] = (await producer.send(SCRATCH, value, partition=0)).offset
                if self._scratched and chance.random() < 0.5:
                    before = chance.choice(list(self._scratched.values()))
                    deleted = (await admin.delete_records({(SCRATCH, 0): before}))[SCRATCH, 0]
                    self._scratch_start = 0 if isinstance(deleted, KafkaError) else deleted
                    await asyncio.sleep(chance.uniform(0.0, 0.5))
                if self._stopping:
                    return
                await admin.delete_topics([SCRATCH])

    async def _judge_scratch(self, node: SimNode) -> None:
        """A topic made again holds what was acknowledged to it, and nothing of those before it."""
        async with self._client(node) as client:
            consumer = Consumer(client, ConsumerConfig(auto_offset_reset="earliest"))
            end = (await consumer.end_offsets([(SCRATCH, 0)]))[SCRATCH, 0]
            start = (await consumer.beginning_offsets([(SCRATCH, 0)]))[SCRATCH, 0]
            consumer.assign([(SCRATCH, 0)])
            consumer.seek_to_beginning()
            stored: dict[bytes, int] = {}
            while await consumer.position(SCRATCH, 0) < end:
                stored |= {record.value or b"": record.offset for record in await consumer.poll(1.0)}
            await consumer.close()
        if start > self._scratch_start:
            self.history.problems.append(
                f"lost-write: {SCRATCH} begins at {start}, and was cut at {self._scratch_start}"
            )
        for value, offset in self._scratched.items():
            if offset >= start and stored.get(value) != offset:
                self.history.problems.append(f"lost-write: {value!r} was acknowledged at {offset} of {SCRATCH}")
        for value in stored.keys() - self._scratched.keys():
            if int(value.rpartition(b"-")[2]) < min((int(v.rpartition(b"-")[2]) for v in self._scratched), default=0):
                self.history.problems.append(f"resurrected: {value!r} is of an earlier {SCRATCH}")

    @staticmethod
    def _assign_from_start(consumer: Consumer) -> None:
        consumer.assign([(TOPIC, partition) for partition in range(PARTITIONS)])
        for partition in range(PARTITIONS):
            consumer.seek(TOPIC, partition, 0)

    async def _read_everything(self, node: SimNode) -> None:
        async with self._client(node) as client:
            consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none"))
            partitions = [(TOPIC, partition) for partition in range(PARTITIONS)]
            ends = await consumer.end_offsets(partitions)
            self._assign_from_start(consumer)
            while any([await consumer.position(*partition) < ends[partition] for partition in partitions]):
                for record in await consumer.poll(1.0):
                    self.history.stored[record.partition, record.offset] = record.value or b""
            await consumer.close()
