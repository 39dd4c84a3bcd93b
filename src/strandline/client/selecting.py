"""A small scheduler on sockets and a selector: the port of `flow/io.py` for callers that have no event loop.

It runs the client's coroutines only while a caller waits inside `run`, or calls `turn`. Between calls nothing happens:
no thread, no timer. Connecting, with TLS's handshake, blocks the caller for at most its timeout; everything after that
does not.

Always true: a Future wakes the one coroutine that awaits it, from the queue, never from inside `set_result`; the bytes
that a socket did not take yet are kept until it does. For one thread: nothing here is locked.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from strandline.client.errors import TimedOut
from strandline.client.flow.io import Operation, Receiver
from strandline.ports import Buffer

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")
READ_BYTES_MAX = 1 << 16
"""At once, until a large reply has a place: what is read before that is copied there."""
WRITE_PARTS_MAX = 64
"""Parts that are handed to the system at once; it takes at least that many."""


class SelectorFuture(Generic[T]):
    __slots__ = ("_done", "_error", "_result", "_scheduler", "_waiter")

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._done = False
        self._result: T
        self._error: BaseException | None = None
        self._waiter: Callable[[], None] | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, result: T) -> None:
        assert not self._done
        self._result = result
        self._finish()

    def set_exception(self, error: BaseException) -> None:
        assert not self._done
        self._error = error
        self._finish()

    def _finish(self) -> None:
        self._done = True
        if self._waiter is not None:
            self._scheduler.ready.append(self._waiter)

    def __await__(self) -> Generator[SelectorFuture[T], None, T]:
        if not self._done:
            yield self
        if self._error is not None:
            raise self._error
        return self._result

    def wake(self, waiter: Callable[[], None]) -> None:
        assert self._waiter is None, "a future is awaited once"
        self._waiter = waiter
        if self._done:
            self._scheduler.ready.append(waiter)


class SelectorTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class SocketTransport:
    def __init__(self, scheduler: Scheduler, connected: socket.socket, receiver: Receiver, is_tls: bool) -> None:
        self._scheduler = scheduler
        self._socket = connected
        self._receiver = receiver
        self._outgoing: deque[memoryview] = deque()
        self._is_closed = False
        self._is_tls = is_tls
        self._would_block = _tls_would_block() if is_tls else (BlockingIOError,)
        self._events = selectors.EVENT_READ
        scheduler.selector.register(connected, self._events, self)

    def write(self, parts: list[Buffer]) -> None:
        if not self._is_closed:
            self._outgoing.extend(memoryview(part) for part in parts if part)
            self._send()

    def close(self) -> None:
        self._end(None)

    def ready(self, events: int) -> None:
        """The selector found something to do."""
        if events & selectors.EVENT_READ:
            self._receive()
        if events & selectors.EVENT_WRITE and not self._is_closed:
            self._send()

    def _receive(self) -> None:
        # TLS may hold decrypted bytes that the selector does not see, so read until there are none.
        while not self._is_closed:
            try:
                space = self._receiver.space()
                if space is None:
                    data = self._socket.recv(READ_BYTES_MAX)
                    count = len(data)
                else:
                    with space:
                        count = self._socket.recv_into(space)
            except self._would_block:
                return
            except OSError as error:
                self._end(error)
                return
            if not count:
                self._end(None)
                return
            if space is None:
                self._receiver.received(data)
            else:
                self._receiver.filled(count)
            # Of a large reply there is often more, and if not, asking costs less than to wait for it.
            if not self._is_tls and self._receiver.space() is None:
                return

    def _send(self) -> None:
        try:
            while self._outgoing:
                if self._is_tls:
                    sent = self._socket.send(self._outgoing[0])
                else:
                    sent = self._socket.sendmsg(itertools.islice(self._outgoing, WRITE_PARTS_MAX))
                self._drop(sent)
        except self._would_block:
            pass
        except OSError as error:
            self._scheduler.ready.append(partial(self._end, error))
            return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
        if events != self._events and not self._is_closed:
            self._events = events
            self._scheduler.selector.modify(self._socket, events, self)

    def _drop(self, sent: int) -> None:
        """So many bytes are the system's now."""
        while sent:
            first = self._outgoing.popleft()
            if sent < len(first):
                self._outgoing.appendleft(first[sent:])
                return
            sent -= len(first)

    def _end(self, error: Exception | None) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._scheduler.selector.unregister(self._socket)
            self._socket.close()
            self._outgoing.clear()
            self._scheduler.ready.append(lambda: self._receiver.lost(error))


def _tls_would_block() -> tuple[type[OSError], ...]:
    import ssl  # not loaded by clients without TLS

    return BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError


class Scheduler:
    """An Io. `tls` is the context for brokers that speak TLS."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.ready: deque[Callable[[], None]] = deque()
        self.selector = selectors.DefaultSelector()
        self._tls = tls
        self._timers: list[tuple[float, int, SelectorTimer]] = []
        self._count = itertools.count()
        self._running: dict[int, Operation[None]] = {}

    # The port

    def now(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def future(self) -> SelectorFuture[T]:
        return SelectorFuture(self)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> SelectorTimer:
        timer = SelectorTimer(callback)
        heapq.heappush(self._timers, (self.now() + delay_s, next(self._count), timer))
        return timer

    def spawn(self, coroutine: Operation[None]) -> None:
        number = next(self._count)
        self._running[number] = coroutine
        self.ready.append(lambda: self._step(number))

    async def connect(self, host: str, port: int, timeout_s: float, receiver: Receiver) -> SocketTransport:
        connected = socket.create_connection((host, port), timeout_s)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connected = self._tls.wrap_socket(connected, server_hostname=host)
            connected.setblocking(False)
        except BaseException:
            connected.close()
            raise
        return SocketTransport(self, connected, receiver, self._tls is not None)

    # Running

    def run(self, coroutine: Operation[T], timeout_s: float | None = None) -> T:
        """Run until this coroutine is done, and everything else beside it; TimedOut after the time."""
        results: list[T] = []
        errors: list[Exception] = []

        async def main() -> None:
            try:
                results.append(await coroutine)
            except Exception as error:
                errors.append(error)

        deadline = None if timeout_s is None else self.now() + timeout_s
        number = next(self._count)
        self._running[number] = main()
        self.ready.append(lambda: self._step(number))
        try:
            while not (results or errors):
                if deadline is not None and self.now() >= deadline:
                    raise TimedOut(f"not done within {timeout_s} s")
                self.turn(deadline)
        finally:
            abandoned = self._running.pop(number, None)
            if abandoned is not None:
                abandoned.close()
        if errors:
            raise errors[0]
        return results[0]

    def turn(self, until: float | None = 0.0) -> None:
        """Wait for sockets and timers until then (None: for the next event; 0: not at all), then run what is ready."""
        times = [when for when in (until, self._timers[0][0] if self._timers else None) if when is not None]
        wait_s = 0.0 if self.ready else (max(0.0, min(times) - self.now()) if times else None)
        for key, events in self.selector.select(wait_s):
            key.data.ready(events)
        now = self.now()
        while self._timers and self._timers[0][0] <= now:
            callback = heapq.heappop(self._timers)[2].callback
            if callback is not None:
                callback()
        # A callback of the application may call `run`, and that takes from the same queue.
        for _ in range(len(self.ready)):
            if self.ready:
                self.ready.popleft()()

    def _step(self, number: int) -> None:
        coroutine = self._running.get(number)
        if coroutine is None:
            return
        try:
            future = coroutine.send(None)
        except StopIteration:
            del self._running[number]
        except BaseException:
            del self._running[number]
            raise
        else:
            future.wake(lambda: self._step(number))

    def close(self) -> None:
        for coroutine in list(self._running.values()):
            coroutine.close()
        self._running.clear()
        self.ready.clear()
        self.selector.close()
