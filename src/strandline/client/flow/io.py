"""The port through which the client's operations reach the world: connections, time, and waiting.

Two shells stand behind it, asyncio (`aio.py`) and sockets with a selector (`blocking.py`).

Always true: a Future is awaited by at most one coroutine, because a shell may cancel what a coroutine awaits; what
several wait for is a Condition. `received` and `lost` of a Receiver are called from the loop, never from inside
`write`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeAlias, TypeVar

from strandline.ports import Buffer

T = TypeVar("T")
Operation: TypeAlias = Coroutine[Any, None, T]
"""What a shell runs. What it yields on its way is between the shell and the shell's futures."""


class Future(Awaitable[T], Protocol[T]):
    def done(self) -> bool: ...

    def set_result(self, result: T, /) -> None: ...

    def set_exception(self, error: BaseException, /) -> None: ...


class Timer(Protocol):
    def cancel(self) -> None: ...


class Receiver(Protocol):
    def received(self, data: bytes) -> None: ...

    def space(self) -> memoryview | None:
        """Where the next bytes belong, if they have a place;
        a shell may write there, let go of it and call `filled`.
        """

    def filled(self, count: int) -> None:
        """The next so many bytes are in the space; nothing was handed over with `received` since."""

    def lost(self, error: Exception | None) -> None:
        """Nothing more comes. Called once, also after our own `close`."""


class StreamTransport(Protocol):
    """An open stream of bytes to a broker."""

    def write(self, parts: list[Buffer]) -> None:
        """One after the other. They do not change before what they ask for is answered, or the link is lost."""

    def close(self) -> None: ...


class Io(Protocol):
    def now(self) -> float:
        """Monotonic seconds."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, for timestamps of records."""

    def future(self) -> Future[T]: ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer: ...

    def spawn(self, coroutine: Operation[None]) -> None:
        """Run it beside the caller. It handles its own errors."""

    async def connect(self, host: str, port: int, timeout_s: float, receiver: Receiver) -> StreamTransport:
        """OSError or TimeoutError if the peer does not answer."""


class Condition:
    """What several coroutines wait for, each on a future of its own: `notify_all` wakes all who wait now."""

    __slots__ = ("_io", "_waiters")

    def __init__(self, io: Io) -> None:
        self._io = io
        self._waiters: list[Future[bool]] = []

    def notify_all(self) -> None:
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(True)

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Until it is notified, or the time is over: then False."""
        future: Future[bool] = self._io.future()
        self._waiters.append(future)
        timer = None
        if timeout_s is not None:
            timer = self._io.call_later(
                max(0.0, timeout_s), lambda: None if future.done() else future.set_result(False)
            )
        try:
            return await future
        finally:
            if timer is not None:
                timer.cancel()
            if future in self._waiters:
                self._waiters.remove(future)


class FifoLock:
    """One at a time, in the order in which they asked: `async with turns`."""

    __slots__ = ("_io", "_is_taken", "_waiters")

    def __init__(self, io: Io) -> None:
        self._io = io
        self._is_taken = False
        self._waiters: deque[Future[None]] = deque()

    async def __aenter__(self) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        future: Future[None] = self._io.future()
        self._waiters.append(future)
        try:
            await future
        except BaseException:
            # Who gave up waiting passes on the turn that was given to it a moment before.
            if future in self._waiters:
                self._waiters.remove(future)
            else:
                self._pass_on()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        while self._waiters:
            future = self._waiters.popleft()
            if not future.done():
                future.set_result(None)
                return
        self._is_taken = False


async def sleep(io: Io, delay_s: float) -> None:
    if delay_s > 0:
        await Condition(io).wait(delay_s)


async def gather(io: Io, awaitables: list[Awaitable[T]]) -> list[T]:
    """All of them, beside each other. If some fail, the first error is raised once all have ended."""
    if len(awaitables) == 1:
        return [await awaitables[0]]
    results: dict[int, T] = {}
    errors: list[Exception] = []
    done: Future[None] = io.future()
    left = len(awaitables)

    async def run(index: int, awaitable: Awaitable[T]) -> None:
        nonlocal left
        try:
            results[index] = await awaitable
        except Exception as error:
            errors.append(error)
        finally:
            left -= 1
            if not left and not done.done():
                done.set_result(None)

    for index, awaitable in enumerate(awaitables):
        io.spawn(run(index, awaitable))
    if awaitables:
        await done
    if errors:
        raise errors[0]
    return [results[index] for index in range(len(awaitables))]
