"""A broker of one partition made up for tests:
a plain function from a frame to its reply, and a protocol that serves it.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from strandline.records.batch import BatchBuilder
from strandline.wire import messages
from strandline.wire.headers import read_request_header, response_header

from .core.broker import TOPIC_ID, PartitionLog, metadata

SILENCE = b""
SERVED = {0: (3, 13), 1: (4, 17), 2: (1, 10), 3: (0, 13), 18: (0, 4), 22: (0, 5), 23: (2, 4)}


class Broker:
    """`lose_replies` names the Produce requests, by number,
    whose reply is lost with the connection after the append.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0, lose_replies: tuple[int, ...] = ()) -> None:
        self.log = PartitionLog()
        self.host, self.port = host, port
        self.connections = 0
        self.open_connections: dict[asyncio.Protocol, asyncio.Transport] = {}
        self.produced: list[bytes] = []
        self._lose_replies = lose_replies

    def reply(self, frame: bytes) -> bytes | None:
        """None closes the connection; no bytes are no answer."""
        header = read_request_header(frame)
        key, version = header.api_key, header.api_version
        request = messages.decode_request(key, version, frame, header.body_position)
        answer = self.answerers()[key](request)
        if answer is None or answer is SILENCE:
            return answer
        body = response_header(key, version, header.correlation_id) + messages.encode_response(key, version, answer)
        return struct.pack(">i", len(body)) + body

    def answerers(self) -> dict[int, Callable[[Any], Any]]:
        """By API."""
        return {
            0: self.produce,
            1: self.fetch,
            2: self.offsets,
            3: self.metadata,
            18: self.versions,
            22: self.init,
            23: self.epochs,
        }

    def versions(self, _: Any) -> Any:
        R = messages.response(18)
        return R(api_keys=[R.ApiVersion(api_key=k, min_version=a, max_version=b) for k, (a, b) in SERVED.items()])

    def metadata(self, _: Any) -> Any:
        answer = metadata({0: (1, 0)}, nodes=(1,))
        answer.brokers[0].host, answer.brokers[0].port = self.host, self.port
        return answer

    def init(self, _: Any) -> Any:
        return messages.response(22)(producer_id=5, producer_epoch=0)

    def produce(self, request: Any) -> Any:
        ((partition,),) = [topic.partition_data for topic in request.topic_data]
        self.produced.append(partition.records)
        code, offset = self.log.append(partition.records)
        if len(self.produced) in self._lose_replies:
            return None
        R = messages.response(0)
        answer = R.PartitionProduceResponse(index=0, error_code=code, base_offset=offset)
        return R(responses=[R.TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=[answer])])

    def offsets(self, request: Any) -> Any:
        R = messages.response(2)
        ((asked,),) = [topic.partitions for topic in request.topics]
        offset = 0 if asked.timestamp == -2 else len(self.log.values)
        answer = R.ListOffsetsPartitionResponse(partition_index=0, offset=offset, leader_epoch=0)
        return R(topics=[R.ListOffsetsTopicResponse(name="t", partitions=[answer])])

    def epochs(self, _: Any) -> Any:
        R = messages.response(23)
        answer = R.EpochEndOffset(partition=0, leader_epoch=0, end_offset=len(self.log.values))
        return R(topics=[R.OffsetForLeaderTopicResult(topic="t", partitions=[answer])])

    def fetch(self, request: Any) -> Any:
        R = messages.response(1)
        answers = []
        for topic in request.topics:
            for asked in topic.partitions:
                records = b""
                if asked.fetch_offset < len(self.log.values):
                    builder = BatchBuilder()
                    for value in self.log.values[asked.fetch_offset :]:
                        builder.append(None, value, (), 0)
                    records = bytes(builder.build(base_offset=asked.fetch_offset, leader_epoch=0))
                answers.append(R.PartitionData(partition_index=asked.partition, records=records))
        return R(responses=[R.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=answers)])


class Served(asyncio.Protocol):
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._data = b""
        broker.connections += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._broker.open_connections[self] = self._transport

    def connection_lost(self, error: Exception | None) -> None:
        del self._broker.open_connections[self]

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (end := 4 + int.from_bytes(self._data[:4], "big")):
            frame, self._data = self._data[4:end], self._data[end:]
            reply = self._broker.reply(frame)
            if reply is None:
                self._transport.abort()
                return
            self._transport.write(reply)


async def serve(broker: Broker, tls: ssl.SSLContext | None = None) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    options: dict[str, Any] = {} if tls is None else {"ssl": tls}
    server = await loop.create_server(lambda: Served(broker), broker.host, broker.port, **options)
    if not broker.port:
        broker.port = server.sockets[0].getsockname()[1]
    return server


@contextmanager
def serving_beside(broker: Broker, tls: ssl.SSLContext | None = None) -> Iterator[None]:
    """Serve from a thread, for a client that blocks."""
    loop = asyncio.new_event_loop()
    with running_beside(broker, loop, [loop.run_until_complete(serve(broker, tls))]):
        yield


@contextmanager
def running_beside(broker: Broker, loop: asyncio.AbstractEventLoop, servers: list[asyncio.Server]) -> Iterator[None]:
    """Run the loop in a thread; nothing of it is left open at the end."""
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for server in servers:
            server.close()
            loop.run_until_complete(server.wait_closed())
        while broker.open_connections:
            for transport in broker.open_connections.values():
                transport.abort()
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()
