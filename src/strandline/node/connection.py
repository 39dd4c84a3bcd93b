"""One client connection: frames in, replies out, in order.

Always true: a frame is a memoryview into the buffer that is being read into, valid only during the call that handles it.
Replies leave in the order of their requests. Only a Produce, an OffsetCommit or a follower's Fetch that waits may be
overtaken: any other is a barrier, behind which nothing is handled. What a peer can make us hold is bounded: one frame,
what was read ahead, the requests in flight and the bytes it has not read yet; so is the time for which its requests are
handled before it is the others' turn.

`wire/headers.py` parses the headers of requests, `wire/messages.py` their bodies, `wire/produce.py` and `wire/fetch.py` those of
Produce and Fetch.
"""

from __future__ import annotations

import asyncio
import struct
from bisect import bisect_left
from collections.abc import Awaitable
from typing import cast

from strandline.api.context import NodeContext, RequestContext
from strandline.api.requests.error_reply import errors_in
from strandline.api.requests.pending_reply import Handled, PendingReply, Reply
from strandline.api.requests.request_stats import BOUNDS_S, RequestStats
from strandline.api.table import API_VERSIONS, BROKER_APIS, CONTROLLER_APIS, REFUSED_ON_CONTROLLER, unsupported_version
from strandline.node.connection_owner import ConnectionOwner
from strandline.node.connection_resources import ConnectionResources
from strandline.node.intake import Intake
from strandline.node.outflow import Outflow
from strandline.node.reply_queue import ReplyQueue
from strandline.node.reply_slots import RequestKind, Slot, kind_of
from strandline.wire.errors import MalformedRequest
from strandline.wire.headers import read_request_header
from strandline.wire.messages import encode_response

REQUESTS_IN_FLIGHT_MAX = 4096
READY_BYTES_MAX = 256 * 1024
"""Replies leave once so much is ready, even if more requests were read."""
REPLIES_HELD_BYTES_MAX = 4 * 1024 * 1024
"""Replies that are ready behind a waiting Produce: with more than this, no further request is handled."""
LINGER_S = 5.0
"""How long a connection that ends may take to deliver what was written."""

_CORRELATION_ID = struct.Struct(">i")


class Connection(asyncio.BufferedProtocol):
    def __init__(
        self,
        owner: ConnectionOwner,
        node: NodeContext,
        listener: str,
        resources: ConnectionResources | None = None,
        stats: RequestStats | None = None,
    ) -> None:
        self._owner = owner
        self._stats = stats or RequestStats()
        self._now = node.clock.monotonic
        self._taken_at = 0.0
        """When the request that is being handled was."""
        self._resources = resources = resources or ConnectionResources()
        self._turns = resources.turns
        self._node_replies = resources.replies
        self._waits_for_turn = False
        self._node = node
        self._listener = listener
        self._apis = CONTROLLER_APIS if listener in node.config.controller_listener_names else BROKER_APIS
        self._may_act_as_broker = node.config.may_act_as_broker(listener)
        self._id = next(node.connections.ids)
        self._frame_bytes_max = node.config.socket_request_max_bytes
        self._intake = Intake(resources.shared_read_buffer, resources.reads)
        self._incoming = self._intake.frames
        self._replies = ReplyQueue()
        reply_bytes_max = node.config.queued_max_response_bytes_per_connection
        self._outflow = Outflow(self._replies, resources.replies, reply_bytes_max, node.clock.monotonic)
        self._kind: RequestKind | None = None
        self._barrier: Slot | None = None
        self._handling = self._is_sending_soon = False
        self._reading_paused = self._writing_paused = False
        self._transport: asyncio.Transport | None = None
        self._is_ending = False
        """Nothing is handled any more."""
        self._linger: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.peer = "?"
        self.is_lost = False
        self.last_active = self.last_served = self._loop.time()

    # The transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._outflow.open(self._transport)
        peername = transport.get_extra_info("peername")
        self.peer = str(peername[0]) if isinstance(peername, tuple) else str(peername)
        self._owner.opened(self)
        if self._incoming.held_bytes:
            self._loop.call_soon(self._go_on)  # what came with the end of the TLS handshake

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.is_lost = True
        if self._linger is not None:
            self._linger.cancel()
        self._owner.closed(self)
        self._forget_requests()
        self._intake.close()
        self._outflow.close()
        self._node.connections.closed(self._id)

    def _forget_requests(self) -> None:
        """The replies can't be delivered any more: stop what waits for them."""
        self._barrier = None
        self._incoming.clear()
        for slot in self._replies.forget():
            if isinstance(slot.later, asyncio.Task):
                # Not at once: cancelled before its first step, it would drop the handler's coroutine without awaiting
                # it.
                self._loop.call_soon(slot.later.cancel)
            elif slot.later is not None:
                slot.later.cancel()

    def get_buffer(self, size_hint: int) -> memoryview:
        return self._intake.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_ending:
            return
        self._intake.filled(nbytes)
        if self._incoming.only_grows:
            self.last_active = self._loop.time()
            return
        if self._transport is not None:
            self._handle_frames()
            if self._incoming.is_full:
                self._make_room()
        self._intake.settle()

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
        self._outflow.resumed()
        self._go_on()

    def close(self) -> None:
        """End the connection; what was written may still leave, for a while."""
        if self._transport is not None and not self._is_ending:
            self._send_ready()
            self._is_ending = True
            self._linger = self._loop.call_later(LINGER_S, self._transport.abort)
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once: what it has read is not handled, and what waits for replies is stopped."""
        if self._transport is not None:
            self._is_ending = True
            self._forget_requests()
            self._transport.abort()

    def _give_up(self) -> None:
        """End the connection because of a request: replies to those before it still leave, nothing else is handled."""
        self._send_ready()
        self._forget_requests()
        self.close()

    @property
    def is_idle(self) -> bool:
        return not self._replies.slots

    def is_request_stalled(self, now: float, timeout_s: float) -> bool:
        return self._intake.is_stalled(now, timeout_s, is_reading=not self._is_held() and not self._waits_for_turn)

    def are_replies_stalled(self, now: float, timeout_s: float) -> bool:
        return self._outflow.is_stalled(now, timeout_s)

    # Requests

    def _is_held(self) -> bool:
        """Nothing more is handled for now."""
        return self._barrier is not None or self._writing_paused or self._is_full()

    def _is_full(self) -> bool:
        """Too much waits behind a Produce."""
        replies = self._replies
        return len(replies.slots) >= REQUESTS_IN_FLIGHT_MAX or replies.held_bytes > REPLIES_HELD_BYTES_MAX

    def _go_on(self) -> None:
        """What held the requests up is gone."""
        if self._transport is None or self._handling or self._is_ending or self._waits_for_turn:
            return
        self._handle_frames()
        if self._incoming.is_full:
            self._make_room()
        self._intake.settle()
        self._resume_reading()

    def _resume_reading(self) -> None:
        is_stopped = self._intake.waits_for_room or self._waits_for_turn or self._is_ending
        if self._reading_paused and not is_stopped and not self._is_held() and self._transport is not None:
            self._reading_paused = False
            self._transport.resume_reading()

    def _handle_frames(self) -> None:
        self.last_active = self._loop.time()
        self._handling = True
        self._taken_at = now = self._now()
        ends_at = now + self._turns.turn_s
        incoming = self._incoming
        try:
            while (size := incoming.frame_size()) is not None:
                if self._node_replies.is_exhausted:
                    self._outflow.throttle()
                if self._is_held():
                    break
                if not 0 <= size <= self._frame_bytes_max:
                    self._owner.refused(
                        self, f"a frame of {size} bytes (socket.request.max.bytes is {self._frame_bytes_max})"
                    )
                    self._give_up()
                    return
                if self._taken_at > ends_at:
                    self._end_turn()
                    break
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

    def _end_turn(self) -> None:
        """Its time is up: others come first, then it goes on with what is in the buffer, and only then reads again."""
        self._waits_for_turn = True
        self._pause_reading()
        self._turns.stop(self._next_turn, self._loop, self._now)

    def _next_turn(self) -> None:
        self._waits_for_turn = False
        self._go_on()

    def _make_room(self) -> None:
        """The buffer is full of what can't be handled yet: requests behind a barrier, or one that is larger than it."""
        if self._is_held() or self._waits_for_turn or self._is_ending:
            self._pause_reading()
            return
        if not self._intake.grow(self._ask_for_room_again):
            self._pause_reading()

    def _ask_for_room_again(self) -> None:
        self._intake.waits_for_room = False
        self._go_on()

    def trim(self, *, is_idle: bool) -> None:
        """Give back memory that no request needs now."""
        self._intake.trim(is_idle=is_idle)

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
                outcome = kind.context.large_requests.serve(api, frame, kind.context, kind.body_position)
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

    def _new_kind(self, frame: memoryview) -> RequestKind | None:
        """Look closely at a header; None if we do not serve such a request."""
        header = read_request_header(frame)
        api = self._apis.get(header.api_key)
        if api is None and self._apis is CONTROLLER_APIS:
            api = REFUSED_ON_CONTROLLER.get(header.api_key)
        if api is None:
            is_controllers = header.api_key in CONTROLLER_APIS
            whose = " on a broker's listener; a controller's address is wanted (bootstrap.controllers)"
            self._owner.refused(self, f"unknown API key {header.api_key}{whose if is_controllers else ''}")
            return None
        served = api.versions_served(unstable=self._node.config.unstable_api_versions_enable)
        if header.api_version not in served:
            if api.key != API_VERSIONS:
                self._owner.refused(self, f"{api.name} version {header.api_version}, we serve {served[0]}-{served[-1]}")
                return None
            # Whatever a client speaks, it understands this answer in version 0, and learns what we speak.
            api = api._replace(handle=lambda frame, context, position: unsupported_version(), raw=True)
            header = header._replace(api_version=0)
        context = RequestContext(
            self._node,
            header.api_key,
            header.api_version,
            header.client_id,
            self._listener,
            self.peer,
            self._loop,
            self._id,
            self._may_act_as_broker,
            reply_room=self._outflow.fetch_room,
            hold_request=self._resources.reads.hold,
        )
        self._kind = kind_of(frame, header, api, context, self._stats.of(header.api_key, header.api_version))
        return self._kind

    def _take(self, kind: RequestKind, correlation_id: int, outcome: Handled) -> None:
        if outcome is None:
            now = self._now()
            kind.stats.answered(now - self._taken_at)
            self._taken_at = now
            return
        if not self._replies.slots and isinstance(outcome, (bytes, list)):
            # As ApiStats.answered does, without the call. The next request of this read, if any, begins where this one
            # ends.
            stats, now = kind.stats, self._now()
            took_s = now - self._taken_at
            stats.buckets[bisect_left(BOUNDS_S, took_s)] += 1
            stats.total_s += took_s
            self._taken_at = now
            if self._replies.add(kind, correlation_id, outcome) > READY_BYTES_MAX:
                self._send_ready()
            return
        slot = Slot(kind, correlation_id, self._taken_at)
        self._replies.slots.append(slot)
        self._taken_at = self._now()
        if isinstance(outcome, PendingReply):
            if not outcome.done:
                slot.later = outcome
                if not outcome.may_be_overtaken:
                    self._barrier = slot
            outcome.deliver_to(lambda reply: self._deliver(slot, reply))
        elif isinstance(outcome, Awaitable):
            self._barrier = slot
            slot.later = self._loop.create_task(
                self._await(slot, cast("Awaitable[Reply | PendingReply[Reply]]", outcome))
            )
        else:
            self._deliver(slot, outcome)

    async def _await(self, slot: Slot, outcome: Awaitable[Reply | PendingReply[Reply]]) -> None:
        reply: Reply | PendingReply[Reply] | Exception
        try:
            reply = await outcome
        except asyncio.CancelledError:
            # A connection that is gone cancels this itself. If it was cancelled from elsewhere, no answer will come any
            # more.
            if self._transport is not None and not self._is_ending:
                self._give_up()
            raise
        except Exception as error:
            reply = error
        if isinstance(reply, PendingReply):
            self._wait_on(slot, reply)
        else:
            self._deliver(slot, reply)

    def _wait_on(self, slot: Slot, later: PendingReply[Reply]) -> None:
        """What had to be awaited is done, and a reply will come: the next requests need not wait for that."""
        if self._transport is None or self._is_ending:
            later.cancel()
            return
        slot.later = later
        later.deliver_to(lambda reply: self._deliver(slot, reply))
        if self._barrier is slot and later.may_be_overtaken:
            self._barrier = None
            self._go_on_soon()

    def _deliver(self, slot: Slot, reply: Reply | Exception) -> None:
        """A reply is there, or the error that took its place. Raises nothing: the code that completed it has no part in
        this."""
        if self._transport is None or self._is_ending:
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

    def _put(self, slot: Slot, reply: Reply | Exception) -> None:
        """Put a reply in its place: it may leave once those before it have."""
        if isinstance(reply, Exception):
            raise reply
        kind = slot.kind
        kind.stats.answered(self._now() - slot.taken_at)
        if reply is None:  # a Produce with acks=0 that was awaited: its place in the order is all that it had
            self._replies.skip(slot)
            self._settled(slot)
            return
        if not isinstance(reply, (bytes, bytearray, list)):
            for code in errors_in(reply):
                self._stats.failed(kind.api.key, code)
            reply = encode_response(kind.api.key, kind.context.version, reply)
        self._replies.put(slot, reply if isinstance(reply, list) else [reply])
        self._outflow.note(slot.size_bytes)
        self._settled(slot)

    def _settled(self, slot: Slot) -> None:
        """A slot has its reply."""
        released = self._barrier is slot
        if released:
            self._barrier = None
        if not self._handling:
            if len(self._replies.slots) > 1:
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
        if not self._is_ending:
            self._send_ready()

    def _send_ready(self) -> None:
        replies = self._replies
        if replies.slots:
            was_full = self._is_full()
            replies.gather()
            if was_full and not self._is_full():
                self._go_on_soon()
        self._outflow.send()
