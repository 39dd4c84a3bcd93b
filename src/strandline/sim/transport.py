"""One end of a simulated TCP connection, as asyncio's protocols see it, and as unkind as uvloop's transports are.

`write` keeps the caller's buffer and does not copy it before the turn ends. A BufferedProtocol is asked for a buffer also
when no bytes follow, and all of it that ever held bytes is poisoned before new ones are put at its front: a view that was
kept of an earlier frame turns to garbage as soon as that memory is offered again. What the transport cannot see is memory
that a connection recycles on its own; a connection may run `poison` over a frame once its handler has returned. A plain
Protocol gets fresh bytes.

Always true: `connection_made`, then data, then at most one `eof_received`, then `connection_lost` exactly once, all in the
context that opened the connection; no data while reading is paused.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterable
from typing import Any, cast

from strandline.ports import Buffer
from strandline.sim.context import SimProcess
from strandline.sim.handles import SimHandle
from strandline.sim.pipe import END_OF_STREAM, RESET, Pipe

READ_BYTES_MAX = 1 << 18
SIZE_HINT = 1 << 16
HIGH_WATER_BYTES = 1 << 16
POISON_NEW_BYTES = 1 << 12
_POISON = memoryview(b"\xdb" * (1 << 20))


def poison(view: memoryview | bytearray) -> None:
    """Overwrite memory that is no longer valid, so that code that kept a view of it reads garbage."""
    target = memoryview(view)
    for start in range(0, len(target), len(_POISON)):
        part = target[start : start + len(_POISON)]
        part[:] = _POISON[: len(part)]


class SimTransport:
    """Not an `asyncio.Transport` by type, as uvloop's is not: an isinstance check would pass here and fail there."""

    def __init__(
        self,
        process: SimProcess,
        context: contextvars.Context,
        outbound: Pipe,
        inbound: Pipe,
        sockname: tuple[str, int],
        peername: tuple[str, int],
    ) -> None:
        self._extra: dict[str, object] = {"sockname": sockname, "peername": peername}
        self.process = process
        self.host, self.peer_host = sockname[0], peername[0]
        self.is_client = False
        self.gone = False
        """The socket is closed, by us or because the process died: what still arrives is answered with a reset."""
        self.on_lost: Callable[[], None] | None = None
        self._outbound = outbound
        self._inbound = inbound
        self._network = outbound.network
        self._loop = outbound.network.loop
        self._context = context
        self._read_handle = SimHandle(self._read_ready, (), self._loop, context)
        self._write_handle = SimHandle(self._write_ready, (), self._loop, context)
        self._protocol: asyncio.BaseProtocol | None = None
        self._closing = False
        self._lost = False
        self._reading = False
        self._read_planned = False
        self._write_planned = False
        self._eof_written = False
        self._eof_seen = False
        self._end_sent = False
        self._writing_paused = False
        self._high = HIGH_WATER_BYTES
        self._low = HIGH_WATER_BYTES // 4
        self._offered_max = 0
        """The greatest size of a buffer that was offered: how far a smaller one begins behind the start of it."""
        self._filled_upto = 0
        """How far from that start bytes were ever put."""

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection to its protocol; runs in the connection's context."""
        self._protocol = protocol
        protocol.connection_made(cast(asyncio.BaseTransport, self))
        if not self._closing and not self._reading:
            self.resume_reading()

    # asyncio's interface

    def get_extra_info(self, name: str, default: object = None) -> Any:
        return self._extra.get(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._closing:
            self._reading = True
            self.readable()

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return self._outbound.outgoing_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low
        self._watch_high_water()

    def write(self, data: Buffer) -> None:
        self._check_writable()
        self._push(data)
        self._start_writing()

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        self._check_writable()
        for data in list_of_data:
            self._push(data)
        self._start_writing()

    def write_eof(self) -> None:
        if not self._eof_written and not self._closing:
            self._eof_written = True
            if not self._outbound.outgoing:
                self._send_end()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._reading = False
            if not self._outbound.outgoing:
                self._finish(None)

    def abort(self) -> None:
        self._drop(None)

    # What the pipes and the network call

    def readable(self) -> None:
        if self._reading and not self._read_planned:
            inbound = self._inbound
            if inbound.arrived or inbound.reset is not None or (inbound.ended and not self._eof_seen):
                self._read_planned = True
                self._loop.make_ready(self.process, self._read_handle)

    def writable(self) -> None:
        if not self._write_planned and not self.gone:
            self._write_planned = True
            if self._network.randomness.random() < self._network.hold_probability:
                delay = self._network.randomness.uniform(0, self._network.hold_s_max)
                self._loop.call_later(delay, self._write_ready, context=self._context)
            elif self._loop.running is self.process:
                self.process.ends_turn.append(self._write_handle)
            else:
                self._loop.make_ready(self.process, self._write_handle)

    def die(self, silently: bool) -> None:
        """The process is gone. Its kernel says goodbye to the peer, unless the whole host went dark."""
        self.gone = self._closing = self._lost = True
        self._reading = False
        self._outbound.drop_outgoing()
        unread = bool(self._inbound.arrived)
        self._inbound.arrived.clear()
        if silently:
            self._outbound.lose_tail()
        elif unread or self._network.randomness.random() < 0.5:
            self._outbound.lose_tail()
            self._outbound.finish(RESET)
        else:
            self._outbound.finish(END_OF_STREAM)

    def break_off(self, lost_bytes_min: int = 0) -> None:
        """A reset out of nowhere, as from a middlebox: both ends lose the connection after any prefix of the bytes.

        Of what this end sent, so many of the bytes in flight are surely lost.
        """
        self._outbound.lose_tail(lost_bytes_min)
        self._outbound.finish(RESET)
        self._inbound.lose_tail()
        self._inbound.finish(RESET)

    def lose_replies(self) -> None:
        """Called at the client's end."""
        self._inbound.lose_next()

    def delay_bytes(self, until: float) -> None:
        self._outbound.hold_until(until)
        self._inbound.hold_until(until)

    # Writing

    def _check_writable(self) -> None:
        if self._eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._lost:
            raise RuntimeError(f"unable to perform operation on {self!r}; the handler is closed")

    def _push(self, data: Buffer) -> None:
        view = memoryview(data)  # TypeError here if it is no buffer
        if view.nbytes and not self._closing:
            self._outbound.push(view.cast("B") if view.format != "B" or view.ndim != 1 else view)

    def _start_writing(self) -> None:
        if self._outbound.outgoing:
            self._watch_high_water()
            if not self._outbound.blocked_writer:
                self.writable()

    def _watch_high_water(self) -> None:
        if self._outbound.outgoing_bytes > self._high and not self._writing_paused:
            self._writing_paused = True
            self.get_protocol().pause_writing()

    def _write_ready(self) -> None:
        self._write_planned = False
        outbound = self._outbound
        if self._lost:
            return
        if self._inbound.reset is not None:
            self._drop(self._inbound.reset)
            return
        if outbound.outgoing and outbound.send_some() and outbound.outgoing:
            self.writable()
        if self._writing_paused and outbound.outgoing_bytes <= self._low:
            self._writing_paused = False
            self.get_protocol().resume_writing()
        if not outbound.outgoing and not self.gone:
            if self._closing:
                self._finish(None)
            elif self._eof_written:
                self._send_end()

    def _send_end(self) -> None:
        if not self._end_sent:
            self._end_sent = True
            self._outbound.finish(END_OF_STREAM)

    # Reading

    def _read_ready(self) -> None:
        self._read_planned = False
        if not self._reading or self._closing:
            return
        inbound = self._inbound
        try:
            if inbound.arrived:
                self._receive(min(len(inbound.arrived), READ_BYTES_MAX))
            elif inbound.reset is not None:
                self._drop(inbound.reset)
            elif inbound.ended and not self._eof_seen:
                self._eof_seen = True
                protocol = self.get_protocol()
                assert isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol)
                if not protocol.eof_received():
                    self.close()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._loop.call_exception_handler(
                {
                    "message": "Fatal error: the protocol failed",
                    "exception": error,
                    "transport": self,
                    "protocol": self._protocol,
                }
            )
            self._drop(error)
        self.readable()

    def _receive(self, size: int) -> None:
        inbound, network, protocol = self._inbound, self._network, self._protocol
        randomness = network.randomness
        if inbound.is_choppy and size > 1 and randomness.random() < network.split_probability:
            size = randomness.randint(1, size)
        if not isinstance(protocol, asyncio.BufferedProtocol):
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(inbound.take(size))
            return
        if randomness.random() < network.empty_read_probability:
            with memoryview(protocol.get_buffer(SIZE_HINT)) as offered:
                self._poison(offered)
        with memoryview(protocol.get_buffer(SIZE_HINT)) as offered:
            if not len(offered):
                raise RuntimeError("get_buffer() returned an empty buffer")
            start = self._poison(offered)
            size = min(size, len(offered))
            offered[:size] = inbound.take(size)
            self._filled_upto = max(self._filled_upto, start + size)
            protocol.buffer_updated(size)

    def _poison(self, offered: memoryview) -> int:
        """Poison what may have held bytes; where this begins, if it is the rest of the greatest buffer that was offered."""
        size = len(offered)
        if size > self._offered_max:  # another buffer than those before, and perhaps one that was used elsewhere
            self._filled_upto = min(size, POISON_NEW_BYTES)
            self._offered_max = size
        start = self._offered_max - size
        stale = self._filled_upto - start
        if stale > 0:
            offered[:stale] = _POISON[:stale] if stale <= len(_POISON) else b"\xdb" * stale
        return start

    # The end

    def _drop(self, error: BaseException | None) -> None:
        if not self.gone:
            self._closing = True
            self._reading = False
            self._outbound.drop_outgoing()
            self._finish(error)

    def _finish(self, error: BaseException | None) -> None:
        assert self._closing
        assert not self.gone
        self.gone = True
        self._reading = False
        if self._inbound.reset is None:
            if self._inbound.arrived:  # closing a socket with unread bytes resets it
                self._outbound.finish(RESET)
            else:
                self._send_end()
        self._loop.call_soon(self._call_connection_lost, error, context=self._context)

    def _call_connection_lost(self, error: BaseException | None) -> None:
        assert not self._lost, "connection_lost is called once"
        self._lost = True
        self._network.forget(self)
        if self._protocol is not None:
            self._protocol.connection_lost(error if error is None or isinstance(error, Exception) else None)
        if self.on_lost is not None:
            self.on_lost()
