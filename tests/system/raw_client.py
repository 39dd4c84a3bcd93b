"""A client without manners: frames of any bytes on a plain socket, and beside it an honest one that must not notice.

Always true: nothing here waits longer than TIMEOUT_S.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strandline.records.batch import BatchBuilder
from strandline.wire import messages
from strandline.wire.headers import read_response_header, request_header
from tests.system.server import eventually

TIMEOUT_S = 60.0
PRODUCE, CREATE_TOPICS = 0, 19


class RawClient:
    def __init__(self, port: int, client_id: str | None = "raw") -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._client_id = client_id
        self._count = 0

    def ask_bytes(self, api_key: int, version: int, body: bytes) -> bytes | None:
        """The body of the reply; None if the connection was closed instead."""
        try:
            self.send(api_key, version, body)
            (size,) = struct.unpack(">i", self._read(4))
            reply = self._read(size)
        except (EOFError, ConnectionError):
            return None
        return reply[read_response_header(api_key, version, reply)[1] :]

    def send(self, api_key: int, version: int, body: bytes) -> None:
        self._count += 1
        frame = request_header(api_key, version, self._count, self._client_id) + body
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def read_some(self) -> None:
        """The beginning of a reply is there."""
        self._read(4)

    def ask(self, api_key: int, version: int, **fields: Any) -> Any:
        """The reply to a request of these fields."""
        request = messages.request(api_key)(**fields)
        reply = self.ask_bytes(api_key, version, messages.encode_request(api_key, version, request))
        assert reply is not None, "the connection was closed"
        return messages.decode_response(api_key, version, reply)

    def _read(self, size: int) -> bytes:
        parts, left = [], size
        while left:
            part = self._socket.recv(min(left, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        topic = messages.request(CREATE_TOPICS).CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=-1, assignments=[], configs=[]
        )
        (created,) = self.ask(CREATE_TOPICS, 5, topics=[topic], timeout_ms=30_000).topics
        assert created.error_code in (0, 36), created.error_message

    def produce(self, topic: str) -> int:
        """The error code of an acks=all write to partition 0."""
        builder = BatchBuilder()
        builder.append(b"k", b"v" * 100, timestamp=1)
        batch, name = bytes(builder.build()), topic.encode()
        body = struct.pack(">hhiih", -1, -1, 30_000, 1, len(name)) + name
        body += struct.pack(">iii", 1, 0, len(batch)) + batch
        reply = self.ask_bytes(PRODUCE, 7, body)
        if reply is None:
            raise EOFError("the connection was closed")
        code: int = struct.unpack_from(">h", reply, 4 + 2 + len(name) + 4 + 4)[0]
        return code

    def close(self) -> None:
        self._socket.close()


class HonestClient(threading.Thread):
    """Writes with acks=all, one record after the other, on one connection that must never break."""

    def __init__(self, port: int, topic: str) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._topic = topic
        self._over = threading.Event()
        self.served = 0
        self.failures: list[str] = []

    def run(self) -> None:
        try:
            client = RawClient(self._port, "honest")
            while not self._over.wait(0.01):
                code = client.produce(self._topic)
                if code:
                    self.failures.append(f"error {code}")
                self.served += 1
            client.close()
        except (OSError, EOFError) as error:
            self.failures.append(repr(error))

    def await_more(self) -> None:
        """Until it was served once more than by now."""
        before = self.served
        eventually(lambda: self.served > before or bool(self.failures), "the honest client is served", TIMEOUT_S)

    def stop(self) -> None:
        self._over.set()
        self.join(TIMEOUT_S)


@contextmanager
def honest_client(port: int, topic: str) -> Iterator[HonestClient]:
    """One that is served before, all along and after: fails if it was not."""
    client = HonestClient(port, topic)
    client.start()
    try:
        client.await_more()
        yield client
        client.await_more()
    finally:
        client.stop()
    assert not client.failures, client.failures
