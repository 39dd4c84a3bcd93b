"""The client on asyncio's event loop.

    async with AsyncClient("127.0.0.1:9092", clock=SystemClock(), randomness=random.Random()) as client:
        producer = Producer(client)
        await producer.send("topic", b"value")
        await producer.close()

Only the running loop is used, its time and its connections: no socket, thread or clock of our own. So the same code
runs on a simulated loop, where hosts are names and time is virtual. Wall time (record timestamps) and randomness
(jitter, the choice of brokers) come in as arguments.

Always true: bytes given to a transport are `bytes` that do not change, however long the transport holds them.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TypeVar, cast

from strandline.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from strandline.client.core.addresses import parse_addresses
from strandline.client.flow.admin import FlowAdmin as Admin
from strandline.client.flow.client import FlowClient
from strandline.client.flow.consumer import FlowConsumer as Consumer
from strandline.client.flow.io import Future, Operation, Receiver, StreamTransport, Timer
from strandline.client.flow.producer import FlowProducer as Producer
from strandline.ports import Buffer, Clock

T = TypeVar("T")

__all__ = ["Admin", "AsyncClient", "ClientConfig", "Consumer", "ConsumerConfig", "Producer", "ProducerConfig"]


class _AsyncioStream(asyncio.Protocol):
    """A Link, and the loop's side of it."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._receiver.received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._receiver.lost(error)

    def write(self, parts: list[Buffer]) -> None:
        # One that is closing refuses, and soon says that it is lost.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(parts))

    def close(self) -> None:
        # abort, not close: what is still to be written is of no use to anybody.
        if self._transport is not None:
            self._transport.abort()


class AsyncioIo:
    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, tls: ssl.SSLContext | None) -> None:
        self._loop = loop
        self._clock = clock
        self._tls = tls
        self._tasks: dict[asyncio.Task[None], None] = {}
        """The loop keeps only weak references to tasks."""

    def now(self) -> float:
        return self._loop.time()

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def future(self) -> Future[T]:
        return self._loop.create_future()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_s, callback)

    def spawn(self, coroutine: Operation[None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)

    async def stop(self) -> None:
        """End what still runs beside the caller."""
        for task in list(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def connect(self, host: str, port: int, timeout_s: float, receiver: Receiver) -> StreamTransport:
        server_hostname = None if self._tls is None else host
        async with asyncio.timeout(timeout_s):
            _, stream = await self._loop.create_connection(
                lambda: _AsyncioStream(receiver), host, port, ssl=self._tls, server_hostname=server_hostname
            )
        return stream


class AsyncClient(FlowClient):
    """Made inside a running loop; `tls` is the context for brokers that speak TLS."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        clock: Clock,
        randomness: random.Random,
        config: ClientConfig | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._asyncio = AsyncioIo(asyncio.get_running_loop(), clock, tls)
        super().__init__(self._asyncio, parse_addresses(bootstrap_servers), config or ClientConfig(), randomness)

    async def close(self) -> None:
        await super().close()
        await self._asyncio.stop()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
