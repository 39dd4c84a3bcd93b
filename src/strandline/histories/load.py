"""The load of a history: producers, a consumer, a client that administers, an operator; and the results of what they
did.

Always true: every client works in bursts with quiet between, as users do, in small and frequent ones during faults;
every send, poll and administration is counted as one operation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from strandline.client.aio import Admin, Consumer, ConsumerConfig
from strandline.client.flow.descriptions import NewTopic
from strandline.client.flow.offsets import LATEST
from strandline.errors import ErrorCode, KafkaError
from strandline.histories.administered_topic import AdministeredTopic
from strandline.histories.batches import all_batches
from strandline.histories.clients.admin import AdminClient
from strandline.histories.clients.connecting import connect
from strandline.histories.clients.reader import ReadingClient, assign_from_start
from strandline.histories.clients.writer import WRITERS, WritingClient
from strandline.histories.cluster import LivenessFailure, SimulatedCluster
from strandline.histories.compaction.cleaned_batches import records
from strandline.histories.compaction.load import KeyedLoad
from strandline.histories.compaction.plan import COMPACTED
from strandline.histories.compaction.replica_progress import ReplicaProgress
from strandline.histories.coverage import CLIENT, Coverage
from strandline.histories.groups.load import GroupLoad
from strandline.histories.judges import clients, transactions
from strandline.histories.judges.compaction import last_value_survives
from strandline.histories.judges.groups import at_the_end
from strandline.histories.outcome import Problem
from strandline.histories.record_history import RecordHistory, RecordPosition
from strandline.histories.replica_observation import Key, ReplicaObservation
from strandline.histories.setting import HistorySetting
from strandline.histories.transactions.load import TransactionLoad
from strandline.histories.transcript import WORLD
from strandline.ids import TopicPartition

T = TypeVar("T")
CREATE_WITHIN_S = 60.0
READ_POLLS_MAX = 10
WATCH_S = 0.03
OPERATOR_PATIENCE_MS = 12_000
BRISK_OPERATIONS_MAX = 600
"""A long nemesis has seen enough of them by then."""


class Load:
    def __init__(
        self,
        cluster: SimulatedCluster,
        observed: ReplicaObservation,
        setting: HistorySetting,
        coverage: Coverage,
        progress: ReplicaProgress,
    ) -> None:
        world = cluster.world
        self.cluster = cluster
        self.keys = setting.keys
        self.history = RecordHistory(lambda: world.now, observed.committed_end)
        self.topics: dict[str, AdministeredTopic] = {}
        """What the administering client has made."""
        self.problems: list[Problem] = []
        self.operations = 0
        self.pace = 1.0
        """Pauses between bursts take so many times as long."""
        self.is_stopping = self._is_brisk = False
        self.is_busy = False
        """A nemesis needs it brisk, however much was done already."""
        self.operator = world.node("operator")
        self._setting = setting
        self.observed = observed
        self._progress = progress
        self.coverage = coverage
        self.writers = [WritingClient(self, world.node(f"writer-{writing.name}"), writing) for writing in WRITERS]
        self._reader = ReadingClient(self, world.node("reader"))
        self._admin = AdminClient(self, world.node("admin"))
        self._working: list[asyncio.Task[None]] = []
        self._resting: list[asyncio.Future[None]] = []
        self._reading: asyncio.Task[None] | None = None
        self.keyed = None if setting.compaction is None else KeyedLoad(self, setting.compaction)
        self.group = None if setting.group is None else GroupLoad(self, setting.group)
        self.transactions = None if setting.transactions is None else TransactionLoad(self, setting.transactions)
        observed.on_loss = self._lost

    @property
    def acknowledged(self) -> int:
        return sum(writer.acknowledged for writer in self.writers)

    @property
    def hosts(self) -> list[str]:
        hosts = [*(f"writer-{writing.name}" for writing in WRITERS), "reader", "admin"]
        return [
            *hosts,
            *(host for also in (self.keyed, self.group, self.transactions) if also is not None for host in also.hosts),
        ]

    # Beginning and ending

    async def create_topics(self) -> None:
        topics = [plan.as_new_topic() for plan in self._setting.topics]
        if (plan := self._setting.compacted) is not None and self._setting.compaction is not None:
            topics.append(plan.as_new_topic(**self._setting.compaction.topic_configs))
        if self.transactions is not None and (ledger := self._setting.ledger) is not None:
            topics += self.transactions.topics(ledger)
        await self.operate(lambda admin: self._create(admin, topics))

    async def _create(self, admin: Admin, topics: list[NewTopic]) -> None:
        answers: dict[str, object] = {}
        deadline = self.cluster.world.now + CREATE_WITHIN_S
        while topics:
            if self.cluster.world.now > deadline:
                raise LivenessFailure(
                    f"cannot make {topics} within {CREATE_WITHIN_S} s: {answers}; {self.cluster.describe()}"
                )
            try:
                answers = dict(await admin.create_topics(topics))
            except KafkaError as error:
                answers = {topic.name: error for topic in topics}
            topics = [topic for topic in topics if not _is_there(answers[topic.name])]
            if topics:
                await asyncio.sleep(0.2)

    def start(self) -> None:
        nodes = self.cluster.world.nodes
        self._working = [nodes[f"writer-{writer.writing.name}"].spawn(writer.run()) for writer in self.writers]
        self._working.append(nodes["admin"].spawn(self._admin.run()))
        self._reading = nodes["reader"].spawn(self._reader.run())
        for also in (self.keyed, self.group, self.transactions):
            if also is not None:
                also.start()

    async def stop_writing(self) -> None:
        """Let every client that changes anything come to an end."""
        self.is_stopping = True
        self.hurry()
        await asyncio.gather(*self._working)
        if self.keyed is not None:
            await self.keyed.stop()
        if self.transactions is not None:
            await self.transactions.stop_writing()

    async def stop_reading(self) -> None:
        """Now that all is committed: read everything once more, and let the consumer come to where that ends."""
        ends = await self.operator.spawn(self._read_everything())
        assert self._reading is not None
        await self._reader.read_to(ends, self._reading)
        if self.keyed is not None:
            await self.keyed.read()
        if self.transactions is not None:
            await self.transactions.stop_reading()

    async def operate(self, work: Callable[[Admin], Awaitable[T]]) -> T:
        """Do something as the operator."""

        async def run() -> T:
            async with connect(self.operator, self.cluster.shape, patience_ms=OPERATOR_PATIENCE_MS) as client:
                self.operations += 1
                return await work(Admin(client))

        return await self.operator.spawn(run())

    async def read(self, key: TopicPartition) -> None:
        """Another consumer reads a partition from its beginning to its end, as far as it gets in a while."""

        async def run() -> None:
            async with connect(self.operator, self.cluster.shape) as client:
                consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none"))
                self.history.note_begin(self.operator.name, {key: 0})
                assign_from_start(consumer, [key])
                for _ in range(READ_POLLS_MAX):
                    self.operations += 1
                    try:
                        end = (await self.ask_ends(self.operator.name, consumer, [key]))[key]
                        records = await consumer.poll(1.0)
                    except KafkaError as error:
                        self.note_error(error)
                        continue
                    places = [(RecordPosition(r.topic, r.partition, r.offset), r.value or b"") for r in records]
                    self.history.note_poll(self.operator.name, places)
                    if places and places[-1][0].offset + 1 >= end:
                        break
                await consumer.close()

        await self.operator.spawn(run())

    async def _read_everything(self) -> dict[TopicPartition, int]:
        async with connect(self.operator, self.cluster.shape) as client:
            consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none"))
            ends = await self.ask_ends(self.operator.name, consumer, self.keys)
            assign_from_start(consumer, self.keys)
            while any([await consumer.position(*key) < ends[key] for key in self.keys]):
                self.operations += 1
                for record in await consumer.poll(1.0):
                    self.history.note_stored(
                        RecordPosition(record.topic, record.partition, record.offset), record.value or b""
                    )
            await consumer.close()
            return ends

    def watch_end(self, key: TopicPartition) -> asyncio.Task[None]:
        """The operator asks all the time where a partition ends, until it is cancelled."""

        async def run() -> None:
            async with connect(self.operator, self.cluster.shape) as client:
                consumer = Consumer(client, ConsumerConfig(auto_offset_reset="none"))
                while True:
                    try:
                        await self.ask_ends(self.operator.name, consumer, [key])
                    except KafkaError as error:
                        self.note_error(error)
                    await asyncio.sleep(WATCH_S)

        return self.operator.spawn(run())

    async def ask_ends(self, who: str, consumer: Consumer, keys: list[TopicPartition]) -> dict[TopicPartition, int]:
        self.operations += 1
        invoked_at = self.cluster.world.now
        found = await consumer.offsets_for_times(
            dict.fromkeys(keys, LATEST)
        )  # as `end_offsets`, with the leader epochs
        ends = {key: end for key, end in found.items() if end is not None}
        for key, end in ends.items():
            self.history.note_end(who, *key, end.offset, end.leader_epoch, invoked_at=invoked_at)
        return {key: end.offset for key, end in ends.items()}

    # What clients use

    async def rest(self, seconds: float) -> None:
        """Until the next thing that a client does; sooner if all are hurried."""
        loop = asyncio.get_running_loop()
        rested: asyncio.Future[None] = loop.create_future()
        timer = loop.call_later(seconds * self.pace, _end, rested)
        self._resting.append(rested)
        try:
            await rested
        finally:
            timer.cancel()
            self._resting.remove(rested)

    @property
    def is_brisk(self) -> bool:
        return self.is_busy or (self._is_brisk and self.operations < BRISK_OPERATIONS_MAX)

    def become_brisk(self) -> None:
        """Faults are near: what goes wrong should meet some client's records."""
        self._is_brisk = True
        self.hurry()

    def become_calm(self) -> None:
        self._is_brisk = False

    def hurry(self) -> None:
        """No client rests any longer."""
        for rested in list(self._resting):
            _end(rested)

    def note_error(self, error: KafkaError) -> None:
        self.coverage.note(CLIENT, error.code.name)

    def problem(self, property_: str, what: str) -> None:
        problem = Problem(property_, self.cluster.world.now, what)
        self.problems.append(problem)
        self.cluster.transcript.note(WORLD, f"VIOLATES {problem}")

    def _lost(self, key: Key, offset: int) -> None:
        topic = self.observed.image.topics_by_id.get(key[0])
        if topic is not None and topic.name in {name for name, _ in self.keys}:
            self.history.note_loss(topic.name, key[1], offset)

    # What it means

    def judge(self) -> list[Problem]:
        found = [*self.problems, *clients.judge(self.history)]
        if self.group is not None:
            found += at_the_end.judge(self.group.history, self.history, self.cluster.world.now)
        if self.keyed is not None:
            found += self._judge_keys(self.keyed)
        if self.transactions is not None:
            found += transactions.judge(self.transactions.history, self.observed, self.cluster.world.now)
        images = {id(seen.image): seen.image for m in self.cluster.members.values() if (seen := m.look()) is not None}
        for image in images.values():
            for topic in self.topics.values():
                found += [Problem("administration", self.cluster.world.now, what) for what in topic.judge(image)]
        return found

    def _judge_keys(self, keyed: KeyedLoad) -> list[Problem]:
        """What a reader and every replica have of the compacted topic."""
        now, observed, history = self.cluster.world.now, self.observed, keyed.history
        topic = observed.image.topics[COMPACTED]
        key = (topic.topic_id, 0)
        found = {f"n{i}": observed.log(i, key) for i in topic.partitions[0].replicas}
        logs = {
            name: [kept for batch in all_batches(log) for kept in records(batch)] for name, log in found.items() if log
        }
        found_by = {"a reader": history.read, **logs}
        late = {name: {k for k in history.keys if self.missed_deletion(int(name[1:]), k)} for name in logs}
        late["a reader"] = set().union(*late.values())  # it reads from any of them
        return [
            Problem(last_value_survives.NAME, now, what)
            for who, kept in found_by.items()
            for what in last_value_survives.judge(history, who, kept, late[who])
        ]

    def missed_deletion(self, node_id: int, record_key: bytes) -> bool:
        """Whether a replica of the compacted topic came too late for the tombstone that is the last record of a key
        (F3)."""
        if self.keyed is None or self._setting.compaction is None:
            return False
        last = self.keyed.history.last_acknowledged(record_key)
        if last is None or last.offset is None or last.value is not None:
            return False
        partition = self.observed.image.topics[COMPACTED].topic_id, 0
        retention_s = self._setting.compaction.delete_retention_ms / 1000
        return self._progress.was_late(node_id, partition, last.offset, retention_s)


def _is_there(answer: object) -> bool:
    return not isinstance(answer, KafkaError) or answer.code is ErrorCode.TOPIC_ALREADY_EXISTS


def _end(rested: asyncio.Future[None]) -> None:
    if not rested.done():
        rested.set_result(None)
