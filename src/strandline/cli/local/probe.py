"""Is a broker answering, and does a controller lead? Asked with small requests written by hand, so that asking costs no imports.

Always true: an answer is believed only if it comes from the cluster that was expected.
"""

from __future__ import annotations

import socket
import struct

API_VERSIONS, METADATA, DESCRIBE_QUORUM = 18, 3, 55
METADATA_VERSION = 2
"""The first version that names the cluster."""
DESCRIBE_QUORUM_VERSION = 0
METADATA_TOPIC = b"__cluster_metadata"
FRAME_BYTES_MAX = 1 << 20
_CLIENT = b"strandline-probe"


class Answer:
    """Brokers of the cluster by id, and the cluster's id."""

    def __init__(self, cluster_id: str | None, brokers: dict[int, str]) -> None:
        self.cluster_id = cluster_id
        self.brokers = brokers


def ask(host: str, port: int, timeout_s: float = 1.0) -> Answer | None:
    """What the broker there says of its cluster, or None if it does not answer."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            _call(connection, API_VERSIONS, 0, b"")
            return _read_metadata(_call(connection, METADATA, METADATA_VERSION, struct.pack(">i", 0)))
    except (OSError, ValueError, struct.error, IndexError):
        return None


def leads(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Whether the controller that listens there is the active one: only that one describes the quorum."""
    # One topic with one partition, 0, in the compact notation: lengths are one more than they are, and structs end with no tags.
    topic = bytes((len(METADATA_TOPIC) + 1,)) + METADATA_TOPIC
    asked = b"\x02" + topic + b"\x02" + struct.pack(">i", 0) + b"\x00" + b"\x00" + b"\x00"
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            reply = _call(connection, DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION, b"\x00" + asked)
            return _describes_quorum(reply[1:], topic)
    except (OSError, ValueError, struct.error, IndexError):
        return False


def _describes_quorum(reply: bytes, topic: bytes) -> bool:
    """No error at the top, nor for the only partition of the only topic."""
    (error_code,) = struct.unpack_from(">h", reply)
    if error_code or reply[2 : 4 + len(topic)] != b"\x02" + topic + b"\x02":
        return False
    _index, error_code = struct.unpack_from(">ih", reply, 4 + len(topic))
    return bool(error_code == 0)


def _call(connection: socket.socket, api_key: int, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api_key, version, 1, len(_CLIENT)) + _CLIENT
    connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if not 4 <= size <= FRAME_BYTES_MAX:
        raise ValueError(f"a reply of {size} bytes")
    return _exactly(connection, size)[4:]


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return data


def _read_metadata(reply: bytes) -> Answer:
    (count,) = struct.unpack_from(">i", reply, 0)
    position = 4
    brokers: dict[int, str] = {}
    for _ in range(count):
        (node_id,) = struct.unpack_from(">i", reply, position)
        host, position = _string(reply, position + 4)
        (port,) = struct.unpack_from(">i", reply, position)
        _rack, position = _string(reply, position + 4)
        brokers[node_id] = f"{host}:{port}"
    cluster_id, _ = _string(reply, position)
    return Answer(cluster_id, brokers)


def _string(reply: bytes, position: int) -> tuple[str | None, int]:
    (size,) = struct.unpack_from(">h", reply, position)
    position += 2
    if size < 0:
        return None, position
    return reply[position : position + size].decode(), position + size
