"""A data plane without a loop: brokers with real partitions, a controller that really decides, messages that wait to be moved.

Each step is one thing that can happen: a message arrives or is lost, a broker reads metadata, fetches, flushes, dies or starts, a
client writes or reads. After each of them `watch` looks whether the invariants hold.

Always true: nothing moves by itself but what is due at once; messages between two brokers keep their order, others do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.heartbeats import BrokerHeartbeatReply
from strandline.errors import ErrorCode, KafkaError
from strandline.records.batch import BatchBuilder
from strandline.replica.partition import READ_UNCOMMITTED, Partition

from .broker import CONTROLLER, Host, Link, Process, records_of, topic_config
from .controller import Controller
from .hand_driven import HandLoop, MemoryDisk

NO_FLUSH = 2**63 - 1
SETTLE_ROUNDS_MAX = 400


class Message(NamedTuple):
    kind: str
    source: int
    target: int
    arrive: Callable[[], None]
    link: Link | None


class Written(NamedTuple):
    """What became of a value that a producer wrote."""

    value: str
    acks: int
    broker_id: int
    offset: int
    code: ErrorCode | None
    """None while nobody has answered."""


class Cluster:
    def __init__(
        self,
        brokers: int | Sequence[int] = 3,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        min_isr: int = 1,
        elr: bool = False,
        unclean: bool = False,
        flush_messages: int = NO_FLUSH,
        segment_bytes: int = 2**30,
        lag_s: float = 30.0,
        fetch_bytes: int = 2**20,
        seed: int = 0,
    ) -> None:
        self.loop = HandLoop()
        self.lag_s = lag_s
        self.fetch_bytes = fetch_bytes
        """How much a follower asks for at once; a batch comes whole even so."""
        self.controller = Controller(ElectionPolicy(min_isr, unclean, elr))
        self.topic_config = topic_config(
            min_insync_replicas=min_isr, flush_messages=flush_messages, segment_bytes=segment_bytes
        )
        ids = range(1, brokers + 1) if isinstance(brokers, int) else brokers
        self.hosts = {i: Host(i, MemoryDisk(self.loop, f"{seed}/{i}")) for i in ids}
        self.under_way: list[Message] = []
        self.cut: set[tuple[int, int]] = set()
        """Source and target between which nothing arrives."""
        self.written: dict[int, Written] = {}
        self.consumed: dict[int, tuple[str, int]] = {}
        """By offset: value and leader epoch, as consumers saw them."""
        self.told: list[str] = []
        """What producers heard, in order."""
        self.on_truncation: Callable[[Process], None] = lambda process: None
        for host in self.hosts.values():
            host.disk.mkdir("/data")
            host.disk.sync_dir("/")
            host.process = Process(self, host)
        for host in self.hosts.values():
            self.process(host.id).apply()
            self.beat(host.id)
        self.controller.create(replicas)
        for host in self.hosts.values():
            self.process(host.id).apply()

    # Looking

    @property
    def running(self) -> list[Process]:
        return [host.process for host in self.hosts.values() if host.process is not None]

    def process(self, broker_id: int) -> Process:
        process = self.hosts[broker_id].process
        assert process is not None, f"broker {broker_id} does not run"
        return process

    def partition(self, broker_id: int) -> Partition:
        partition = self.process(broker_id).partition
        assert partition is not None, f"broker {broker_id} hosts nothing"
        return partition

    @property
    def leader(self) -> Partition | None:
        """The one that the controller means, if it runs and knows that it leads."""
        state = self.controller.partition
        process = self.hosts[state.leader].process if state.has_leader else None
        partition = None if process is None else process.partition
        if partition is None or not partition.leads or partition.leader_epoch != state.leader_epoch:
            return None
        return partition

    def note_truncation(self, process: Process) -> None:
        self.on_truncation(process)

    # Messages

    def send(self, kind: str, source: int, target: int, arrive: Callable[[], None], link: Link | None = None) -> None:
        self.under_way.append(Message(kind, source, target, arrive, link))

    def deliverable(self) -> list[Message]:
        """The first of each pair and kind of connection, unless nothing goes between them."""
        first: dict[tuple[Any, ...], Message] = {}
        for message in self.under_way:
            first.setdefault((message.source, message.target, message.link), message)
        return [m for m in first.values() if (m.source, m.target) not in self.cut]

    def deliver(self, message: Message) -> None:
        self.under_way.remove(message)
        message.arrive()
        self.loop.run()

    def lose(self, message: Message) -> None:
        """With it goes its connection; what is sent on top of that is sent again."""
        self.under_way.remove(message)
        if message.link is not None:
            self.reset(message.link)
        else:
            broker_id = message.source if message.kind == "alter" else message.target
            process = self.hosts[broker_id].process
            if process is not None:
                process.propose_again()

    def reset(self, link: Link) -> None:
        if not link.is_over:
            self.under_way = [m for m in self.under_way if m.link is not link]
            link.reset()
            self.loop.run()

    def isolate(self, broker_id: int) -> None:
        for other in (CONTROLLER, *self.hosts):
            self.cut |= {(broker_id, other), (other, broker_id)}

    def hears_controller(self, broker_id: int) -> bool:
        return (CONTROLLER, broker_id) not in self.cut

    def heal(self) -> None:
        self.cut.clear()

    # Brokers

    def start(self, broker_id: int) -> Process:
        host = self.hosts[broker_id]
        assert host.process is None, f"broker {broker_id} runs"
        host.process = Process(self, host)
        return host.process

    def kill(self, broker_id: int) -> None:
        """The process ends at once; the page cache stays."""
        self.process(broker_id).end()
        self._hang_up(broker_id)

    def power_loss(self, broker_id: int) -> None:
        """Of what was not synced nothing may be left, or torn pieces."""
        self.process(broker_id).end()
        self._hang_up(broker_id)
        self.hosts[broker_id].disk.power_loss()

    def stop(self, broker_id: int) -> bool:
        """One step of a controlled shutdown; True once the broker has stopped."""
        answer = self.beat(broker_id, stopping=True)
        if answer is None or not answer.should_shut_down:
            return False
        self.process(broker_id).close_clean()
        self._hang_up(broker_id)
        return True

    def _hang_up(self, broker_id: int) -> None:
        """Those who fetched from it lose their connections. What it sent may still arrive."""
        for process in self.running:
            link = process.links.get(broker_id)
            if link is not None:
                self.reset(link)
        self.under_way = [m for m in self.under_way if m.target != broker_id or m.kind == "alter"]
        self.loop.run()

    def beat(self, broker_id: int, *, stopping: bool = False) -> BrokerHeartbeatReply | None:
        """A heartbeat, answered at once; None if the controller knows a newer incarnation."""
        process = self.process(broker_id)
        try:
            return self.controller.heartbeat(
                broker_id, process.broker_epoch, process.image, self.loop.now, stopping=stopping
            )
        except KafkaError:
            return None

    # Clients

    def produce(
        self,
        broker_id: int,
        value: str,
        *,
        acks: int = -1,
        count: int = 1,
        producer: tuple[int, int, int] | None = None,
    ) -> int:
        """Write a batch there, as a Produce does; its number. `producer`: producer id, epoch and sequence."""
        number = len(self.written)
        self.written[number] = Written(value, acks, broker_id, -1, None)
        partition = self.process(broker_id).partition
        builder = BatchBuilder()
        for i in range(count):
            builder.append(b"k", f"{value}{i or ''}".encode(), timestamp=self.loop.wall_ms())
        fields: dict[str, Any] = {}
        if producer is not None:
            fields = dict(zip(("producer_id", "producer_epoch", "base_sequence"), producer, strict=True))
        if partition is None:
            self._answered(number, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return number
        try:
            appended = partition.append(memoryview(builder.build(**fields)), self.loop.wall_ms(), for_all=acks == -1)
        except KafkaError as error:
            self._answered(number, error.code)
            return number
        self.written[number] = self.written[number]._replace(offset=appended.base_offset)
        end_offset = partition.log.log_end_offset
        word = partition.when_committed if acks == -1 else partition.when_written
        if acks:
            word(end_offset, lambda code: self._answered(number, code))
        self.loop.run()
        return number

    def _answered(self, number: int, code: ErrorCode) -> None:
        written = self.written[number] = self.written[number]._replace(code=code)
        place = f"acked at {written.offset}" if code is ErrorCode.NONE else code.name
        self.told.append(f"{written.value}: {place}")

    def consume(self, broker_id: int, offset: int = 0) -> list[tuple[int, str, int]]:
        """What a consumer may read there."""
        partition = self.process(broker_id).partition
        if partition is None or partition.offline:
            return []
        end = partition.readable_end(READ_UNCOMMITTED)
        start = max(offset, partition.log.log_start_offset)
        return [] if start > end else [r for r in records_of(partition.log, start) if r[0] < end]

    # Letting it run

    def wait(self, seconds: float) -> None:
        self.loop.run(seconds)

    def round(self) -> None:
        """Everybody does what it has to do, once; then everything that is under way arrives."""
        for process in self.running:
            if self.hears_controller(process.node_id):
                process.apply()
            process.flush()
            process.fetch()
        for message in self.deliverable():
            if message in self.under_way:
                self.deliver(message)

    def settle(self, *, seconds: float = 0.0) -> None:
        """Rounds until nothing changes any more, with half a second after each that brought nothing."""
        until = self.loop.now + seconds
        quiet = 0
        for _ in range(SETTLE_ROUNDS_MAX):
            before = self._state()
            self.round()
            if self._state() != before:
                quiet = 0
            elif quiet < 3 or self.loop.now < until:
                quiet += 1
                self.wait(0.5)
            else:
                return
        raise AssertionError("it does not settle")

    def _state(self) -> list[Any]:
        return [
            (
                p.applied,
                p.is_flush_due,
                None
                if p.partition is None
                else (p.partition.log.log_end_offset, p.partition.high_watermark, p.partition.log.log_start_offset),
            )
            for p in self.running
        ] + [
            len(self.controller.images),
            [m.kind for m in self.under_way if m.source == CONTROLLER or m.kind == "alter"],
        ]
