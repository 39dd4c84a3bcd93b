"""Requests and responses between the hosts of a stage, counted by API.

Always true: a message counts when its last byte leaves; counting touches nothing.
"""

from __future__ import annotations

import struct
from collections import Counter

from strandline.sim.pipe import Pipe

FETCH, PRODUCE = 1, 0
_SIZE = struct.Struct(">i")


class RequestCounter:
    """Set as the network's tap."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        """By source host, target host and API key."""
        self.responses: Counter[tuple[str, str]] = Counter()
        """By source host and target host."""
        self._pending: dict[int, bytearray] = {}

    def __call__(self, pipe: Pipe, data: bytes) -> None:
        pending = self._pending.setdefault(pipe.number, bytearray())
        pending += data
        while len(pending) >= 6:
            end = _SIZE.size + _SIZE.unpack_from(pending)[0]
            if len(pending) < end:
                return
            # Pipes come in pairs: the even one leads from the client to the server.
            if pipe.number % 2 == 0:
                self.requests[pipe.source, pipe.target, int.from_bytes(pending[4:6], "big")] += 1
            else:
                self.responses[pipe.source, pipe.target] += 1
            del pending[:end]
