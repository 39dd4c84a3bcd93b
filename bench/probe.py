"""Is a broker there? One Metadata request on a socket of its own, so that nothing but the broker decides when the answer comes.

A client library would wait between its attempts to connect, and that wait would be measured as the broker's start.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

METADATA, VERSION, CORRELATION_ID = 3, 1, 1
# Length, API key, version, correlation id, no client id, and an empty list of topics: only the brokers are asked for.
_REQUEST = struct.pack(">ihhihi", 14, METADATA, VERSION, CORRELATION_ID, -1, 0)
ANSWER_TIMEOUT_S = 1.0
RETRY_S = 0.01


def brokers_known(address: str) -> int:
    """How many brokers the one at this address knows of; 0 if it does not answer."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S) as connection:
            connection.sendall(_REQUEST)
            correlation_id, brokers = struct.unpack(">4xii", _receive(connection, 12))
    except OSError:
        return 0
    return int(brokers) if correlation_id == CORRELATION_ID else 0


def await_brokers(address: str, count: int, timeout_s: float, check: Callable[[], None]) -> None:
    """Returns when the broker at this address knows `count` brokers. `check` raises if waiting is in vain."""
    deadline = time.monotonic() + timeout_s
    while brokers_known(address) < count:
        check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{address} did not answer with {count} brokers within {timeout_s:.0f} s")
        time.sleep(RETRY_S)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        if not chunk:
            raise ConnectionError("closed before the answer was complete")
        received += chunk
    return received
