"""Work in slices: a request with much to do gives way to everybody else every few milliseconds (SEC-L2).

Work is a generator. It pauses after each of its parts and tells how many bytes that part adds to the answer; what it returns is the
answer, or the promise of it. Most requests are done within their first turn and answered at once; the others go on in later turns.

    def handle(request, ctx):
        return answer(_describe(request, ctx), request, ctx)

Always true: no turn runs longer than TURN_S and one part; an answer is given up before it has grown beyond ANSWER_BYTES_MAX. How
many large requests are read at once is bounded, and so are the bytes of those that wait for that. The turns do not depend on the
machine's speed in the simulator, where no time passes while work is done: there STEPS_PER_TURN_MAX ends them.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from strandline.api.error_reply import error_reply, told_errors_in_slices
from strandline.api.reply import Later
from strandline.errors import ErrorCode, KafkaError
from strandline.wire.errors import MalformedRequest
from strandline.wire.message import Message
from strandline.wire.messages import decode_request, decode_request_in_slices, encode_response_in_slices

if TYPE_CHECKING:
    from strandline.api.context import RequestContext
    from strandline.api.table import Api

T = TypeVar("T")
Work = Generator[int, None, T]

TURN_S = 0.005
"""How long one request may occupy the loop before others get their turn."""
STEPS_PER_TURN_MAX = 4096
ANSWER_BYTES_MAX = 100 * 1024 * 1024
"""As large as a request may be. Whoever needs more asks for fewer things at once."""

INLINE_BYTES_MAX = 32 * 1024
"""A request up to this size is read at once: at the worst 32,000 objects, some five milliseconds."""
REQUEST_BYTES_MAX = 16 * 1024 * 1024
"""A request that becomes objects, which is any but Produce and Fetch: 100,000 topics by name have a third of that."""
LARGE_REQUESTS_MAX = 2
"""Large requests that a node works on at once: each may be 16 MiB of bytes, 64 MiB of objects and an answer."""
WAITING_BYTES_MAX = 64 * 1024 * 1024
"""Of large requests that wait for that. One that does not fit ends its connection."""


class _Collector:
    """The garbage collector waits while large requests are worked on.

    It would walk their hundred thousands of objects again and again, for a quarter of a second each time, and find nothing: they
    are in no cycles, and gone with the last reference to them.
    """

    def __init__(self) -> None:
        self._count = 0
        self._was_enabled = False

    @contextmanager
    def later(self) -> Iterator[None]:
        if not self._count:
            self._was_enabled = self._was_enabled or gc.isenabled()
            gc.disable()
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            # Not at once: it would begin with what was just worked on, which is gone when this turn of the loop is over.
            asyncio.get_running_loop().call_soon(self._settle)

    def _settle(self) -> None:
        if not self._count and self._was_enabled:
            self._was_enabled = False
            gc.enable()


collecting_later = _Collector().later


class UnderWay(Generic[T]):
    """Work that takes several turns."""

    __slots__ = ("_monotonic", "_work", "answer_bytes", "value")

    def __init__(self, work: Work[T], monotonic: Callable[[], float]) -> None:
        self._work = work
        self._monotonic = monotonic
        self.answer_bytes = 0
        self.value: T

    def turn(self) -> bool:
        """Work for one turn; True if that was the last one, and `value` is there."""
        work, monotonic = self._work, self._monotonic
        ends = monotonic() + TURN_S
        try:
            for _ in range(STEPS_PER_TURN_MAX):
                self.answer_bytes += next(work)
                if self.answer_bytes > ANSWER_BYTES_MAX:
                    work.close()
                    raise too_large()
                if monotonic() >= ends:
                    break
        except StopIteration as stop:
            self.value = stop.value
            return True
        return False

    async def finish(self) -> T:
        with collecting_later():
            return await self._finish()

    async def _finish(self) -> T:
        while not self.turn():  # noqa: ASYNC110 - it is the next turn of the loop that is waited for
            await asyncio.sleep(0)
        return self.value


async def in_turns(work: Work[T], monotonic: Callable[[], float]) -> T:
    """What the work returns. The loop turns between its slices."""
    return await UnderWay(work, monotonic).finish()


def finished(work: Work[T]) -> T:
    """What little work returns: all of it at once."""
    while True:
        try:
            next(work)
        except StopIteration as stop:
            value: T = stop.value
            return value


def too_large() -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"The answer would have more than {ANSWER_BYTES_MAX} bytes; ask for fewer things at once.",
    )


class InSlices:
    """The promise of an answer that is worked on in slices."""

    __slots__ = ("_ctx", "_request", "_under_way")

    def __init__(self, under_way: UnderWay[Any], request: Any, ctx: RequestContext) -> None:
        self._under_way = under_way
        self._request = request
        self._ctx = ctx

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        request, ctx = self._request, self._ctx
        try:
            await asyncio.sleep(0)
            return await encoded(await settled(await self._under_way.finish()), request, ctx)
        except KafkaError as error:
            return _refused(error, request, ctx)


def answer(work: Work[Any], request: Any, ctx: RequestContext) -> Any:
    """The reply that the work comes to: at once if one turn is enough for it, else the promise of it."""
    under_way = UnderWay(work, ctx.broker.clock.monotonic)
    try:
        return under_way.value if under_way.turn() else InSlices(under_way, request, ctx)
    except KafkaError as error:
        return _refused(error, request, ctx)


async def encoded(reply: Any, request: Any, ctx: RequestContext) -> Any:
    """The reply's bytes, written in slices, if it is a message."""
    if not isinstance(reply, Message):
        return reply
    monotonic = ctx.broker.clock.monotonic
    body = await in_turns(encode_response_in_slices(ctx.api_key, ctx.version, reply), monotonic)
    if len(body) > ANSWER_BYTES_MAX:
        return _refused(too_large(), request, ctx)
    for code in await in_turns(told_errors_in_slices(reply), monotonic):
        ctx.broker.on_refused(ctx.api_key, code)
    return body


def _refused(error: KafkaError, request: Any, ctx: RequestContext) -> bytes:
    ctx.broker.on_refused(ctx.api_key, error.code)
    reply = error_reply(ctx.api_key, ctx.version, request, error.code, error.message)
    if reply is None:
        raise error
    return reply


class LargeRequests:
    """The requests of a node that are too large to be read at once."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(LARGE_REQUESTS_MAX)
        self.waiting_bytes = 0
        """Of those that are not answered yet, or wait for something else than their turn."""
        self.served_count = 0
        self.refused_count = 0

    def serve(self, api: Api, frame: memoryview, ctx: RequestContext, position: int) -> Any:
        """The reply to a request, which is small as a rule, or the promise of it. The frame lives no longer than this call."""
        size_bytes = len(frame) - position
        if size_bytes <= INLINE_BYTES_MAX:
            return api.handle(decode_request(api.key, ctx.version, frame, position), ctx)
        if size_bytes > REQUEST_BYTES_MAX:
            self.refused_count += 1
            raise MalformedRequest(f"{api.name} of {size_bytes} bytes, more than {REQUEST_BYTES_MAX}")
        return self._serve_large(api.handle, bytes(frame[position:]), ctx)

    async def serve_bytes(self, handle: Callable[[Any, RequestContext], Any], body: bytes, ctx: RequestContext) -> Any:
        """The same for a body that came inside another request."""
        if len(body) <= INLINE_BYTES_MAX:
            return await settled(handle(decode_request(ctx.api_key, ctx.version, body), ctx))
        return await self._serve_large(handle, body, ctx)

    async def _serve_large(self, handle: Callable[[Any, RequestContext], Any], body: bytes, ctx: RequestContext) -> Any:
        if self.waiting_bytes + len(body) > WAITING_BYTES_MAX:
            self.refused_count += 1
            raise MalformedRequest(f"{len(body)} bytes while {self.waiting_bytes} bytes of large requests wait")
        self.served_count += 1
        self.waiting_bytes += len(body)
        try:
            async with self._room:
                with collecting_later():
                    request = await self._decoded(body, ctx)
                    outcome = handle(request, ctx)
                    if isinstance(outcome, InSlices):
                        return await outcome
        finally:
            self.waiting_bytes -= len(body)
        # It may wait for others, a group's members for example: meanwhile the next large request is read.
        return await encoded(await settled(outcome), request, ctx)

    async def _decoded(self, body: bytes, ctx: RequestContext) -> Any:
        work = decode_request_in_slices(ctx.api_key, ctx.version, body)
        return await in_turns(work, ctx.broker.clock.monotonic)


async def settled(outcome: Any) -> Any:
    """What an API returned, once it is there."""
    if not isinstance(outcome, Later):
        return await outcome if isinstance(outcome, Awaitable) else outcome
    promised: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    outcome.deliver_to(lambda reply: None if promised.done() else promised.set_result(reply))
    try:
        reply = await promised
    except asyncio.CancelledError:
        outcome.cancel()
        raise
    if isinstance(reply, Exception):
        raise reply
    return reply
