"""A peer on a plain socket, which sends what it likes, and reads only if it wants to.

Always true: every wait has a timeout; nothing but loopback is connected to.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strandline.records.batch import BatchBuilder
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header

HOST = "127.0.0.1"
TIMEOUT_S = 30.0
PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS = 0, 1, 3, 18, 19
SIZE = struct.Struct(">i")


class RawPeer:
    def __init__(self, port: int, *, timeout_s: float = TIMEOUT_S, receive_bytes: int | None = None) -> None:
        """`receive_bytes`: the system's buffer for what was sent to it and not read."""
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect((HOST, port))
        self.socket.settimeout(timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0

    def frame(self, api_key: int, version: int, body: bytes) -> bytes:
        self._correlation_id += 1
        data = request_header(api_key, version, self._correlation_id, "peer") + body
        return SIZE.pack(len(data)) + data

    def request(self, api_key: int, version: int, message: Any) -> bytes:
        return self.frame(api_key, version, messages.encode_request(api_key, version, message))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """The next reply. EOFError if the node closed the connection."""
        return self._exactly(SIZE.unpack(self._exactly(SIZE.size))[0])

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise EOFError(f"closed after {len(parts)} of {size} bytes")
            parts += part
        return bytes(parts)

    def call(self, api_key: int, version: int, message: Any) -> Any:
        self.send(self.request(api_key, version, message))
        reply = self.receive()
        _, position = read_response_header(api_key, version, reply)
        return messages.decode_response(api_key, version, reply, position)

    def is_closed(self) -> bool:
        """Whether the node ended the connection; what it sent meanwhile is thrown away."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(1 << 20):
                pass
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        self.socket.close()


@contextmanager
def closing(peers: list[RawPeer]) -> Iterator[list[RawPeer]]:
    """The peers that are in the list by then are closed at the end."""
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()


def batch(*values: bytes) -> bytes:
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)  # older ones would be deleted by retention
    for value in values:
        builder.append(None, value, timestamp=now_ms)
    return bytes(builder.build())


def produce(topic: str, records: bytes, acks: int = -1) -> Any:
    """The body of a Produce of one batch into the first partition."""
    request = messages.request(PRODUCE)
    data = request.PartitionProduceData(index=0, records=records)
    topics = [request.TopicProduceData(name=topic, partition_data=[data])]
    return request(acks=acks, timeout_ms=10_000, topic_data=topics)


def fetch(topic: str, offset: int = 0, *, max_bytes: int = 55 << 20, max_wait_ms: int = 500) -> Any:
    request = messages.request(FETCH)
    wanted = request.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [request.FetchTopic(topic=topic, partitions=[wanted])]
    return request(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=max_bytes, topics=topics)


def all_topics() -> Any:
    return messages.request(METADATA)(topics=None, allow_auto_topic_creation=False)


def create_topic(peer: RawPeer, name: str, partitions: int = 1, **configs: str) -> int:
    """Its error code."""
    request = messages.request(CREATE_TOPICS)
    topic = request.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    topic.configs = [
        request.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
    ]
    reply = peer.call(CREATE_TOPICS, 7, request(topics=[topic], timeout_ms=20_000))
    code: int = reply.topics[0].error_code
    return code


def produced(peer: RawPeer, topic: str, records: bytes) -> int:
    """The error code of one Produce."""
    reply = peer.call(PRODUCE, 9, produce(topic, records))
    code: int = reply.responses[0].partition_responses[0].error_code
    return code
