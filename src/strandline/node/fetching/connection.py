"""The connection on which a follower fetches from one leader, made for few steps between a reply and the next request.

It reads into a buffer of its own; a reply is a view into it, valid only during the callback that gets it. The first
exchange is ApiVersions; from then on any request may be sent, and several may be in flight.

Always true: replies come in the order of their requests, and a frame that does not fit ends the connection, as does a
request that is overdue; a buffer given to the transport is never touched again; `on_closed` is called once, with the
reason, for a connection that was open and that the other side, or an overdue reply, ended.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from strandline.client.core import versions
from strandline.client.core.addresses import show
from strandline.client.core.connection import CORRELATION_ID_MAX, FRAME_BYTES_MAX
from strandline.client.core.versions import ApiVersions
from strandline.client.errors import ConnectionLost
from strandline.errors import KafkaError
from strandline.node.frame_buffer import FrameBuffer
from strandline.raft.messages import Address
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import API_VERSIONS, has_flexible_response_header, read_response_header, request_header

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

R = TypeVar("R", bound="ApiResponse")

_SIZE_AND_KEY = struct.Struct(">ihhi")
_CORRELATION_ID = struct.Struct(">i")
_KEY_BYTES = 8
"""API key, version and correlation id: what of a request's header differs from one request to the next."""

Take = Callable[[memoryview, int], None]
"""Gets a reply's frame and where its body begins. MalformedRequest ends the connection."""


class _Asked(NamedTuple):
    correlation_id: int
    api_key: int
    version: int
    is_flexible: bool
    deadline: float
    take: Take


class FetchConnection(asyncio.BufferedProtocol):
    def __init__(self, client_id: str, kept_bytes: int, on_closed: Callable[[str], None]) -> None:
        """`kept_bytes` of a reply's room are kept for the next one."""
        self.versions: ApiVersions | None = None
        self._client_id = client_id
        self._kept_bytes = kept_bytes
        self._frame_bytes_max = kept_bytes + FRAME_BYTES_MAX
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._incoming = FrameBuffer()
        self._asked: deque[_Asked] = deque()
        self._correlation_id = 0
        self._tails: dict[tuple[int, int], bytes] = {}
        """What follows the correlation id in a request's header."""
        self._transport: asyncio.Transport | None = None
        self._opened: asyncio.Future[None] | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._watch_at = math.inf
        self._is_closed = False
        self._reason = "the other side closed the connection"

    @property
    def in_flight_count(self) -> int:
        return len(self._asked)

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    # Opening

    async def open(self, address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> None:
        """Connect, and learn what the other side speaks; ConnectionLost or another KafkaError if that fails."""
        name = None if tls is None else address.host
        self._opened = self._loop.create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self._loop.create_connection(
                    lambda: self, address.host, address.port, ssl=tls, server_hostname=name
                )
                self._ask_versions(versions.NEWEST, timeout_s)
                await self._opened
        except TimeoutError:
            self.close()
            raise ConnectionLost(f"no connection to {show(address)} within {timeout_s:g} s") from None
        except (OSError, ValueError, OverflowError) as error:  # what others call a host and a port may be neither
            self.close()
            raise ConnectionLost(f"no connection to {show(address)}: {error}") from None
        except (KafkaError, asyncio.CancelledError):
            self.close()
            raise
        self._opened = None
        if self._is_closed:
            raise ConnectionLost(self._reason)

    def _ask_versions(self, version: int, timeout_s: float) -> None:
        def take(frame: memoryview, position: int) -> None:
            self._learn(versions.answer(version, bytes(frame[position:])), timeout_s)

        self.send(API_VERSIONS, version, versions.question(version), timeout_s, take)

    def _learn(self, answer: ApiVersions | int, timeout_s: float) -> None:
        if isinstance(answer, int):
            self._ask_versions(answer, timeout_s)
            return
        self.versions = answer
        assert self._opened is not None, "the versions are asked for by open"
        if not self._opened.done():
            self._opened.set_result(None)

    # Asking

    def send(self, api_key: int, version: int, body: bytes, timeout_s: float, take: Take) -> None:
        """Send a request; `take` gets the reply. On a closed connection nothing happens any more."""
        if self._is_closed or self._transport is None:
            return
        tail = self._tails.get((api_key, version))
        if tail is None:
            tail = self._tails[api_key, version] = request_header(api_key, version, 0, self._client_id)[_KEY_BYTES:]
        correlation_id = self._correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MAX
        is_flexible = has_flexible_response_header(api_key, version)
        deadline = self._loop.time() + timeout_s
        self._asked.append(_Asked(correlation_id, api_key, version, is_flexible, deadline, take))
        if deadline < self._watch_at:
            self._watch_until(deadline)
        size = _KEY_BYTES + len(tail) + len(body)
        self._transport.write(b"".join((_SIZE_AND_KEY.pack(size, api_key, version, correlation_id), tail, body)))

    def ask(
        self, api_key: int, version: int, message: ApiRequest[R], timeout_s: float, take: Callable[[R], None]
    ) -> None:
        """The same with the codec that knows every API."""

        def take_frame(frame: memoryview, position: int) -> None:
            take(messages.decode_response(api_key, version, bytes(frame), position))

        self.send(api_key, version, messages.encode_request(api_key, version, message), timeout_s, take_frame)

    def _watch(self) -> None:
        """One timer for all requests: one of them is overdue, or the timer is set for when the first would be."""
        self._watch_at = math.inf
        if self._asked:
            deadline = min(asked.deadline for asked in self._asked)
            if deadline <= self._loop.time():
                self._end("a reply is overdue")
            else:
                self._watch_until(deadline)

    def _watch_until(self, deadline: float) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
        self._watch_at = deadline
        self._watchdog = self._loop.call_at(deadline, self._watch)

    # The transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._incoming.room()

    def buffer_updated(self, nbytes: int) -> None:
        incoming = self._incoming
        incoming.filled(nbytes)
        try:
            while not self._is_closed and (size := incoming.frame_size()) is not None:
                if not _CORRELATION_ID.size <= size <= self._frame_bytes_max:
                    raise MalformedRequest(f"a reply claims {size} bytes")
                frame = incoming.take(size)
                if frame is None:
                    break
                self._take(frame)
        except (MalformedRequest, KafkaError) as error:
            self._end(str(error))
            return
        if incoming.is_full:
            incoming.grow(incoming.step_bytes())
        elif incoming.grown_bytes > self._kept_bytes and not incoming.held_bytes:
            incoming.trim()

    def _take(self, frame: memoryview) -> None:
        if not self._asked:
            raise MalformedRequest("a reply to nothing that was asked")
        asked = self._asked.popleft()
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        if correlation_id != asked.correlation_id:
            raise MalformedRequest(f"a reply to request {correlation_id} where {asked.correlation_id} is next")
        position = 4
        if asked.is_flexible:
            position = 5 if len(frame) > 4 and not frame[4] else self._body_position(asked, frame)
        asked.take(frame, position)

    @staticmethod
    def _body_position(asked: _Asked, frame: memoryview) -> int:
        return read_response_header(asked.api_key, asked.version, frame)[1]

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._is_closed:
            self._end(str(exc) if exc is not None else self._reason)

    # Closing

    def close(self) -> None:
        """End the connection because we want to: `on_closed` is not called."""
        self._is_closed = True
        self._asked.clear()
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._transport is not None:
            self._transport.abort()  # what is still to be written is of no use to anybody

    def _end(self, reason: str) -> None:
        opened = self._opened
        self.close()
        if opened is None:
            self._on_closed(reason)
        elif not opened.done():
            opened.set_exception(ConnectionLost(reason))
