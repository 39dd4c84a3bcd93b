"""The requests of a connection that wait for their replies: of which kind each is, and its place in the order.

Always true: requests of one kind differ in correlation id and body only, so that what was found out for one holds for
the next.
"""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

from strandline.api.context import RequestContext
from strandline.api.requests.pending_reply import PendingReply, Reply
from strandline.api.requests.request_stats import ApiStats
from strandline.api.table import Api
from strandline.ports import Buffer
from strandline.wire.headers import RequestHeader, has_flexible_response_header

_HEAD = struct.Struct(">ii")
_FLEXIBLE_HEAD = struct.Struct(">iiB")
HEAD_BYTES_MAX = _FLEXIBLE_HEAD.size


class RequestKind(NamedTuple):
    """What a request has in common with the next one of its connection, nearly always: all but its correlation id."""

    key_and_version: bytes
    client: bytes
    """Everything in the header after the correlation id."""
    body_position: int
    api: Api
    context: RequestContext
    is_flexible: bool
    """Its reply has a header with tagged fields."""
    stats: ApiStats


def kind_of(
    frame: memoryview, header: RequestHeader, api: Api, context: RequestContext, stats: ApiStats
) -> RequestKind:
    """What the requests have in common that begin as this frame does."""
    return RequestKind(
        bytes(frame[:4]),
        bytes(frame[8 : header.body_position]),
        header.body_position,
        api,
        context,
        has_flexible_response_header(header.api_key, header.api_version),
        stats,
    )


class Slot:
    """The place of one reply in the order; `buffers` is None until it is there."""

    __slots__ = ("buffers", "correlation_id", "kind", "later", "size_bytes", "taken_at")

    def __init__(self, kind: RequestKind, correlation_id: int, taken_at: float) -> None:
        self.kind = kind
        self.correlation_id = correlation_id
        self.taken_at = taken_at
        self.buffers: list[Buffer] | None = None
        self.size_bytes = 0
        self.later: PendingReply[Reply] | asyncio.Task[None] | None = None


def head(kind: RequestKind, correlation_id: int, body_bytes: int) -> bytes:
    """What stands before a reply's body: the size of all that follows, and the response header."""
    if kind.is_flexible:
        return _FLEXIBLE_HEAD.pack(5 + body_bytes, correlation_id, 0)
    return _HEAD.pack(4 + body_bytes, correlation_id)
