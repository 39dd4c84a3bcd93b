"""One direction of a simulated TCP connection: from the writer's buffers through the air into the reader's window.

Always true: bytes arrive in order, each once, or not at all; a segment is copied out of the writer's memory only when it
leaves, so a caller that reuses a buffer after `write` sends what the buffer holds by then; a cut holds bytes back and does not
lose them, until TCP gives up; a reset comes after a prefix of what was in flight; all that is delivered is recorded.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from typing import TYPE_CHECKING

from strandline.sim.context import ProcessState

if TYPE_CHECKING:
    from strandline.sim.network import Network
    from strandline.sim.transport import SimTransport

WINDOW_BYTES = 1 << 18
"""What may be in the air or unread at the reader, as the socket buffers of a real connection allow."""

END_OF_STREAM = b"FIN"
RESET = b"RST"


class TcpSegment:
    __slots__ = ("data", "signal", "waiting")

    def __init__(self, data: bytes, signal: bytes = b"") -> None:
        self.data = data
        self.signal = signal
        self.waiting = False
        """It is due, but the way is cut."""


class Pipe:
    """`is_choppy`: what is written leaves, and is read, in pieces of any size; otherwise all that is there at once."""

    def __init__(self, network: Network, number: int, source: str, target: str, is_choppy: bool) -> None:
        self.network = network
        self.is_choppy = is_choppy
        self.number = number
        self.source = source
        self.target = target
        self.writer: SimTransport
        self.reader: SimTransport
        self.back: Pipe
        self.outgoing: deque[memoryview] = deque()
        self.outgoing_bytes = 0
        self.flying: deque[TcpSegment] = deque()
        self.flying_bytes = 0
        self.arrived = bytearray()
        self.ended = False
        self.reset: OSError | None = None
        self.reset_sent = False
        self.blocked_writer = False
        self.loses_next = False
        """The connection ends with the next bytes that leave, and before their last one arrives."""
        self._last_due = 0.0
        self._held_until = 0.0
        self._stalled_since: float | None = None

    # The writer's side

    def push(self, data: memoryview) -> None:
        self.outgoing.append(data)
        self.outgoing_bytes += len(data)

    def room(self) -> int:
        return WINDOW_BYTES - self.flying_bytes - len(self.arrived)

    def send_some(self) -> bool:
        """Let one segment leave, of any size up to what is there; False if the window is closed."""
        room = self.room()
        if room <= 0:
            self.blocked_writer = True
            return False
        size = min(self.outgoing_bytes, room)
        if self.is_choppy and size > 1:
            randomness = self.network.randomness
            if randomness.random() < self.network.split_probability:
                size = randomness.randint(1, size)
        data = self._take_outgoing(size)
        if self.network.tap is not None:
            self.network.tap(self, data)
        self._fly(TcpSegment(data))
        if self.loses_next:
            self.loses_next = False
            self.writer.break_off(lost_bytes_min=1)
        return True

    def _take_outgoing(self, size: int) -> bytes:
        outgoing = self.outgoing
        self.outgoing_bytes -= size
        if len(outgoing) == 1 and not self.outgoing_bytes:
            with outgoing.popleft() as whole:
                return bytes(whole)
        parts: list[bytes] = []
        while size:
            head = outgoing[0]
            if len(head) <= size:
                parts.append(bytes(head))
                outgoing.popleft().release()
            else:
                parts.append(bytes(head[:size]))
                outgoing[0] = head[size:]
            size -= len(parts[-1])
        return b"".join(parts)

    def drop_outgoing(self) -> None:
        while self.outgoing:
            self.outgoing.popleft().release()
        self.outgoing_bytes = 0

    def finish(self, signal: bytes) -> None:
        """Send END_OF_STREAM or RESET after the bytes in flight."""
        self._fly(TcpSegment(b"", signal))

    def lose_tail(self, lost_bytes_min: int = 0) -> None:
        """Keep a random prefix of the bytes in flight, down to the middle of a segment."""
        keep = self.network.randomness.randint(0, max(0, self.flying_bytes - lost_bytes_min))
        for segment in self.flying:
            segment.data, segment.signal = segment.data[:keep], b""
            keep -= len(segment.data)
        self.flying_bytes = sum(len(segment.data) for segment in self.flying)

    def lose_next(self) -> None:
        """Of what is in flight, or else of what leaves next, the end never arrives, and the connection is reset."""
        if self.flying_bytes:
            self.writer.break_off(lost_bytes_min=1)
        else:
            self.loses_next = True

    def hold_until(self, when: float) -> None:
        """Nothing arrives before then: neither what is in flight nor what leaves until then."""
        self._held_until = max(self._held_until, when)

    def _fly(self, segment: TcpSegment) -> None:
        network, size = self.network, len(segment.data)
        link = network.link(self.source, self.target)
        due = network.loop.time() + link.draw_latency(network.randomness)
        if due < self._last_due:
            due = self._last_due
        if link.bytes_per_s:
            due += size / link.bytes_per_s
        self._last_due = due
        self.flying.append(segment)
        self.flying_bytes += size
        network.loop.schedule(due, self._due, segment)

    # In the air

    def _due(self, segment: TcpSegment) -> None:
        network, flying = self.network, self.flying
        if self._held_until > network.loop.time():
            network.loop.schedule(self._held_until, self._due, segment)
        elif network.is_whole and self._stalled_since is None and flying[0] is segment:
            flying.popleft()
            self.flying_bytes -= len(segment.data)
            self._deliver(segment)
        else:
            segment.waiting = True
            if self._stalled_since is None or flying[0] is segment:
                self._deliver_waiting()  # else it follows what is held back, with TCP's next retransmission

    def _deliver_waiting(self) -> None:
        while self.flying and self.flying[0].waiting:
            if self.network.is_cut(self.source, self.target):
                self._stall()
                return
            segment = self.flying.popleft()
            self.flying_bytes -= len(segment.data)
            self._deliver(segment)
        if self.network.is_cut(self.target, self.source):
            self._stall()  # it arrived, but no acknowledgement comes back
        elif self._stalled_since is not None:
            self._stalled_since = None
            self.network.stalled.pop(self, None)
            self.credit()

    def _deliver(self, segment: TcpSegment) -> None:
        network, reader, signal = self.network, self.reader, segment.signal
        network.loop.trace.record(signal or b"recv", network.loop.time(), self.number, segment.data)
        if signal == RESET:
            if network.randomness.random() < 0.5:
                self.arrived.clear()
            self.fail(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
        elif reader.gone:
            if segment.data and not self.back.reset_sent:
                self.back.reset_sent = True
                self.back.finish(RESET)
        elif self.reset is not None:
            return  # what left after the reset did: nothing of it is taken
        elif signal == END_OF_STREAM:
            self.ended = True
            reader.readable()
        elif segment.data:
            self.arrived += segment.data
            reader.readable()

    def fail(self, error: OSError) -> None:
        """The reader's socket is broken; it learns of it when it reads or writes next."""
        if self.reset is None and not self.reader.gone:
            self.reset = error
            self.reader.readable()
            self.back.drop_in_air()
            if self.back.outgoing:
                self.reader.writable()

    def drop_in_air(self) -> None:
        for segment in self.flying:
            segment.data = b""
            if segment.signal == END_OF_STREAM:
                segment.signal = b""
        self.flying_bytes = 0

    def _stall(self) -> None:
        if self._stalled_since is None:
            loop = self.network.loop
            self._stalled_since = loop.time()
            self.network.stalled[self] = None
            loop.schedule(self._stalled_since + self.network.give_up_s, self._give_up, self._stalled_since)

    def heal(self) -> None:
        """The way may be open again: TCP finds out at its next retransmission, a while later if the cut was long."""
        if self._stalled_since is None or self.network.is_cut(self.source, self.target):
            return
        loop = self.network.loop
        backoff = min(loop.time() - self._stalled_since, self.network.retransmit_max_s)
        delay = self.network.link(self.source, self.target).latency_s + self.network.randomness.uniform(0, backoff)
        loop.schedule(loop.time() + delay, self._retransmit)

    def _retransmit(self, _: None) -> None:
        if self._stalled_since is not None:
            self._deliver_waiting()

    def _give_up(self, stalled_since: float) -> None:
        if self._stalled_since == stalled_since:
            self.network.stalled.pop(self, None)
            self._stalled_since = None
            self.drop_in_air()
            self.back.fail(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))

    # The reader's side

    def take(self, size: int) -> bytes:
        data = bytes(self.arrived[:size])
        del self.arrived[:size]
        if self.blocked_writer:
            self.credit()
        return data

    def credit(self) -> None:
        """The window opened: the writer may go on, if the window update can reach it."""
        if self.blocked_writer and self.writer.process.state is not ProcessState.DEAD:
            if self.network.is_cut(self.target, self.source):
                self._stall()
            else:
                self.blocked_writer = False
                self.writer.writable()
