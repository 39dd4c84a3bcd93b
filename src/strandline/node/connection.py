"""One client connection: frames in, replies out, in order.

Always true: a frame is a memoryview into this connection's own buffer, valid only during the call that handles it. Replies
leave in the order of their requests. Only a waiting Produce may be overtaken: any other request that waits is a barrier,
behind which nothing is handled. What a peer can make us hold is bounded: one frame, what was read ahead, the requests in
flight and the bytes it has not read yet.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, cast

from strandline.api.context import Broker, RequestContext
from strandline.api.reply import Later
from strandline.api.table import API_VERSIONS, APIS, Api, unsupported_version
from strandline.ports import Buffer
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import RequestHeader, read_request_header, response_header
from strandline.wire.messages import decode_request, encode_response

READ_BUFFER_BYTES = 256 * 1024
READ_BUFFER_KEPT_BYTES = 8 * 1024 * 1024
"""A buffer that grew beyond this for one frame is given back after it."""
GROW_BYTES = 1024 * 1024
"""A frame that claims to be large gets its room in steps, as its bytes arrive."""
SLACK_BYTES = 64 * 1024
READ_AHEAD_BYTES_MAX = 512 * 1024
"""How much is read behind a barrier before the peer has to wait."""
REQUESTS_IN_FLIGHT_MAX = 4096
WRITE_BUFFER_HIGH_BYTES = 4 * 1024 * 1024
JOIN_BYTES_MAX = 16 * 1024
"""Replies up to this size are joined into one write."""
READY_BYTES_MAX = 256 * 1024
"""Replies leave once so much is ready, even if more requests were read."""
REPLIES_HELD_BYTES_MAX = 4 * 1024 * 1024
"""Replies that are ready behind a waiting Produce: with more than this, no further request is handled."""
LINGER_S = 5.0
"""How long a connection that ends may take to deliver what was written."""

_SIZE = struct.Struct(">i")


class _Slot:
    """The place of one reply in the order; `buffers` is None until it is there."""

    __slots__ = ("buffers", "later", "request", "size_bytes")

    def __init__(self, request: RequestHeader) -> None:
        self.request = request
        self.buffers: list[Buffer] | None = None
        self.size_bytes = 0
        self.later: Later | asyncio.Task[None] | None = None


class Owner(Protocol):
    """Who is told about connections: the listener."""

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def refused(self, connection: Connection, reason: str) -> None:
        """The peer broke the protocol; its connection ends."""

    def failed(self, connection: Connection, error: Exception) -> None:
        """We could not answer; the connection ends, the node goes on."""


class Connection(asyncio.BufferedProtocol):
    def __init__(self, owner: Owner, broker: Broker, listener: str) -> None:
        self._owner = owner
        self._broker = broker
        self._listener = listener
        self._frame_bytes_max = broker.config.socket_request_max_bytes
        self._buffer = bytearray(READ_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._slots: deque[_Slot] = deque()
        self._ready: list[Buffer] = []
        """Replies that may leave with the next write: nothing that is not there yet comes before them."""
        self._ready_bytes = self._held_bytes = 0
        self._context: RequestContext | None = None
        self._barrier: _Slot | None = None
        self._handling = False
        self._reading_paused = self._writing_paused = False
        self._transport: asyncio.Transport | None = None
        self._linger: asyncio.TimerHandle | None = None
        """Set once the connection ends: nothing is handled any more."""
        self._loop = asyncio.get_running_loop()
        self.peer = "?"
        self.last_active = self._loop.time()

    # The transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH_BYTES)
        peername = transport.get_extra_info("peername")
        self.peer = str(peername[0]) if isinstance(peername, tuple) else str(peername)
        self._owner.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._linger is not None:
            self._linger.cancel()
        self._owner.closed(self)
        self._forget_requests()

    def _forget_requests(self) -> None:
        """Nobody will get the replies: stop what waits for them."""
        slots, self._slots = self._slots, deque()
        self._barrier = None
        self._held_bytes = 0
        self._start = self._end = 0
        for slot in slots:
            if slot.later is not None:
                slot.later.cancel()

    def get_buffer(self, size_hint: int) -> memoryview:
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._buffer) > READ_BUFFER_KEPT_BYTES:
                self._replace_buffer(READ_BUFFER_BYTES)
        held = self._end - self._start
        needed = 4 + _SIZE.unpack_from(self._buffer, self._start)[0] if held >= 4 else 4
        if self._end == len(self._buffer) or (self._start and self._start + needed > len(self._buffer)):
            self._make_room(held, needed)
        return self._view[self._end :]

    def _make_room(self, held: int, needed: int) -> None:
        """Move what is held to the front. Only a buffer that is full of it grows: a size alone gets nobody memory."""
        if held < len(self._buffer):
            self._view[:held] = self._view[self._start : self._end]
            self._start, self._end = 0, held
        else:
            self._replace_buffer(max(min(needed, max(2 * held, GROW_BYTES)), held) + SLACK_BYTES)

    def _replace_buffer(self, size: int) -> None:
        held = self._end - self._start
        buffer = bytearray(size)
        view = memoryview(buffer)
        view[:held] = self._view[self._start : self._end]
        self._buffer, self._view = buffer, view
        self._start, self._end = 0, held

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self._handle_frames()
        if self._end - self._start > READ_AHEAD_BYTES_MAX and self._is_held() and not self._reading_paused:
            self._reading_paused = True
            if self._transport is not None:
                self._transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._go_on()

    def close(self) -> None:
        """End the connection; what was written may still leave, for a while."""
        if self._transport is not None and self._linger is None:
            self._linger = self._loop.call_later(LINGER_S, self._transport.abort)
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _give_up(self) -> None:
        """End the connection because of a request: replies to those before it still leave, nothing else is handled."""
        self._send_ready()
        self._forget_requests()
        self.close()

    @property
    def is_idle(self) -> bool:
        return not self._slots

    # Requests

    def _is_held(self) -> bool:
        """Nothing more is handled for now."""
        return (
            self._barrier is not None
            or self._writing_paused
            or len(self._slots) >= REQUESTS_IN_FLIGHT_MAX
            or self._held_bytes > REPLIES_HELD_BYTES_MAX
        )

    def _is_full(self) -> bool:
        """Too much waits behind a Produce."""
        return len(self._slots) >= REQUESTS_IN_FLIGHT_MAX or self._held_bytes > REPLIES_HELD_BYTES_MAX

    def _go_on(self) -> None:
        """What held the requests up is gone."""
        if self._transport is None or self._handling or self._linger is not None:
            return
        self._handle_frames()
        if self._reading_paused and not self._is_held() and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()

    def _handle_frames(self) -> None:
        self.last_active = self._loop.time()
        self._handling = True
        try:
            while self._end - self._start >= 4 and not self._is_held():
                (size,) = _SIZE.unpack_from(self._buffer, self._start)
                if not 0 <= size <= self._frame_bytes_max:
                    self._owner.refused(
                        self, f"a frame of {size} bytes (socket.request.max.bytes is {self._frame_bytes_max})"
                    )
                    self._give_up()
                    return
                frame_at = self._start + 4
                if self._end - frame_at < size:
                    break
                self._start = frame_at + size
                if not self._handle(self._view[frame_at : self._start]):
                    self._give_up()
                    return
        finally:
            self._handling = False
        self._send_ready()

    def _handle(self, frame: memoryview) -> bool:
        """Serve one request; False if the connection must end."""
        try:
            request = read_request_header(frame)
            api = APIS.get(request.api_key)
            if api is None:
                self._owner.refused(self, f"unknown API key {request.api_key}")
                return False
            if request.api_version not in api.versions:
                return self._refuse_version(request, api)
            context = self._context
            if (
                context is None
                or context.api_key != request.api_key
                or context.version != request.api_version
                or context.client_id != request.client_id
            ):
                context = self._new_context(request)
            body: Any = (
                frame if api.raw else decode_request(request.api_key, request.api_version, frame, request.body_position)
            )
            outcome = api.handle(body, context, request.body_position) if api.raw else api.handle(body, context)
            self._take(request, outcome)
        except MalformedRequest as error:
            self._owner.refused(self, str(error))
            return False
        except Exception as error:
            self._owner.failed(self, error)
            return False
        return True

    def _new_context(self, request: RequestHeader) -> RequestContext:
        self._context = RequestContext(
            self._broker,
            request.api_key,
            request.api_version,
            request.client_id,
            self._listener,
            self.peer,
            self._loop,
        )
        return self._context

    def _refuse_version(self, request: RequestHeader, api: Api) -> bool:
        if request.api_key == API_VERSIONS:
            # Whatever a client speaks, it understands this answer in version 0, and learns what we speak.
            self._take(request._replace(api_version=0), encode_response(API_VERSIONS, 0, unsupported_version()))
            return True
        self._owner.refused(
            self, f"{api.name} version {request.api_version}, we serve {api.versions[0]}-{api.versions[-1]}"
        )
        return False

    def _take(self, request: RequestHeader, outcome: Any) -> None:
        if outcome is None:
            return
        if not self._slots and isinstance(outcome, (bytes, list)):
            framed = self._framed(request, outcome)
            self._ready += framed
            self._ready_bytes += len(framed[0]) if len(framed) == 1 else sum(map(len, framed))
            if self._ready_bytes > READY_BYTES_MAX:
                self._send_ready()
            return
        slot = _Slot(request)
        self._slots.append(slot)
        if isinstance(outcome, Later):
            if not outcome.done:
                slot.later = outcome
                if not outcome.may_be_overtaken:
                    self._barrier = slot
            outcome.deliver_to(lambda reply: self._deliver(slot, reply))
        elif isinstance(outcome, Awaitable):
            self._barrier = slot
            slot.later = self._loop.create_task(self._await(slot, cast(Coroutine[Any, Any, Any], outcome)))
        else:
            self._deliver(slot, outcome)

    async def _await(self, slot: _Slot, outcome: Coroutine[Any, Any, Any]) -> None:
        try:
            reply = await outcome
        except asyncio.CancelledError:
            # A connection that is gone cancels this itself. If somebody else did, no answer will come any more.
            if self._transport is not None and self._linger is None:
                self._give_up()
            raise
        except Exception as error:
            reply = error
        self._deliver(slot, reply)

    def _deliver(self, slot: _Slot, reply: Any) -> None:
        """A reply is there, or the error that took its place. Raises nothing: whoever completed it has no part in this."""
        if self._transport is None or self._linger is not None:
            return
        try:
            self._put(slot, reply)
        except Exception as error:
            self._owner.failed(self, error)
            self._give_up()

    def _put(self, slot: _Slot, reply: Any) -> None:
        """Put a reply in its place: it may leave once those before it have."""
        if isinstance(reply, Exception):
            raise reply
        request = slot.request
        if not isinstance(reply, (bytes, bytearray, list)):
            reply = encode_response(request.api_key, request.api_version, reply)
        slot.buffers = self._framed(request, reply)
        slot.size_bytes = sum(map(len, slot.buffers))
        slot.later = None
        self._held_bytes += slot.size_bytes
        released = self._barrier is slot
        if released:
            self._barrier = None
        if not self._handling:
            self._send_ready()
            if released:
                self._go_on_soon()

    def _go_on_soon(self) -> None:
        """Not at once: it may be another connection's append that is just waking us, and its turn comes first."""
        if self._end - self._start >= 4 or self._reading_paused:
            self._loop.call_soon(self._go_on)

    @staticmethod
    def _framed(request: RequestHeader, body: Buffer | list[Buffer]) -> list[Buffer]:
        header = response_header(request.api_key, request.api_version, request.correlation_id)
        if isinstance(body, list):
            return [_SIZE.pack(len(header) + sum(map(len, body))) + header, *body]
        return [b"".join((_SIZE.pack(len(header) + len(body)), header, body))]

    def _send_ready(self) -> None:
        slots, buffers = self._slots, self._ready
        if slots:
            was_full = self._is_full()
            while slots and (ready := slots[0].buffers) is not None:
                buffers += ready
                self._ready_bytes += slots[0].size_bytes
                self._held_bytes -= slots[0].size_bytes
                slots.popleft()
            if was_full and not self._is_full():
                self._go_on_soon()
        if not buffers or self._transport is None:
            return
        size_bytes, self._ready_bytes, self._ready = self._ready_bytes, 0, []
        if len(buffers) == 1:
            self._transport.write(buffers[0])
        elif size_bytes <= JOIN_BYTES_MAX:
            self._transport.write(b"".join(buffers))
        else:
            self._transport.writelines(buffers)
