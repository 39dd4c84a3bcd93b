"""One real node, and connections to it without sockets: thousands of requests a second, and every exception in sight.

Always true: a request ends in a reply that can be read, in a closed connection, or in a wait that the request asked for;
anything else is a failure, kept with the bytes that caused it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strandline.api.table import BROKER_APIS, Api
from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.controller import topics as topics_controller
from strandline.ids import Uuid
from strandline.log.recovery import load
from strandline.node.connection import Connection
from strandline.node.log_dirs import format_dirs
from strandline.node.node import Node
from strandline.ports import Disk
from strandline.records.batch import BatchBuilder, decode
from strandline.records.header import iterate
from strandline.runtime.clock import SystemClock
from strandline.runtime.disk import FileDisk
from strandline.runtime.logging import JsonLogger
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import read_request_header, read_response_header, request_header

from .batches import Batches
from .samples import Samples

BACK_WITHIN_S = 10.0
REPLY_TIMEOUT_S = 10.0
"""A reply that waits for the device may take as long on a busy machine; one that waits for nothing is there at once."""
PARTITIONS_PER_REQUEST_MAX = 20
"""Creating thousands of partitions is allowed, but takes seconds each time a flipped bit asks for it."""
MEMORY_GROWTH_BYTES_MAX = 64 * 1024 * 1024
PRODUCE, FETCH, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 19, 20
JOIN_GROUP, SYNC_GROUP = 11, 14
TOPICS = {
    "plain": {},
    "__consumer_offsets": {"cleanup.policy": "compact", "segment.bytes": "1048576"},
    "compacted": {"cleanup.policy": "compact"},
    "flushed": {"flush.messages": "1"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    **{f"to-{codec}": {"compression.type": codec} for codec in ("gzip", "snappy", "lz4", "zstd", "uncompressed")},
}


class Pipe:
    """A transport that takes everything and remembers it."""

    def __init__(self) -> None:
        self.protocol: Connection | None = None
        self.replies = bytearray()
        self.closed = self._is_paused = False
        self._unread = memoryview(b"")

    def open(self, connection: Connection) -> Pipe:
        self.protocol = connection
        connection.connection_made(self)  # type: ignore[arg-type]
        return self

    def feed(self, data: bytes) -> None:
        """Bytes from the peer, as many at a time as the connection has room for."""
        self._unread = memoryview(bytes(self._unread) + data)
        self._push()

    def _push(self) -> None:
        while len(self._unread) and not self.closed and not self._is_paused:
            assert self.protocol is not None
            buffer = self.protocol.get_buffer(-1)
            size = min(len(buffer), len(self._unread))
            buffer[:size] = self._unread[:size]
            self._unread = self._unread[size:]
            self.protocol.buffer_updated(size)

    def take(self) -> bytes | None:
        """The next whole reply, without its size."""
        size = int.from_bytes(self.replies[:4], "big")
        if len(self.replies) < 4 or len(self.replies) < 4 + size:
            return None
        reply = bytes(self.replies[4 : 4 + size])
        del self.replies[: 4 + size]
        return reply

    def lose(self) -> None:
        """The peer is gone."""
        if not self.closed:
            self.closed = True
            assert self.protocol is not None
            self.protocol.connection_lost(None)

    # What a connection calls

    def write(self, data: Any) -> None:
        self.replies += data

    def writelines(self, buffers: Any) -> None:
        for buffer in buffers:
            self.replies += buffer

    def close(self) -> None:
        self.lose()

    abort = close

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        asyncio.get_running_loop().call_soon(self._push)

    def get_extra_info(self, name: str) -> object:
        return ("127.0.0.1", 1) if name == "peername" else None


@dataclass(frozen=True, slots=True)
class Failure:
    what: str
    api: str
    data: bytes
    error: str


class Stage:
    """A node under fire. It is the owner of its connections, so that nothing they report is missed."""

    listener = "PLAINTEXT"
    apis: Mapping[int, Api] = BROKER_APIS
    sound_share = 0.0
    """Of the requests, so many are not broken; what they say may be odd enough."""
    kept: frozenset[str] = frozenset()
    """Topics that stay as requests leave them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.failures: list[Failure] = []
        self.outcomes: Counter[str] = Counter()
        self._sending: tuple[str, bytes] = ("", b"")
        self._connection: Pipe | None = None
        self._disk: Disk = FileDisk()
        self.node: Node

    def cases(self) -> list[tuple[int, int]]:
        """API keys and versions to be tried."""
        return [(api.key, version) for api in self.apis.values() for version in self.versions_of(api)]

    def versions_of(self, api: Api) -> range:
        """Those, too, that Kafka may still change."""
        return api.versions_served(unstable=True)

    def samples(self, chance: random.Random) -> Samples:
        return Samples(chance, self.topics, Batches(chance, int(time.time() * 1000)))

    def settings(self) -> dict[str, str]:
        return {
            "node.id": "1",
            "process.roles": "broker,controller",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:0",
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
            "log.dirs": str(self.root),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "100",
            "unstable.api.versions.enable": "true",
            "transaction.two.phase.commit.enable": "true",
        }

    def format(self, randomness: random.Random) -> None:
        format_dirs(self._disk, [str(self.root)], str(Uuid.draw(randomness)), 1, randomness)

    async def start(self) -> None:
        randomness = random.Random(0)
        self.format(randomness)
        self._partitions_max = topics_controller.PARTITIONS_PER_REQUEST_MAX
        topics_controller.PARTITIONS_PER_REQUEST_MAX = PARTITIONS_PER_REQUEST_MAX
        logger = JsonLogger(self._logged, 40)
        self.node = Node(NodeConfig.build(of(self.settings())), self._disk, SystemClock(), randomness, logger)
        await self.node.start()
        asyncio.get_running_loop().set_exception_handler(self._escaped)
        await self.tidy()

    async def stop(self) -> None:
        if self._connection is not None:
            self._connection.lose()
        await self.node.stop()
        topics_controller.PARTITIONS_PER_REQUEST_MAX = self._partitions_max

    # What connections and the loop tell

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def refused(self, connection: Connection, reason: str) -> None: ...

    def failed(self, connection: Connection, error: Exception) -> None:
        if not isinstance(error, ConnectionError):
            self._fail("an exception reached the connection", error)

    def _escaped(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._fail(f"an exception reached the loop: {context.get('message')}", context.get("exception"))

    def _logged(self, line: str) -> None:
        self._fail(f"the node logged: {line}", None)

    def _fail(self, what: str, error: BaseException | None) -> None:
        text = "" if error is None else "".join(traceback.format_exception(error))
        self.failures.append(Failure(what, *self._sending, text))

    # Sending

    def connect(self, listener: str | None = None) -> Pipe:
        return Pipe().open(Connection(self, self.node.context, listener or self.listener))

    async def send(self, api_key: int, version: int, data: bytes, *, whole: bool) -> None:
        """Send a frame that may be broken in any way, and see what becomes of it. `whole`: its size is true."""
        self._sending = (f"{self.apis[api_key].name} v{version}", data)
        pipe = self._connection
        if pipe is None or pipe.closed:
            pipe = self._connection = self.connect()
        try:
            pipe.feed(data)
        except Exception as error:
            self._fail("an exception reached the transport", error)
            pipe.lose()
        outcome = await self._outcome(pipe, data)
        self.outcomes[outcome] += 1
        if not whole or outcome == "waits":
            pipe.lose()
        pipe.replies.clear()

    async def _outcome(self, pipe: Pipe, data: bytes) -> str:
        assert pipe.protocol is not None
        deadline = 0.0
        while not pipe.closed and not pipe.protocol.is_idle:
            now = time.monotonic()
            deadline = deadline or now + REPLY_TIMEOUT_S
            # Work handed to another thread takes its time; a Produce or Fetch may have asked for a long wait, and a member
            # waits for the others.
            await asyncio.sleep(0.0005)
            if self._may_wait(data) and now > deadline - REPLY_TIMEOUT_S + 0.002:
                return "waits"
            if now > deadline:
                self._fail(f"no reply within {REPLY_TIMEOUT_S:.0f} s", None)
                pipe.lose()
        if pipe.closed:
            return "closed"
        reply = pipe.take()
        if reply is None:
            return "no reply"
        self._check(reply, data)
        return "reply"

    def _may_wait(self, data: bytes) -> bool:
        waiting = (PRODUCE, FETCH, JOIN_GROUP, SYNC_GROUP)
        return int.from_bytes(data[4:6], "big") in waiting or len(data) > 4 + int.from_bytes(data[:4], "big")

    def _check(self, reply: bytes, data: bytes) -> None:
        """A reply must be one that a client can read."""
        try:
            request = read_request_header(data, 4)
            version = request.api_version if request.api_version in self.versions_of(self.apis[request.api_key]) else 0
            correlation_id, position = read_response_header(request.api_key, version, reply)
            assert correlation_id == request.correlation_id, "another request's correlation id"
            self.read(request.api_key, messages.decode_response(request.api_key, version, reply, position))
        except (MalformedRequest, AssertionError) as error:
            self._fail("a reply that cannot be read", error)

    def read(self, api_key: int, reply: Any) -> None:
        """What a broken request was answered."""

    def port(self, listener: str) -> int:
        return next(each.port for each in self.node.parts.listeners if each.config.name == listener)

    async def send_over_a_socket(self, data: bytes) -> None:
        """The same by way of the real listener: it must answer, hang up or wait, and stay there for others."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port(self.listener))
        try:
            writer.write(data)
            writer.write_eof()
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                await reader.read()
            self.outcomes["socket"] += 1
        except ConnectionError:
            self.outcomes["socket"] += 1
        except TimeoutError as error:
            self._sending = ("socket", data)
            self._fail(f"not closed within {REPLY_TIMEOUT_S:.0f} s after the peer's end", error)
        finally:
            writer.close()

    async def call(self, api_key: int, version: int, message: Any) -> Any:
        """A sound request of a client, and its reply."""
        pipe = self.connect("PLAINTEXT")
        header = request_header(api_key, version, 1, "clean")
        body = messages.encode_request(api_key, version, message)
        pipe.feed((len(header) + len(body)).to_bytes(4, "big") + header + body)
        deadline = time.monotonic() + REPLY_TIMEOUT_S
        while (reply := pipe.take()) is None:
            assert not pipe.closed, f"API {api_key} was not answered"
            assert time.monotonic() < deadline, f"API {api_key} was not answered in time"
            await asyncio.sleep(0.0005)
        pipe.lose()
        _, position = read_response_header(api_key, version, reply)
        return messages.decode_response(api_key, version, reply, position)

    # Looking after it

    @property
    def topics(self) -> dict[str, Uuid]:
        image = self.node.context.metadata.image()
        return {name: image.topics[name].topic_id for name in TOPICS if name in image.topics}

    async def tidy(self) -> None:
        """Bring back the topics that requests deleted or changed, and remove those that they made."""
        # A request that unregisters the broker is a sound one: it registers again by itself.
        await self.node.context.metadata.until(
            lambda image: 1 in image.brokers and image.brokers[1].active, BACK_WITHIN_S
        )
        image = self.node.context.metadata.image()
        doomed = [
            name
            for name, topic in image.topics.items()
            if name not in self.kept
            if name not in TOPICS
            or dict(image.config(2, name)) != TOPICS[name]
            or len(topic.partitions) != 1
            or topic.partitions[0].leader != 1
        ]
        if doomed:
            Delete = messages.request(DELETE_TOPICS)
            topics = [Delete.DeleteTopicState(name=name) for name in doomed]
            await self.call(DELETE_TOPICS, 6, Delete(topics=topics, timeout_ms=1000))
        present = self.node.context.metadata.image().topics
        for name, configs in TOPICS.items():
            if name not in present:
                await self._create(name, configs)

    async def _create(self, name: str, configs: dict[str, str]) -> None:
        Create = messages.request(CREATE_TOPICS)
        topic = Create.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        topic.configs = [Create.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        reply = await self.call(CREATE_TOPICS, 7, Create(topics=[topic], timeout_ms=1000))
        assert reply.topics[0].error_code == 0, reply

    async def check_clean(self) -> None:
        """After all of it a new topic takes a record and gives it back."""
        name = "clean"
        await self.tidy()
        await self._create(name, {})
        Produce, Fetch = messages.request(PRODUCE), messages.request(FETCH)
        builder = BatchBuilder()
        builder.append(b"key", b"value", timestamp=int(time.time() * 1000))
        data = Produce.PartitionProduceData(index=0, records=bytes(builder.build()))
        topic = Produce.TopicProduceData(name=name, partition_data=[data])
        reply = await self.call(PRODUCE, 9, Produce(acks=-1, timeout_ms=1000, topic_data=[topic]))
        answer = reply.responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, 0), reply
        wanted = Fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        fetch = Fetch(max_wait_ms=100, min_bytes=1, topics=[Fetch.FetchTopic(topic=name, partitions=[wanted])])
        reply = await self.call(FETCH, 12, fetch)
        [record] = decode(reply.responses[0].partitions[0].records)
        assert (record.key, record.value) == (b"key", b"value")
        await self.tidy()

    def check_logs(self) -> int:
        """After the node stopped: every log is sound to its end; the number of batches in them."""
        batches = 0
        with _disk() as disk:
            for directory in sorted(self.root.glob("*-0")):
                topic = directory.name.removesuffix("-0")
                if topic not in TOPICS:
                    continue
                config = self.node.config.topic_config(TOPICS[topic])
                recovered = load(disk, str(directory), config, clean=False)
                assert recovered.truncated_bytes == 0, f"{topic}: {recovered.truncated_bytes} bytes had to be cut off"
                opened = topic == "compacted"
                for segment in recovered.log.segments:
                    data = segment.file.read_blocking(0, segment.size)
                    for position, header in iterate(data):
                        batches += 1
                        if opened:
                            records = decode(data[position : position + header.size_bytes])
                            assert sum(1 for _ in records) == header.records_count
                recovered.log.close()
        return batches


@contextmanager
def _disk() -> Iterator[FileDisk]:
    disk = FileDisk()
    try:
        yield disk
    finally:
        disk.close()


def memory_bytes() -> int:
    """What the process holds, once garbage is gone."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
