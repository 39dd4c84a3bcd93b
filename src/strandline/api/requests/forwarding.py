"""How a broker passes a client's request on to the active controller, and its answer back (KIP-590).

The request travels as it came, header and all, inside an Envelope that says who sent it. The answer is the controller's own.

Always true: a request that can't be read goes nowhere; one that the controller was not there for in time is answered in the
shape of its own API with REQUEST_TIMED_OUT; a version that the controller does not know ends the connection, so that the client
asks again what is served.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable
from typing import TypeVar

from strandline.api.context import RequestContext
from strandline.api.requests.error_reply import contains_error, error_reply_in_slices, errors_in_slices
from strandline.api.requests.slices import in_turns
from strandline.errors import ErrorCode, KafkaError
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import read_response_header
from strandline.wire.message import Message

R = TypeVar("R")

TIMEOUT_MIN_S = 1.0
"""A controller takes longer than no time at all, whatever a client allows."""
TIMEOUT_MAX_S = 60.0
WAIT_SHARE = 0.9

PRINCIPAL_VERSION = 0
PRINCIPAL_DATA = "DefaultPrincipalData"
SEEN_WITHIN_S = 10.0
"""An answer is not held back for longer than that."""
NO_ADDRESS = bytes(4)
"""For a client that has no address of its own, as on a simulated network."""


class ForwardingRefused(ConnectionError):
    """There is no answer that the client would understand; its connection ends."""


async def decided_here(reply: Awaitable[R | bytes], frame: bytes, request: Message, ctx: RequestContext) -> R | bytes:
    """The reply of the controller in this very node, once the broker has acted on what was decided: a client that created a
    topic here can use it here at once. If it is not the controller any more, the request goes on to the one that is."""
    answer = await reply
    if await _is_not_controller(answer, ctx):
        return await forward(frame, request, ctx)
    decided = ctx.node.controller.quorum.committed.end_offset
    await ctx.node.metadata.until(lambda image: image.end_offset >= decided, SEEN_WITHIN_S)
    return answer


async def _is_not_controller(answer: object, ctx: RequestContext) -> bool:
    if not isinstance(answer, Message):
        return contains_error(answer, ErrorCode.NOT_CONTROLLER)
    codes = await in_turns(errors_in_slices(answer), ctx.node.clock.monotonic)
    return ErrorCode.NOT_CONTROLLER in codes


async def forward(frame: bytes, request: Message, ctx: RequestContext) -> bytes:
    """The body of the reply to a request, which is passed on as the frame that it came in."""
    try:
        async with asyncio.timeout(timeout_s(request, ctx)):
            answer = await ctx.node.controller.forward(frame, anonymous(), host_bytes(ctx.peer))
    except TimeoutError:
        has_none = ctx.node.controller.quorum.leader[1] < 0
        why = "there is none: too few controllers run" if has_none else "it is elsewhere, and silent"
        return await _failed(
            request, ctx, ErrorCode.REQUEST_TIMED_OUT, f"the active controller did not answer in time; {why}"
        )
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise ForwardingRefused(f"the controller does not know API {ctx.api_key} version {ctx.version}") from None
        # What went wrong with the envelope is between us and the controller, and no client expects it.
        timed_out = error.code is ErrorCode.REQUEST_TIMED_OUT
        return await _failed(request, ctx, error.code if timed_out else ErrorCode.UNKNOWN_SERVER_ERROR, error.message)
    try:
        _, position = read_response_header(ctx.api_key, ctx.version, answer)
    except MalformedRequest as error:
        return await _failed(
            request, ctx, ErrorCode.UNKNOWN_SERVER_ERROR, f"the controller's answer can't be read: {error}"
        )
    return answer[position:]


async def _failed(request: Message, ctx: RequestContext, code: ErrorCode, message: str) -> bytes:
    work = error_reply_in_slices(ctx.api_key, ctx.version, request, code, message)
    reply = await in_turns(work, ctx.node.clock.monotonic)
    if reply is None:
        raise ForwardingRefused(f"API {ctx.api_key} version {ctx.version} can't tell {code.name}: {message}")
    return reply


def timeout_s(request: Message, ctx: RequestContext) -> float:
    """How long the client waits, as the request says, or as long as any request; a little less, so that it gets the answer."""
    wanted_ms = getattr(request, "timeout_ms", ctx.node.config.request_timeout_ms)
    return min(max(wanted_ms / 1000 * WAIT_SHARE, TIMEOUT_MIN_S), TIMEOUT_MAX_S)


def anonymous() -> bytes:
    """The sender, as Kafka's default principal builder writes it: all are anonymous until there is authentication."""
    principal = messages.data(PRINCIPAL_DATA)(type="User", name="ANONYMOUS", token_authenticated=False)
    return PRINCIPAL_VERSION.to_bytes(2, "big") + messages.encode_data(PRINCIPAL_DATA, PRINCIPAL_VERSION, principal)


def host_bytes(peer: str) -> bytes:
    """An IP address as its four or sixteen bytes."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return socket.inet_pton(family, peer.partition("%")[0])
        except OSError:
            continue
    return NO_ADDRESS
