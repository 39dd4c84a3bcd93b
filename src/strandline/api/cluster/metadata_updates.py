"""Metadata replies that would repeat what the connection was already sent: they wait a moment for a metadata update.

A client that has just lost a leader asks the next broker at once who leads now, and may be faster than that broker's own notice of
the loss. librdkafka believes the answer and looks again only a second later. So an answer about named topics is not given at once,
unless the metadata has changed since the last answer on this connection.

Always true: an answer that has something new leaves at once, and so does every one in a cluster of one broker; none waits longer
than its limit; what was asked behind one that waited is not held up again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from strandline.api.context import RequestContext

UNCHANGED_WAIT_S = 0.01
"""A closed connection is noticed in less."""
SUSPECTED_WAIT_S = 0.9
"""While one of their leaders is suspected to be gone: an election is under way, which takes less, even if a controller has to be
elected first."""
REST_S = 1.0
"""After one that waited; requests that came meanwhile, of whatever kind, are behind it."""


class _LastReply(NamedTuple):
    version: object
    """Of the metadata that it was made from."""
    waits_from: float


class SentMetadata:
    """The metadata that each connection was last sent."""

    def __init__(self) -> None:
        self._last_replies: dict[int, _LastReply] = {}
        self._newest: tuple[object, object] = (None, None)
        self._changes = 0

    def version(self, ctx: RequestContext) -> object:
        """Equal as long as nothing changed: the mappings of an image are shared while they are the same."""
        image = ctx.node.metadata.image()
        topics, brokers = self._newest
        if image.topics is not topics or image.brokers is not brokers:
            self._newest = (image.topics, image.brokers)
            self._changes += 1
        return self._changes, ctx.node.metadata.suspects()

    def must_wait(self, ctx: RequestContext) -> bool:
        if len(ctx.node.metadata.image().brokers) < 2:
            return False
        last = self._last_replies.get(ctx.connection_id)
        if last is None:
            return not ctx.node.metadata.suspects()
        return last.version == self.version(ctx) and ctx.loop.time() >= last.waits_from

    def note(self, ctx: RequestContext, *, waited: bool = False) -> None:
        """The connection is being sent the newest metadata."""
        last = self._last_replies.get(ctx.connection_id)
        waits_from = ctx.loop.time() + REST_S if waited else 0.0 if last is None else last.waits_from
        self._last_replies[ctx.connection_id] = _LastReply(self.version(ctx), waits_from)

    def forget(self, connection_id: int) -> None:
        self._last_replies.pop(connection_id, None)


async def wait(ctx: RequestContext, body: bytes, answer: Callable[[], bytes], *, suspected: bool) -> bytes:
    """The answer once it is another than `body`, or as it is when it was long enough."""
    deadline = ctx.loop.time() + (SUSPECTED_WAIT_S if suspected else UNCHANGED_WAIT_S)
    sent = ctx.node.connections.metadata_seen
    while (left_s := deadline - ctx.loop.time()) > 0:
        seen = sent.version(ctx)
        await ctx.node.metadata.until(lambda image, seen=seen: sent.version(ctx) != seen, left_s)  # type: ignore[misc]
        if (newer := answer()) != body:
            return newer
    return body
