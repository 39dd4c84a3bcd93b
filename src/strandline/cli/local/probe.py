"""Probes of local nodes: whether a broker answers, and whether a controller is active; with hand-written requests, to save imports.

Always true: a result says which cluster answered, so that a broker of another cluster is not mistaken for ours.
"""

from __future__ import annotations

import socket
import struct

API_VERSIONS, METADATA, DESCRIBE_QUORUM = 18, 3, 55
METADATA_VERSION = 2
"""The first version with the cluster id."""
DESCRIBE_QUORUM_VERSION = 0
METADATA_TOPIC = b"__cluster_metadata"
FRAME_BYTES_MAX = 1 << 20
_CLIENT = b"strandline-probe"


class ProbedCluster:
    """The cluster that a broker belongs to: its id, and the addresses of its brokers by id."""

    def __init__(self, cluster_id: str | None, brokers: dict[int, str]) -> None:
        self.cluster_id = cluster_id
        self.brokers = brokers


def ask(host: str, port: int, timeout_s: float = 1.0) -> ProbedCluster | None:
    """The cluster as this broker describes it; None if it does not answer."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            _call(connection, API_VERSIONS, 0, b"")
            return _read_metadata(_call(connection, METADATA, METADATA_VERSION, struct.pack(">i", 0)))
    except (OSError, ValueError, struct.error, IndexError):
        return None


def leads(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Whether this controller is the active one: only that one describes the quorum."""
    # One topic with partition 0, in the compact encoding: lengths are stored plus one, and structs end with an empty tag section.
    topic = bytes((len(METADATA_TOPIC) + 1,)) + METADATA_TOPIC
    request = b"\x02" + topic + b"\x02" + struct.pack(">i", 0) + b"\x00" + b"\x00" + b"\x00"
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            reply = _call(connection, DESCRIBE_QUORUM, DESCRIBE_QUORUM_VERSION, b"\x00" + request)
            return _describes_quorum(reply[1:], topic)
    except (OSError, ValueError, struct.error, IndexError):
        return False


def _describes_quorum(reply: bytes, topic: bytes) -> bool:
    """Whether the reply has no error, neither at the top nor for its only partition."""
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


def _read_metadata(reply: bytes) -> ProbedCluster:
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
    return ProbedCluster(cluster_id, brokers)


def _string(reply: bytes, position: int) -> tuple[str | None, int]:
    (size,) = struct.unpack_from(">h", reply, position)
    position += 2
    if size < 0:
        return None, position
    return reply[position : position + size].decode(), position + size
