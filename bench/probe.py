"""Is a broker there, and who is the active controller? One request on a socket of its own, so that nothing but the broker decides
when the answer comes.

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
DESCRIBE_QUORUM, QUORUM_VERSION = 55, 0
_QUORUM_TOPIC = b"__cluster_metadata"
# In the compact notation lengths are one more than they are, and headers and structs end with an empty set of tags.
_QUORUM_NAME = bytes((len(_QUORUM_TOPIC) + 1,)) + _QUORUM_TOPIC
_QUORUM_REQUEST = (
    struct.pack(">hhih", DESCRIBE_QUORUM, QUORUM_VERSION, CORRELATION_ID, -1)
    + b"\x00"
    + (b"\x02" + _QUORUM_NAME + b"\x02" + struct.pack(">i", 0) + b"\x00\x00\x00")
)
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


def active_controller(address: str) -> int | None:
    """The leader of the quorum, as the broker at this address knows it from that leader; None if it does not know now."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=ANSWER_TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(_QUORUM_REQUEST)) + _QUORUM_REQUEST)
            (size,) = struct.unpack(">i", _receive(connection, 4))
            reply = _receive(connection, size)
    except OSError:
        return None
    # Correlation id, tags, error code; then one topic with one partition: its index, its error code and its leader.
    expected = b"\x02" + _QUORUM_NAME + b"\x02"
    if reply[4:7] != b"\x00\x00\x00" or reply[7 : 7 + len(expected)] != expected:
        return None
    _index, error_code, leader = struct.unpack_from(">ihi", reply, 7 + len(expected))
    return int(leader) if error_code == 0 and leader >= 0 else None


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
