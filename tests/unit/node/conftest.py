"""A real node in a simulated world, and ends of connections that a test holds in its hand.

Time is virtual: a flush takes as long as a test says, and ten idle minutes pass at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.ids import Uuid
from strandline.node.connection import Connection
from strandline.node.listener import Listener
from strandline.node.log_dirs import format_dirs
from strandline.node.node import Node
from strandline.records.batch import BatchBuilder, decode
from strandline.records.compression import CompressionType
from strandline.records.header import iterate
from strandline.replica.partition import Partition
from strandline.runtime.logging import JsonLogger
from strandline.sim.world import World
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header

HOST, PORT = "n1", 9092
PRODUCE, FETCH, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 18, 19, 20
Produce, Fetch, Create, Delete = (messages.request(key) for key in (PRODUCE, FETCH, CREATE_TOPICS, DELETE_TOPICS))


def framed(api_key: int, version: int, body: bytes, correlation_id: int = 1) -> bytes:
    payload = request_header(api_key, version, correlation_id, "test") + body
    return len(payload).to_bytes(4, "big") + payload


def frame(api_key: int, version: int, message: Any, correlation_id: int = 1) -> bytes:
    return framed(api_key, version, messages.encode_request(api_key, version, message), correlation_id)


def api_versions(correlation_id: int = 1, tail_bytes: int = 0) -> bytes:
    return framed(API_VERSIONS, 0, bytes(tail_bytes), correlation_id)


def batch(*values: bytes, timestamp: int = 1_000, codec: CompressionType = CompressionType.NONE) -> bytes:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value, timestamp=timestamp)
    return bytes(builder.build(codec=codec))


def produce(
    value: bytes,
    correlation_id: int = 1,
    *,
    topic: str = "t",
    acks: int = -1,
    timeout_ms: int = 60_000,
    codec: CompressionType = CompressionType.NONE,
) -> bytes:
    data = Produce.PartitionProduceData(index=0, records=batch(value, codec=codec))
    topic_data = Produce.TopicProduceData(name=topic, partition_data=[data])
    return frame(PRODUCE, 9, Produce(acks=acks, timeout_ms=timeout_ms, topic_data=[topic_data]), correlation_id)


def fetch(
    offset: int,
    correlation_id: int = 1,
    *,
    topic: str = "t",
    max_wait_ms: int = 0,
    max_bytes: int = 1 << 20,
    min_bytes: int = 1,
) -> bytes:
    wanted = Fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [Fetch.FetchTopic(topic=topic, partitions=[wanted])]
    request = Fetch(max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics)
    return frame(FETCH, 12, request, correlation_id)


def values_in(data: bytes) -> list[bytes]:
    view = memoryview(data)
    return [record.value or b"" for at, header in iterate(data) for record in decode(view[at : at + header.size_bytes])]


def values_of(partition: Partition) -> list[bytes]:
    segment = partition.log.segments.active
    return values_in(segment.file.read_blocking(0, segment.size))


def fetched(reply: bytes) -> tuple[int, list[bytes]]:
    """Error code and values of the only partition in a Fetch reply without its correlation id."""
    [answer] = messages.decode_response(FETCH, 12, reply, 1).responses[0].partitions
    return answer.error_code, values_in(answer.records or b"")


class End:
    """A transport without a network: what is fed to it was sent by the peer, what is written to it the peer has."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sent = bytearray()
        self.sent_bytes = 0
        self.keep = True
        self.closed = self.reading_paused = False
        self.high: int | None = None
        self.unread_bytes: int | None = None
        """Set to 0 for a peer that does not read: from then on what is written piles up."""
        connection.connection_made(self)  # type: ignore[arg-type]

    def feed(self, data: bytes) -> None:
        left = self.offer(data)
        assert not left or self.closed, "nothing is read while reading is paused"

    def offer(self, data: bytes) -> bytes:
        """Send until the node stops reading; what it has not read."""
        view = memoryview(data)
        while len(view) and not self.closed and not self.reading_paused:
            room = self.connection.get_buffer(-1)
            size = min(len(room), len(view))
            room[:size] = view[:size]
            view = view[size:]
            self.connection.buffer_updated(size)
        return bytes(view)

    def replies(self) -> list[tuple[int, bytes]]:
        """Correlation id and rest of each reply so far; they are forgotten here."""
        replies = []
        while self.sent:
            size = int.from_bytes(self.sent[:4], "big")
            assert len(self.sent) >= 4 + size, "half a reply"
            replies.append((int.from_bytes(self.sent[4:8], "big"), bytes(self.sent[8 : 4 + size])))
            del self.sent[: 4 + size]
        return replies

    def ids(self) -> list[int]:
        return [correlation_id for correlation_id, _ in self.replies()]

    def lose(self) -> None:
        if not self.closed:
            self.closed = True
            self.connection.connection_lost(None)

    def read_all(self) -> None:
        """The peer reads again, and has read everything."""
        self.unread_bytes = None
        self.connection.resume_writing()

    # What a connection calls

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, buffers: Any) -> None:
        for buffer in buffers:
            if self.keep:
                self.sent += buffer
            self.sent_bytes += len(buffer)
            if self.unread_bytes is not None:
                self.unread_bytes += len(buffer)
        self._watch_high_water()

    def close(self) -> None:
        self.lose()

    abort = close

    def set_write_buffer_limits(self, high: int) -> None:
        self.high = high
        self._watch_high_water()

    def _watch_high_water(self) -> None:
        if self.unread_bytes is not None and self.high is not None and self.unread_bytes > self.high:
            self.connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes or 0

    def pause_reading(self) -> None:
        assert not self.reading_paused
        self.reading_paused = True

    def resume_reading(self) -> None:
        assert self.reading_paused
        self.reading_paused = False

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 1) if name == "peername" else None


class Stage:
    """The node, as the test's own coroutine sees it: both run in the same process of the simulated host."""

    def __init__(self, world: World, settings: dict[str, str]) -> None:
        self.world = world
        self.host = world.node(HOST)
        self.disk = self.host.disk
        self.disk.cold_probability = 0.0
        self.errors: list[str] = []
        self.lines: list[str] = []
        self.texts = {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{HOST}:9093",
            "listeners": f"PLAINTEXT://{HOST}:{PORT},CONTROLLER://{HOST}:9093",
            "log.dirs": "/data",
            **settings,
        }
        self.config = NodeConfig.build(of(self.texts), insecure=True)
        self.node: Node

    async def start(self) -> None:
        format_dirs(self.disk, ["/data"], str(Uuid.draw(self.host.randomness)), 1, self.host.randomness)
        logger = JsonLogger(self.lines.append, 20)
        self.node = Node(self.config, self.disk, self.host.clock, self.host.randomness, logger)
        await self.node.start()

    @property
    def listener(self) -> Listener:
        return next(listener for listener in self.node.parts.listeners if listener.config.name == "PLAINTEXT")

    def connect(self, kind: type[Connection] = Connection) -> End:
        return End(kind(self.listener, self.node.context, "PLAINTEXT", self.listener.resources))

    async def call(self, api_key: int, version: int, message: Any) -> Any:
        """A request on a connection of its own, and its reply."""
        end = self.connect()
        end.feed(frame(api_key, version, message))
        for _ in range(10_000):
            if end.sent:
                break
            await asyncio.sleep(0.001)
        reply = bytes(end.sent)
        end.lose()
        _, position = read_response_header(api_key, version, reply, 4)
        return messages.decode_response(api_key, version, reply, position)

    async def create(self, name: str = "t", **configs: str) -> Partition:
        topic = Create.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        topic.configs = [
            Create.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ]
        reply = await self.call(CREATE_TOPICS, 7, Create(topics=[topic], timeout_ms=1000))
        assert reply.topics[0].error_code == 0, reply
        return self.partition(name)

    def partition(self, name: str = "t") -> Partition:
        return self.node.context.hosted.by_name[name, 0]

    def flushes_take(self, seconds: float) -> None:
        self.disk.sync_s = (seconds, seconds)

    def logged(self, text: str) -> int:
        return sum(text in line for line in self.lines)


Story = Callable[[Stage], Coroutine[Any, Any, None]]
Play = Callable[..., None]


@pytest.fixture
def play() -> Iterator[Play]:
    """Runs a story against a node. Exceptions that reach the loop fail the test."""
    worlds = []

    def run(story: Story, **settings: str) -> None:
        world = World(1)
        worlds.append(world)
        stage = Stage(world, {name.replace("_", "."): value for name, value in settings.items()})

        async def body() -> None:
            await stage.start()
            await story(stage)

        async def main() -> None:
            await stage.host.spawn(body())

        world.run(main())

    yield run
    for world in worlds:
        world.close()
