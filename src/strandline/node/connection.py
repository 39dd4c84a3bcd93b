"""One client connection: frames in, replies out, in order.

Always true: a frame is a memoryview into this connection's own buffer, valid only during the call that handles it. Replies
leave in the order of their requests. Only a Produce, an OffsetCommit or a follower's Fetch that waits may be overtaken: any other
is a barrier, behind which nothing is handled. What a peer can make us hold is bounded: one frame, what was read ahead, the requests
in flight and the bytes it has not read yet.
"""

from __future__ import annotations

import asyncio
import struct
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, cast

from strandline.api.context import Broker, RequestContext
from strandline.api.error_reply import told_errors
from strandline.api.reply import Later
from strandline.api.request_stats import BOUNDS_S, RequestStats
from strandline.api.table import API_VERSIONS, BROKER_APIS, CONTROLLER_APIS, MISDIRECTED, unsupported_version
from strandline.node.frame_buffer import FrameBuffer
from strandline.node.read_budget import ReadBudget
from strandline.node.reply_slots import HEAD_BYTES_MAX, Kind, Slot, head
from strandline.ports import Buffer
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import has_flexible_response_header, read_request_header
from strandline.wire.messages import encode_response

GROWN_BYTES_KEPT_MAX = 4 * 1024 * 1024
"""A buffer that grew beyond this for one frame is given back right after it."""
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

_CORRELATION_ID = struct.Struct(">i")


class Owner(Protocol):
    """Who is told about connections: the listener."""

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...

    def refused(self, connection: Connection, reason: str) -> None:
        """The peer broke the protocol; its connection ends."""

    def failed(self, connection: Connection, error: Exception) -> None:
        """We could not answer; the connection ends, the node goes on."""


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        owner: Owner,
        broker: Broker,
        listener: str,
        budget: ReadBudget | None = None,
        stats: RequestStats | None = None,
    ) -> None:
        self._owner = owner
        self._stats = stats or RequestStats()
        self._now = broker.clock.monotonic
        self._taken_at = 0.0
        """When the request that is being handled was."""
        self._budget = budget or ReadBudget()
        self._waits_for_room = False
        self._broker = broker
        self._listener = listener
        self._apis = CONTROLLER_APIS if listener in broker.config.controller_listener_names else BROKER_APIS
        self._may_act_as_broker = broker.config.may_act_as_broker(listener)
        self._id = next(broker.connection_ids)
        self._frame_bytes_max = broker.config.socket_request_max_bytes
        self._incoming = FrameBuffer()
        self._slots: deque[Slot] = deque()
        self._ready: list[Buffer] = []
        """Replies that may leave with the next write: nothing that is not there yet comes before them."""
        self._ready_bytes = self._held_bytes = 0
        self._kind: Kind | None = None
        self._barrier: Slot | None = None
        self._handling = self._is_sending_soon = False
        self._reading_paused = self._writing_paused = False
        self._transport: asyncio.Transport | None = None
        self._linger: asyncio.TimerHandle | None = None
        """Set once the connection ends: nothing is handled any more."""
        self._loop = asyncio.get_running_loop()
        self.peer = "?"
        self.last_active = self.last_served = self._loop.time()

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
        self._budget.give_back(self, self._incoming.grown_bytes)
        self._owner.closed(self)
        self._forget_requests()
        self._broker.on_connection_closed(self._id)

    def _forget_requests(self) -> None:
        """Nobody will get the replies: stop what waits for them."""
        slots, self._slots = self._slots, deque()
        self._barrier = None
        self._held_bytes = 0
        self._incoming.clear()
        for slot in slots:
            if isinstance(slot.later, asyncio.Task):
                # Not at once: cancelled before its first step, it would drop the handler's coroutine without awaiting it.
                self._loop.call_soon(slot.later.cancel)
            elif slot.later is not None:
                slot.later.cancel()

    def get_buffer(self, size_hint: int) -> memoryview:
        return self._incoming.room()

    def buffer_updated(self, nbytes: int) -> None:
        if self._linger is not None:
            return
        self._incoming.filled(nbytes)
        self._handle_frames()
        if self._incoming.is_full:
            self._make_room()
        elif self._incoming.grown_bytes > GROWN_BYTES_KEPT_MAX:
            self.rest()

    def _pause_reading(self) -> None:
        if not self._reading_paused and self._transport is not None:
            self._reading_paused = True
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
            self._send_ready()
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
        return self._barrier is not None or self._writing_paused or self._is_full()

    def _is_full(self) -> bool:
        """Too much waits behind a Produce."""
        return len(self._slots) >= REQUESTS_IN_FLIGHT_MAX or self._held_bytes > REPLIES_HELD_BYTES_MAX

    def _go_on(self) -> None:
        """What held the requests up is gone."""
        if self._transport is None or self._handling or self._linger is not None:
            return
        self._handle_frames()
        if self._incoming.is_full:
            self._make_room()
        if self._reading_paused and not self._is_held() and not self._waits_for_room and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()

    def _handle_frames(self) -> None:
        self.last_active = self._loop.time()
        self._handling = True
        self._taken_at = self._now()
        incoming = self._incoming
        try:
            while not self._is_held() and (size := incoming.frame_size()) is not None:
                if not 0 <= size <= self._frame_bytes_max:
                    self._owner.refused(
                        self, f"a frame of {size} bytes (socket.request.max.bytes is {self._frame_bytes_max})"
                    )
                    self._give_up()
                    return
                frame = incoming.take(size)
                if frame is None:
                    break
                self.last_served = self.last_active
                if not self._handle(frame):
                    self._give_up()
                    return
        finally:
            self._handling = False
        self._send_ready()

    def _make_room(self) -> None:
        """The buffer is full of what can't be handled yet: requests behind a barrier, or one that is larger than it."""
        if self._is_held() or self._linger is not None:
            self._pause_reading()
            return
        step_bytes = self._incoming.step_bytes()
        if self._budget.try_take(self, step_bytes):
            self._incoming.grow(step_bytes)
        else:
            self._waits_for_room = True
            self._pause_reading()
            self._budget.when_freed(self, self._ask_for_room_again)

    def _ask_for_room_again(self) -> None:
        self._waits_for_room = False
        self._go_on()

    def rest(self) -> None:
        """Nothing happened for a while: give back what a large request took."""
        if self._incoming.grown_bytes and not self._incoming.held_bytes:
            grown_bytes = self._incoming.grown_bytes
            self._incoming.shrink()
            self._budget.give_back(self, grown_bytes)

    def _handle(self, frame: memoryview) -> bool:
        """Serve one request; False if the connection must end."""
        try:
            kind = self._kind
            if kind is None or frame[:4] != kind.key_and_version or frame[8 : kind.body_position] != kind.client:
                kind = self._new_kind(frame)
                if kind is None:
                    return False
            (correlation_id,) = _CORRELATION_ID.unpack_from(frame, 4)
            api = kind.api
            if api.raw:
                outcome = api.handle(frame, kind.context, kind.body_position)
            else:
                outcome = self._broker.large_requests.serve(api, frame, kind.context, kind.body_position)
            self._take(kind, correlation_id, outcome)
        except MalformedRequest as error:
            self._stats.refused += 1
            self._owner.refused(self, str(error))
            return False
        except Exception as error:
            self._stats.refused += 1
            self._owner.failed(self, error)
            return False
        return True

    def _new_kind(self, frame: memoryview) -> Kind | None:
        """Look closely at a header; None if we do not serve such a request."""
        header = read_request_header(frame)
        api = self._apis.get(header.api_key)
        if api is None and self._apis is CONTROLLER_APIS:
            api = MISDIRECTED.get(header.api_key)
        if api is None:
            is_controllers = header.api_key in CONTROLLER_APIS
            whose = " on a broker's listener; a controller's address is wanted (bootstrap.controllers)"
            self._owner.refused(self, f"unknown API key {header.api_key}{whose if is_controllers else ''}")
            return None
        if header.api_version not in api.versions:
            if api.key != API_VERSIONS:
                served = f"{api.versions[0]}-{api.versions[-1]}"
                self._owner.refused(self, f"{api.name} version {header.api_version}, we serve {served}")
                return None
            # Whatever a client speaks, it understands this answer in version 0, and learns what we speak.
            api = api._replace(handle=lambda frame, context, position: unsupported_version(), raw=True)
            header = header._replace(api_version=0)
        self._kind = Kind(
            bytes(frame[:4]),
            bytes(frame[8 : header.body_position]),
            header.body_position,
            api,
            RequestContext(
                self._broker,
                header.api_key,
                header.api_version,
                header.client_id,
                self._listener,
                self.peer,
                self._loop,
                self._id,
                self._may_act_as_broker,
            ),
            has_flexible_response_header(header.api_key, header.api_version),
            self._stats.of(header.api_key, header.api_version),
        )
        return self._kind

    def _take(self, kind: Kind, correlation_id: int, outcome: Any) -> None:
        if outcome is None:
            kind.stats.answered(self._now() - self._taken_at)
            return
        if not self._slots and isinstance(outcome, (bytes, list)):
            # As ApiStats.answered does, without the call. The next request of this read, if any, begins where this one ends.
            stats, now = kind.stats, self._now()
            took_s = now - self._taken_at
            stats.buckets[bisect_left(BOUNDS_S, took_s)] += 1
            stats.total_s += took_s
            self._taken_at = now
            if isinstance(outcome, bytes):
                size_bytes = len(outcome)
                self._ready.append(head(kind, correlation_id, size_bytes) + outcome)
            else:
                size_bytes = sum(map(len, outcome))
                self._ready += (head(kind, correlation_id, size_bytes), *outcome)
            self._ready_bytes += HEAD_BYTES_MAX + size_bytes
            if self._ready_bytes > READY_BYTES_MAX:
                self._send_ready()
            return
        slot = Slot(kind, correlation_id, self._taken_at)
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

    async def _await(self, slot: Slot, outcome: Coroutine[Any, Any, Any]) -> None:
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

    def _deliver(self, slot: Slot, reply: Any) -> None:
        """A reply is there, or the error that took its place. Raises nothing: whoever completed it has no part in this."""
        if self._transport is None or self._linger is not None:
            return
        try:
            self._put(slot, reply)
        except MalformedRequest as error:
            self._stats.refused += 1
            self._owner.refused(self, str(error))
            self._give_up()
        except Exception as error:
            self._owner.failed(self, error)
            self._give_up()

    def _put(self, slot: Slot, reply: Any) -> None:
        """Put a reply in its place: it may leave once those before it have."""
        if isinstance(reply, Exception):
            raise reply
        kind = slot.kind
        kind.stats.answered(self._now() - slot.taken_at)
        if not isinstance(reply, (bytes, bytearray, list)):
            for code in told_errors(reply):
                self._stats.failed(kind.api.key, code)
            reply = encode_response(kind.api.key, kind.context.version, reply)
        buffers = reply if isinstance(reply, list) else [reply]
        size_bytes = sum(map(len, buffers))
        slot.buffers = [head(kind, slot.correlation_id, size_bytes), *buffers]
        slot.size_bytes = HEAD_BYTES_MAX + size_bytes
        slot.later = None
        self._held_bytes += slot.size_bytes
        released = self._barrier is slot
        if released:
            self._barrier = None
        if not self._handling:
            if len(self._slots) > 1:
                self._send_soon()
            else:
                self._send_ready()
            if released:
                self._go_on_soon()

    def _go_on_soon(self) -> None:
        """Not at once: it may be another connection's append that is just waking us, and its turn comes first."""
        if self._incoming.held_bytes >= 4 or self._reading_paused:
            self._loop.call_soon(self._go_on)

    def _send_soon(self) -> None:
        """Others wait here too, and one watermark often completes several of them: they leave with one write."""
        if not self._is_sending_soon:
            self._is_sending_soon = True
            self._loop.call_soon(self._send_gathered)

    def _send_gathered(self) -> None:
        self._is_sending_soon = False
        if self._linger is None:
            self._send_ready()

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
