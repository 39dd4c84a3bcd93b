"""One open connection to a broker: the core's connection joined to a stream of bytes.

Always true: every future that `send` returns is resolved, with the reply or with ConnectionLost; requests leave in the
order of the calls to `send`; bytes that were handed to the stream do not change before the reply, or the end of the
connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from strandline.client.core.addresses import Address, show
from strandline.client.core.connection import ClientConnection, RawReply, Reply
from strandline.client.core.versions import FinalizedFeatures
from strandline.client.errors import ConnectionLost
from strandline.client.flow.io import Future, Io, StreamTransport, Timer
from strandline.errors import KafkaError
from strandline.ports import Buffer

if TYPE_CHECKING:
    from strandline.wire.stubs.base import ApiRequest, ApiResponse

T = TypeVar("T")
R = TypeVar("R", bound="ApiResponse")
Waiting = Future[Any]
"""For the reply to any request; `send` says of which type it is."""


class Channel:
    """A Receiver; `open` makes it usable."""

    def __init__(
        self, io: Io, address: Address, connection: ClientConnection[Waiting], on_closed: Callable[[Channel], None]
    ) -> None:
        self.address = address
        self.is_closed = False
        self._io = io
        self._connection = connection
        self._on_closed = on_closed
        self._link: StreamTransport | None = None
        self._timer: Timer | None = None
        self._timer_at = 0.0
        self._ready: Future[None] | None = None
        self._why: KafkaError | None = None

    async def open(self, timeout_s: float) -> None:
        """Connect and agree on versions, or ConnectionLost."""
        deadline = self._io.now() + timeout_s
        try:
            self._link = await self._io.connect(*self.address, timeout_s, self)
        except (OSError, TimeoutError) as error:
            self._end(ConnectionLost(f"cannot connect to {show(self.address)}: {_reason(error)}"))
            raise self._error() from None
        if self.is_closed:
            self._link.close()
            raise self._error()
        self._ready = self._io.future()
        self._write([self._connection.open(deadline)])
        await self._ready
        self._ready = None

    @property
    def in_flight_count(self) -> int:
        return len(self._connection.in_flight)

    @property
    def features(self) -> FinalizedFeatures:
        """As the peer knew them when the connection was opened."""
        assert self._connection.versions is not None
        return self._connection.versions.features

    def serves(self, api_key: int) -> bool:
        """Whether the peer advertises it."""
        versions = self._connection.versions
        return versions is not None and versions.serves(api_key)

    def version_of(self, api_key: int) -> int:
        """The version that both sides would speak; UnsupportedApi if there is none."""
        if self._connection.versions is None:
            raise self._error()
        return self._connection.versions.pick(api_key)

    def send(
        self,
        api_key: int,
        message: ApiRequest[R],
        timeout_s: float,
        *,
        version_max: int | None = None,
        version_min: int = 0,
    ) -> Future[R]:
        """The future reply. UnsupportedApi if there is no version in common; ConnectionLost if it is closed."""
        return self._send(api_key, message, timeout_s, version_max, version_min, is_raw=False)

    def send_for_raw(
        self, api_key: int, message: ApiRequest, timeout_s: float, *, version_max: int | None = None
    ) -> Future[RawReply]:
        """The same, with a reply as it came."""
        return self._send(api_key, message, timeout_s, version_max, is_raw=True)

    def _send(
        self,
        api_key: int,
        message: ApiRequest,
        timeout_s: float,
        version_max: int | None,
        version_min: int = 0,
        *,
        is_raw: bool,
    ) -> Future[T]:
        if self.is_closed:
            raise self._error()
        future: Future[T] = self._io.future()
        deadline = self._io.now() + timeout_s
        parts = self._connection.send(
            api_key, message, deadline, future, version_max=version_max, version_min=version_min, is_raw=is_raw
        )
        self._write(parts)
        return future

    def wait_anew(self, timeout_s: float) -> None:
        """Let the time of what is in flight begin now. For a caller that was away: what came meanwhile was not read."""
        deadline = self._io.now() + timeout_s
        for request in self._connection.in_flight:
            request.deadline = max(request.deadline, deadline)

    def send_without_reply(self, api_key: int, message: ApiRequest, *, version_max: int | None = None) -> None:
        if self.is_closed:
            raise self._error()
        self._write(self._connection.send(api_key, message, 0.0, version_max=version_max, expects_reply=False))

    def _write(self, parts: list[Buffer]) -> None:
        assert self._link is not None
        self._link.write(parts)
        self._watch_deadline()

    def _watch_deadline(self) -> None:
        """One that waits for a patient request, a JoinGroup perhaps, is too late for an impatient one that follows."""
        deadline = self._connection.deadline()
        if deadline is None or (self._timer is not None and self._timer_at <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._io.call_later(max(0.0, deadline - self._io.now()), self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        deadline = self._connection.deadline()
        if self.is_closed or deadline is None:
            return
        if deadline > self._io.now():
            self._watch_deadline()
        else:
            self.close(ConnectionLost(f"{show(self.address)} did not answer in time"))

    # What the stream calls

    def received(self, data: bytes) -> None:
        if self.is_closed:
            return
        try:
            replies, outgoing = self._connection.receive(data)
        except KafkaError as error:
            self._give_up(error)
            return
        if outgoing:
            self._write([outgoing])
        if self._ready is not None and self._connection.ready and not self._ready.done():
            self._ready.set_result(None)
        self._resolve(replies)

    def space(self) -> memoryview | None:
        return None if self.is_closed else self._connection.space()

    def filled(self, count: int) -> None:
        if self.is_closed:
            return
        try:
            replies = self._connection.filled(count)
        except KafkaError as error:
            self._give_up(error)
            return
        self._resolve(replies)

    def _resolve(self, replies: list[Reply[Waiting]]) -> None:
        for request, message in replies:
            future = request.context
            if future is not None and not future.done():
                future.set_result(message)

    def _give_up(self, error: KafkaError) -> None:
        """Nothing more from there is believed."""
        self.close(type(error)(error.message) if isinstance(error, ConnectionLost) else error)

    def lost(self, error: Exception | None) -> None:
        self._end(ConnectionLost(f"{show(self.address)} closed the connection{f': {_reason(error)}' if error else ''}"))

    def close(self, why: KafkaError | None = None) -> None:
        self._end(why or ConnectionLost(f"the connection to {show(self.address)} was closed by us"))
        if self._link is not None:
            self._link.close()

    def _end(self, why: KafkaError) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._why = why
        if self._timer is not None:
            self._timer.cancel()
        futures = [request.context for request in self._connection.in_flight if request.context is not None]
        self._connection.in_flight.clear()
        if self._ready is not None:
            futures.append(self._ready)
        for future in futures:
            if not future.done():
                future.set_exception(self._error())
        self._on_closed(self)

    def _error(self) -> KafkaError:
        """A new exception each time: one that is raised in many places would collect their tracebacks."""
        assert self._why is not None
        if isinstance(self._why, ConnectionLost):
            return type(self._why)(self._why.message)
        return self._why


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
