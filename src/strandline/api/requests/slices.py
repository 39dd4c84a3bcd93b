"""The answer to a request with much to do, worked out in turns of a few milliseconds (`sliced_work.py`, SEC-L2).

    def handle(request, ctx):
        return answer(_describe(request, ctx), request, ctx)

Most requests are done within their first turn and answered at once; the others go on in later turns.

Always true: between two turns the event loop serves others. The garbage collector is off for COLLECTOR_OFF_S_MAX at a time at most.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from strandline.api.requests.error_reply import error_reply, error_reply_in_slices, errors_in_slices
from strandline.api.requests.pending_reply import MaybePending, PendingReply
from strandline.errors import KafkaError
from strandline.sliced_work import SlicedWork, Work, check_answer_bytes
from strandline.wire.message import Message
from strandline.wire.messages import encode_response_in_slices

if TYPE_CHECKING:
    from strandline.api.context import RequestContext

T = TypeVar("T")
R = TypeVar("R")

COLLECTOR_OFF_S_MAX = 10.0
"""A node that always has a large request in progress collects garbage all the same, slowly."""


class _Collector:
    """The garbage collector waits while large requests are worked on.

    It would walk their hundred thousands of objects again and again, for a quarter of a second each time, and find nothing: they
    are in no cycles, and gone with the last reference to them.
    """

    def __init__(self) -> None:
        self._count = 0
        self._was_enabled = False
        self._off_since = 0.0

    @contextmanager
    def later(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        if not self._count and gc.isenabled():
            self._was_enabled = True
            self._off_since = loop.time()
            gc.disable()
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            # Not at once: it would begin with what was just worked on, which is gone when this turn of the loop is over.
            loop.call_soon(self._settle, loop.time() - self._off_since > COLLECTOR_OFF_S_MAX)

    def _settle(self, is_overdue: bool) -> None:
        if self._was_enabled and (is_overdue or not self._count):
            gc.enable()
            self._was_enabled = self._count > 0


collecting_later = _Collector().later


async def in_turns(work: Work[T], monotonic: Callable[[], float], check: Callable[[], None] | None = None) -> T:
    """What the work returns. The loop turns between its slices; `check` is called after each, and ends the work by raising."""
    sliced = SlicedWork(work, monotonic)
    return sliced.value if sliced.turn() else await _remaining_turns(sliced, check)


async def _remaining_turns(sliced: SlicedWork[T], check: Callable[[], None] | None = None) -> T:
    with collecting_later():
        while True:
            await asyncio.sleep(0)
            if check is not None:
                check()
            if sliced.turn():
                return sliced.value


class InSlices(Generic[R]):
    """The promise of an answer that is worked on in slices."""

    __slots__ = ("_ctx", "_request", "_sliced")

    def __init__(self, sliced: SlicedWork[MaybePending[R]], request: Message, ctx: RequestContext) -> None:
        self._sliced = sliced
        self._request = request
        self._ctx = ctx

    def __await__(self) -> Generator[object, None, R | bytes]:
        return self._answer().__await__()

    async def _answer(self) -> R | bytes:
        request, ctx = self._request, self._ctx
        try:
            reply: R | bytes = await settled(await self.worked_out())
            return await encoded(reply, request, ctx)
        except KafkaError as error:
            return await refused(error, request, ctx)

    async def worked_out(self) -> MaybePending[R]:
        """What the work comes to: a reply, or the promise of one that waits for others."""
        return await _remaining_turns(self._sliced)


def answer(work: Work[MaybePending[R]], request: Message, ctx: RequestContext) -> MaybePending[R]:
    """The reply that the work comes to: at once if one turn is enough for it, else the promise of it."""
    sliced = SlicedWork(work, ctx.node.clock.monotonic)
    try:
        if sliced.turn():
            return sliced.value
        promised: InSlices[R] = InSlices(sliced, request, ctx)
        return promised
    except KafkaError as error:
        ctx.node.request_stats.failed(ctx.api_key, error.code)
        reply = error_reply(ctx.api_key, ctx.version, request, error.code, error.message)
        if reply is None:
            raise
        return reply


async def encoded(reply: R, request: Message, ctx: RequestContext) -> R | bytes:
    """The reply's bytes, written in slices, if it is a message."""
    if not isinstance(reply, Message):
        return reply
    monotonic = ctx.node.clock.monotonic
    body = await in_turns(encode_response_in_slices(ctx.api_key, ctx.version, reply), monotonic)
    try:
        check_answer_bytes(len(body))
    except KafkaError as error:
        return await refused(error, request, ctx)
    for code in await in_turns(errors_in_slices(reply), monotonic):
        ctx.node.request_stats.failed(ctx.api_key, code)
    return body


async def refused(error: KafkaError, request: Message, ctx: RequestContext) -> bytes:
    """The reply that says this error of everything that was asked for; the error itself if this version has no place for it."""
    ctx.node.request_stats.failed(ctx.api_key, error.code)
    work = error_reply_in_slices(ctx.api_key, ctx.version, request, error.code, error.message)
    reply = await in_turns(work, ctx.node.clock.monotonic)
    if reply is None:
        raise error
    return reply


async def settled(outcome: MaybePending[R] | Awaitable[R | bytes | PendingReply[R]]) -> R | bytes:
    """What an API returned, once it is there: also where what it awaits comes to the promise of a reply."""
    if isinstance(outcome, Awaitable):
        outcome = await outcome
    if not isinstance(outcome, PendingReply):
        return outcome
    promised: asyncio.Future[R | Exception] = asyncio.get_running_loop().create_future()
    outcome.deliver_to(lambda reply: None if promised.done() else promised.set_result(reply))
    try:
        reply = await promised
    except asyncio.CancelledError:
        outcome.cancel()
        raise
    if isinstance(reply, Exception):
        raise reply
    return reply
