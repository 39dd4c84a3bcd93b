"""Where brokers are, in a reply that says who leads (KIP-951): a client that asked the wrong one need not ask for metadata.

Always true: it is a tagged field, number 0, of Produce replies from version 10 and Fetch replies from version 16 on.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from strandline.wire.primitives import encode_unsigned_varint as uvarint

_INT32 = struct.Struct(">i")


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


def tagged(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """All tagged fields of the reply: this one, or none."""
    if not endpoints:
        return b"\0"
    body = uvarint(len(endpoints) + 1) + b"".join(map(_endpoint, endpoints))
    return b"\1\0" + uvarint(len(body)) + body


def _endpoint(endpoint: NodeEndpoint) -> bytes:
    host = endpoint.host.encode()
    rack = b"\0" if endpoint.rack is None else uvarint(len(endpoint.rack.encode()) + 1) + endpoint.rack.encode()
    return _INT32.pack(endpoint.node_id) + uvarint(len(host) + 1) + host + _INT32.pack(endpoint.port) + rack + b"\0"
