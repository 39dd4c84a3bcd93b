"""Large requests wait for their turn: how many are decoded and worked on, and what those hold that are not answered yet.

The bytes of a request are parsed in `wire/messages.py`, its header in `wire/headers.py`.

A small request is decoded and handled at once. A large one is decoded in slices, and waits for its turn before that, as bytes. One
that then waits for others (the controller's decision, followers, the members of a group) lets the next one go ahead.

Always true (SEC-L2, SEC-L4): LARGE_REQUESTS_MAX of them are decoded, worked on or encoded at once. What is not answered yet counts,
whatever it waits for: no request is decoded while UNANSWERED_OBJECTS_MAX objects wait for their answers, and one that would bring
the bytes above UNANSWERED_BYTES_MAX ends its connection. The brokers' own requests are counted apart from those of clients, so that
no client can have them refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from strandline.api.requests.pending_reply import Handled, PendingReply, Reply
from strandline.api.requests.slices import InSlices, collecting_later, encoded, in_turns, refused, settled
from strandline.errors import KafkaError
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import ENVELOPE
from strandline.wire.message import Message
from strandline.wire.messages import count_and_decode_request, decode_request, decode_request_in_slices

if TYPE_CHECKING:
    from strandline.api.context import RequestContext
    from strandline.api.table import Api

Handle = Callable[[Message, "RequestContext"], Handled]

UNCOUNTED_BYTES_MAX = 1024
"""What is smaller is not counted: it holds little, and most requests are."""
INLINE_BYTES_MAX = 32 * 1024
"""A request up to this size is decoded at once: at the worst 32,000 objects, some five milliseconds."""
LARGE_REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""A request that becomes objects, which is any but Produce and Fetch: 100,000 topics by name have a third of that."""
ENVELOPE_BYTES_MAX = 64 * 1024
"""What an Envelope adds to the largest request: that one's header, which may have a long client id, and who sent it."""
LARGE_REQUESTS_MAX = 2
"""Large requests that are worked on at once: each may be 16 MiB of bytes, 32 MiB of objects and an answer."""
UNANSWERED_BYTES_MAX = 64 * 1024 * 1024
"""Of large requests, whether they are decoded yet or not."""
UNANSWERED_OBJECTS_MAX = 1_600_000
"""Of decoded requests: some 128 MiB, and as many as four of the largest have."""


class LargeRequests:
    """Those of a node's clients, or those of its brokers and controllers."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(LARGE_REQUESTS_MAX)
        self._is_below_max = asyncio.Event()
        self._is_below_max.set()
        self.unanswered_bytes = 0
        """Of large requests."""
        self.unanswered_objects = 0
        """That decoded requests became, the smallest requests aside."""
        self.served_count = 0
        self.refused_count = 0

    def serve(self, api: Api, frame: bytes | memoryview, ctx: RequestContext, position: int) -> Handled:
        """The reply to a request, which is small as a rule, or the promise of it. A memoryview lives no longer than this call."""
        size_bytes = len(frame) - position
        if size_bytes <= UNCOUNTED_BYTES_MAX:
            return api.handle(decode_request(api.key, ctx.version, frame, position), ctx)
        if size_bytes <= INLINE_BYTES_MAX and self._is_below_max.is_set():
            request, objects = count_and_decode_request(api.key, ctx.version, frame, position)
            return self._counted(api.handle(request, ctx), objects)
        limit_bytes = LARGE_REQUEST_BYTES_MAX + (ENVELOPE_BYTES_MAX if api.key == ENVELOPE else 0)
        if size_bytes > limit_bytes:
            self.refused_count += 1
            raise MalformedRequest(f"{api.name} of {size_bytes} bytes, more than {limit_bytes}")
        return self._serve_large(api.handle, bytes(frame), position, ctx)

    async def serve_embedded(
        self,
        handle: Callable[[Message, RequestContext], Awaitable[bytes]],
        data: bytes,
        position: int,
        ctx: RequestContext,
    ) -> bytes:
        """The same for a large request inside another one, whose bytes count already."""
        return await self._serve_in_turn(handle, data, position, ctx)  # type: ignore[return-value]

    async def _serve_large(self, handle: Handle, data: bytes, position: int, ctx: RequestContext) -> Reply:
        if self.unanswered_bytes + len(data) > UNANSWERED_BYTES_MAX:
            self.refused_count += 1
            raise MalformedRequest(f"{len(data)} bytes while {self.unanswered_bytes} bytes of large requests wait")
        self.served_count += 1
        self.unanswered_bytes += len(data)
        try:
            return await self._serve_in_turn(handle, data, position, ctx)
        finally:
            self.unanswered_bytes -= len(data)

    async def _serve_in_turn(self, handle: Handle, data: bytes, position: int, ctx: RequestContext) -> Reply:
        request, objects = None, 0
        try:
            async with self._turn():
                work = decode_request_in_slices(ctx.api_key, ctx.version, data, position)
                request, objects = await in_turns(work, ctx.node.clock.monotonic)
                self._count(objects)
                outcome = handle(request, ctx)
                if isinstance(outcome, InSlices):
                    outcome = await outcome.worked_out()
            # No other request waits for this, nor does the garbage collector: it may take minutes.
            reply = await settled(outcome)
            if not isinstance(reply, Message):
                return reply
            async with self.working():
                return await encoded(reply, request, ctx)
        except KafkaError as error:
            return await refused(error, request, ctx)  # type: ignore[arg-type]  # decoding raises another error
        finally:
            self._count(-objects)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """The turn of a request that is not decoded yet."""
        while True:
            await self._is_below_max.wait()
            async with self.working():
                if self._is_below_max.is_set():  # else others were decoded before it
                    yield
                    return

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Be one of the LARGE_REQUESTS_MAX that are worked on. Nothing in here may wait for others."""
        async with self._room:
            with collecting_later():
                yield

    # What waits for its answer

    def _counted(self, outcome: Handled, objects: int) -> Handled:
        """The outcome of a request that became so many objects; they count until it is there."""
        if isinstance(outcome, PendingReply):
            return outcome if outcome.done else self._until_completed(outcome, objects)
        return self._until_answered(outcome, objects) if isinstance(outcome, Awaitable) else outcome

    async def _until_answered(self, outcome: Awaitable[Reply], objects: int) -> Reply:
        self._count(objects)
        try:
            return await settled(outcome)
        finally:
            self._count(-objects)

    def _until_completed(self, outcome: PendingReply[Reply], objects: int) -> PendingReply[Reply]:
        def cancelled() -> None:
            self._count(-objects)
            outcome.cancel()

        def completed(reply: Reply | Exception) -> None:
            self._count(-objects)
            later.complete(reply)

        later: PendingReply[Reply] = PendingReply(may_be_overtaken=outcome.may_be_overtaken, on_cancel=cancelled)
        self._count(objects)
        outcome.deliver_to(completed)
        return later

    def _count(self, objects: int) -> None:
        self.unanswered_objects += objects
        if self.unanswered_objects < UNANSWERED_OBJECTS_MAX:
            self._is_below_max.set()
        else:
            self._is_below_max.clear()
