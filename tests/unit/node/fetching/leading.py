"""A leader made up for tests, with Kafka's fetch sessions, and followers that are real: partitions on a simulated disk."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, replace
from typing import Any, cast

from strandline.api.fetching.fetch_sessions import FetchSession, FetchSessions
from strandline.config.dynamic import DynamicConfig
from strandline.config.topic_config import TopicConfig
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.recovery import load
from strandline.metadata.image import PartitionImage
from strandline.metadata.incarnations import Incarnation
from strandline.node.fetching.fetchers import Fetchers
from strandline.node.fetching.throttles import Throttles
from strandline.node.log_effects import perform
from strandline.raft.messages import Address
from strandline.records.batch import BatchBuilder, decode
from strandline.records.header import iterate
from strandline.replica.partition import Partition
from strandline.sim.world import SimNode, World
from strandline.wire import fetch, messages
from strandline.wire.fetch import FetchedPartition, FetchRequest
from strandline.wire.headers import read_request_header, response_header

from ..scripted import config_of, quiet_logger

FETCH, LIST_OFFSETS, API_VERSIONS = 1, 2, 18
LEADER_ID, EPOCH = 7, 5
PORT = 9092


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"."))


def batch(base_offset: int, *values: bytes, epoch: int = EPOCH) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value, timestamp=1_000)
    return bytes(builder.build(base_offset=base_offset, leader_epoch=epoch))


@dataclass
class Led:
    """The leader's log of one partition: batches by base offset."""

    batches: list[tuple[int, bytes]]
    start: int = 0
    end: int = 0
    high_watermark: int = 0
    error: int = 0
    diverging: tuple[int, int] | None = None

    def append(self, *values: bytes, epoch: int = EPOCH) -> None:
        self.batches.append((self.end, batch(self.end, *values, epoch=epoch)))
        self.end += len(values)

    def read(self, wanted: fetch.FetchPartition) -> FetchedPartition:
        index = wanted.partition
        if self.error:
            return FetchedPartition(index, self.error)
        if not self.start <= wanted.fetch_offset <= self.end:
            return FetchedPartition(index, ErrorCode.OFFSET_OUT_OF_RANGE)
        if self.diverging is not None and wanted.last_fetched_epoch > self.diverging[0]:
            return FetchedPartition(index, 0, self.high_watermark, -1, self.start, diverging_epoch=self.diverging)
        data = b""
        for base, one in self.batches:
            if base >= wanted.fetch_offset and (not data or len(data) + len(one) <= wanted.partition_max_bytes):
                data += one
        return FetchedPartition(index, 0, self.high_watermark, self.high_watermark, self.start, data)


class Leader:
    """Handles one request of a connection at a time, as Kafka does; a Fetch waits until there is something to tell."""

    def __init__(self, version_max: int = 18) -> None:
        self.logs: dict[tuple[str, int], Led] = {}
        self.sessions = FetchSessions(100, random.Random(1))
        self.version_max = version_max
        self.asked: list[FetchRequest] = []
        self.listed: list[Any] = []
        self.accepted = 0
        self.is_mute = False
        self.hurries = True
        """A Fetch that waits is answered as soon as another request comes."""
        self.refuses: list[int] = []
        """Error codes for the next Fetches as a whole."""
        self.connections: list[_Served] = []

    def log(self, topic: str = "t", index: int = 0) -> Led:
        return self.logs.setdefault((topic, index), Led([]))

    def find(self, topic: str | bytes, index: int) -> Led:
        for (name, number), log in self.logs.items():
            if number == index and topic in (name, topic_id(name)):
                return log
        raise AssertionError(topic)

    async def serve(self, host: str = "", port: int = PORT) -> Any:
        return await asyncio.get_running_loop().create_server(lambda: _Served(self), host, port)

    def tell(self) -> None:
        """Whoever waits looks again."""
        for connection in self.connections:
            connection.look()

    def produce(self, *values: bytes, topic: str = "t", index: int = 0, committed: bool = True) -> None:
        log = self.log(topic, index)
        log.append(*values)
        if committed:
            log.high_watermark = log.end
        self.tell()

    def hang_up(self) -> None:
        for connection in list(self.connections):
            connection.transport.abort()

    def has_something(self, session: FetchSession) -> bool:
        """Records or errors for one of its partitions."""
        answers = [self.find(*place).read(cached.wanted) for place, cached in session.partitions.items()]
        return any(answer.error_code or answer.records or answer.diverging_epoch for answer in answers)

    def answer(self, session: FetchSession) -> list[tuple[str | bytes, list[FetchedPartition]]]:
        topics: dict[str | bytes, list[FetchedPartition]] = {}
        served = []
        for place, cached in list(session.partitions.items()):
            found = self.find(*place).read(cached.wanted)
            if cached.update(found):
                topics.setdefault(place[0], []).append(found)
                served.append(place)
        session.rotate(served)
        return list(topics.items())


class _Served(asyncio.Protocol):
    def __init__(self, leader: Leader) -> None:
        self.leader = leader
        self.data = b""
        self.waiting: tuple[int, int, FetchSession] | None = None
        self.is_opening = False
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.leader.connections.append(self)
        self.leader.accepted += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.leader.connections.remove(self)
        if self.timer is not None:
            self.timer.cancel()

    def data_received(self, data: bytes) -> None:
        self.data += data
        self.go_on()

    def go_on(self) -> None:
        while len(self.data) >= 4 and len(self.data) >= (end := 4 + int.from_bytes(self.data[:4], "big")):
            if self.leader.is_mute:
                return
            if self.waiting is not None:
                if not self.leader.hurries:
                    return
                self.look(now=True)
            frame, self.data = self.data[4:end], self.data[end:]
            self.handle(frame)

    def handle(self, frame: bytes) -> None:
        header = read_request_header(frame)
        key, version = header.api_key, header.api_version
        if key == FETCH:
            self.fetch(version, header.correlation_id, fetch.parse(version, memoryview(frame), header.body_position))
            return
        request = messages.decode_request(key, version, frame, header.body_position)
        reply = self.versions() if key == API_VERSIONS else self.offsets(request)
        self.write(key, version, header.correlation_id, messages.encode_response(key, version, reply))

    def versions(self) -> Any:
        Versions = messages.response(API_VERSIONS)
        served = {API_VERSIONS: 4, FETCH: self.leader.version_max, LIST_OFFSETS: 10}
        return Versions(
            api_keys=[
                Versions.ApiVersion(api_key=key, min_version=4 if key == FETCH else 0, max_version=newest)
                for key, newest in served.items()
            ]
        )

    def offsets(self, request: Any) -> Any:
        self.leader.listed.append(request)
        Offsets = messages.response(LIST_OFFSETS)
        return Offsets(
            topics=[
                Offsets.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        Offsets.ListOffsetsPartitionResponse(
                            partition_index=p.partition_index,
                            offset=log.end if p.timestamp == -1 else log.start,
                        )
                        for p in topic.partitions
                        for log in [self.leader.log(topic.name, p.partition_index)]
                    ],
                )
                for topic in request.topics
            ]
        )

    def fetch(self, version: int, correlation_id: int, request: FetchRequest) -> None:
        leader = self.leader
        leader.asked.append(request)
        now = asyncio.get_running_loop().time()
        by_id = version >= fetch.TOPIC_ID_SINCE
        try:
            if leader.refuses:
                raise KafkaError(ErrorCode(leader.refuses.pop(0)))
            if request.session_epoch == 0:
                leader.sessions.end(request.session_id)
                session = leader.sessions.begin(request.topics, by_id=by_id, now=now)
                assert session is not None
            else:
                session = leader.sessions.resume(
                    request.session_id,
                    request.session_epoch,
                    request.topics,
                    request.forgotten,
                    by_id=by_id,
                    now=now,
                )
        except KafkaError as error:
            self.write(
                FETCH, version, correlation_id, b"".join(fetch.write_response(version, [], error_code=error.code))
            )
            return
        self.waiting = (version, correlation_id, session)
        self.is_opening = request.session_epoch == 0
        self.timer = asyncio.get_running_loop().call_later(request.max_wait_ms / 1000, self.overdue)
        self.look()

    def overdue(self) -> None:
        self.look(now=True)
        self.go_on()

    def look(self, *, now: bool = False) -> None:
        if self.waiting is None:
            return
        version, correlation_id, session = self.waiting
        if self.is_opening and not now and not self.leader.has_something(session):
            return  # that of every partition something is new to the session is no reason
        topics = self.leader.answer(session)
        if topics or now:
            assert self.timer is not None
            self.timer.cancel()
            self.waiting = None
            body = b"".join(fetch.write_response(version, topics, session_id=session.session_id))
            self.write(FETCH, version, correlation_id, body)
            if self.data and not now:
                self.go_on()

    def write(self, key: int, version: int, correlation_id: int, body: bytes) -> None:
        framed = response_header(key, version, correlation_id) + body
        self.transport.write(len(framed).to_bytes(4, "big") + framed)


class Broker:
    """What a follower's partitions need of their node."""

    node_id, broker_epoch, lag_time_max_s = 1, 42, 30.0

    def __init__(self, node: SimNode) -> None:
        self.node = node
        self.notes: list[tuple[str, str]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        return True

    def is_alive(self, broker_id: int) -> bool:
        return True

    def incarnation(self, broker_id: int, broker_epoch: int) -> Incarnation:
        return Incarnation.CURRENT

    def now(self) -> float:
        return self.node.clock.monotonic()

    def flush_due(self, partition: Partition) -> None:
        async def flush() -> None:
            await perform(partition.log.flush())
            partition.after_flush(self.now())

        self.tasks.append(asyncio.get_running_loop().create_task(flush()))

    def propose_isr(self, partition: Partition, wish: Any) -> None: ...

    def note(self, kind: str, partition: Partition, reason: str, **facts: Any) -> None:
        self.notes.append((kind, str(partition)))

    def partition(self, topic: str = "t", index: int = 0, **config: Any) -> Partition:
        log = load(self.node.disk, f"/data/{topic}-{index}", replace(TopicConfig.build(), **config), clean=True).log
        return Partition(topic, index, topic_id(topic), log, state(), self)


def state(leader: int = LEADER_ID, epoch: int = EPOCH) -> PartitionImage:
    return PartitionImage((leader, 1), (leader, 1), leader, epoch, 0)


class Stage:
    """A leader on one host and this broker's fetchers on another. The story runs on the second."""

    def __init__(self, seed: int = 1, **settings: Any) -> None:
        self.world = World(seed)
        self.leader = Leader()
        self.leader_host = self.world.node("leader")
        self.host = self.world.node("follower")
        self.host.disk.cold_probability = 0.0
        self.config = config_of(**settings)
        self.throttles = Throttles(DynamicConfig(self.config))
        self.broker = Broker(self.host)
        self.closed: list[tuple[int, str]] = []
        self.opened: list[int] = []
        self.failed: list[tuple[Partition, OSError]] = []
        self.address: Address | None = Address("leader", PORT)
        self.fetchers: Fetchers

    def play(self, story: Any) -> None:
        async def body() -> None:
            self.fetchers = Fetchers(
                self.config,
                self.host.clock,
                self.host.randomness,
                quiet_logger(),
                self.throttles,
                address_of=lambda broker_id: self.address,
                broker_epoch=lambda: self.broker.broker_epoch,
                on_opened=self.opened.append,
                on_closed=lambda node_id, purpose: self.closed.append((node_id, purpose)),
                on_storage_error=lambda partition, error: self.failed.append((partition, error)),
                on_task_ended=lambda task: None if task.cancelled() else task.result(),
            )
            await story(self)
            await self.fetchers.close()

        async def main() -> None:
            await self.leader_host.spawn(self.leader.serve())
            await self.host.spawn(body())

        with self.world as world:
            world.run(main())

    def follow(self, *partitions: Partition) -> None:
        for partition in partitions:
            self.leader.log(partition.topic, partition.index)
            self.fetchers.follow(partition, LEADER_ID)

    async def until(self, condition: Any, within_s: float = 5.0) -> float:
        """Wait until it is so; how long that took. The clock is virtual."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        while not condition():
            assert loop.time() - start < within_s, "it did not come to be"
            await asyncio.sleep(0.0005)
        return loop.time() - start


def values(partition: Partition) -> list[bytes]:
    segment = partition.log.segments.active
    data = segment.file.read_blocking(0, segment.size)
    view = memoryview(data)
    return [record.value or b"" for at, header in iterate(data) for record in decode(view[at : at + header.size_bytes])]
