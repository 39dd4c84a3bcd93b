"""What all connections of a node share: memory for requests and replies, and turns of the event loop.

Always true: each of them is bounded, and what a connection took of it is given back when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from strandline.config.node import NodeConfig
from strandline.node.frame_buffer import BUFFER_BYTES
from strandline.node.read_budget import ReadBudget
from strandline.node.reply_budget import ReplyBudget
from strandline.node.turns import ConnectionTurns


def _read_buffer() -> memoryview:
    return memoryview(bytearray(BUFFER_BYTES))


@dataclass(slots=True, eq=False)
class ConnectionResources:
    reads: ReadBudget = field(default_factory=ReadBudget)
    replies: ReplyBudget = field(default_factory=ReplyBudget)
    turns: ConnectionTurns = field(default_factory=ConnectionTurns)
    shared_read_buffer: memoryview = field(default_factory=_read_buffer)
    """Where the event loop reads to, whichever connection it reads."""
    stalled_requests: int = 0
    """Connections closed because a request did not go on arriving."""
    stalled_replies: int = 0
    """Connections closed because their peer did not read."""

    @classmethod
    def of(cls, config: NodeConfig) -> ConnectionResources:
        return cls(ReadBudget(config.queued_max_request_bytes), ReplyBudget(config.queued_max_response_bytes))
