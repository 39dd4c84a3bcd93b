"""A client that asks about topics while nothing has changed: its answer waits a moment for news.

Whoever has just lost its leader asks the next broker at once who leads now, and may be faster than that broker's own notice of
the loss. librdkafka believes the answer and looks again only a second later. So an answer about named topics is not given at once,
unless the connection was told something else before.

Always true: an answer that has news leaves at once, and so does every one in a cluster of one broker; none waits longer than its
limit; what was asked behind one that waited is not held up again.
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


class _Heard(NamedTuple):
    news: object
    waits_from: float


class SentMetadata:
    """What each connection heard last."""

    def __init__(self) -> None:
        self._heard: dict[int, _Heard] = {}
        self._newest: tuple[object, object] = (None, None)
        self._version = 0

    def news(self, ctx: RequestContext) -> object:
        """Equal as long as nothing changed: the mappings of an image are shared while they are the same."""
        image = ctx.node.metadata.image()
        topics, brokers = self._newest
        if image.topics is not topics or image.brokers is not brokers:
            self._newest = (image.topics, image.brokers)
            self._version += 1
        return self._version, ctx.node.metadata.suspects()

    def must_wait(self, ctx: RequestContext) -> bool:
        if len(ctx.node.metadata.image().brokers) < 2:
            return False
        heard = self._heard.get(ctx.connection_id)
        if heard is None:
            return not ctx.node.metadata.suspects()
        return heard.news == self.news(ctx) and ctx.loop.time() >= heard.waits_from

    def note(self, ctx: RequestContext, *, waited: bool = False) -> None:
        """The connection is being told what there is."""
        heard = self._heard.get(ctx.connection_id)
        waits_from = ctx.loop.time() + REST_S if waited else 0.0 if heard is None else heard.waits_from
        self._heard[ctx.connection_id] = _Heard(self.news(ctx), waits_from)

    def forget(self, connection_id: int) -> None:
        self._heard.pop(connection_id, None)


async def wait(ctx: RequestContext, body: bytes, answer: Callable[[], bytes], *, suspected: bool) -> bytes:
    """The answer once it is another than `body`, or as it is when it was long enough."""
    deadline = ctx.loop.time() + (SUSPECTED_WAIT_S if suspected else UNCHANGED_WAIT_S)
    told = ctx.node.connections.metadata_seen
    while (left_s := deadline - ctx.loop.time()) > 0:
        seen = told.news(ctx)
        await ctx.node.metadata.until(lambda image, seen=seen: told.news(ctx) != seen, left_s)  # type: ignore[misc]
        if (newer := answer()) != body:
            return newer
    return body
