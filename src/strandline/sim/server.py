"""A listening port: connections wait in the kernel's backlog until the process takes them.

Always true: a connection is accepted in the context that created the server; closing the server resets what still waits
in the backlog and leaves accepted connections alone.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
from collections.abc import Callable

from strandline.sim.context import ProcessState, SimProcess
from strandline.sim.loop import SimLoop
from strandline.sim.transport import SimTransport

Address = tuple[str, int]


class SimListener:
    def __init__(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        context: contextvars.Context,
        process: SimProcess,
        sockname: Address,
        backlog: int,
    ) -> None:
        self.factory = factory
        self.context = context
        self.process = process
        self.sockname = sockname
        self.backlog = backlog
        self.active: dict[SimTransport, None] = {}
        self.idle: asyncio.Event = asyncio.Event()
        self._backlog: dict[SimTransport, None] = {}

    @property
    def waiting(self) -> int:
        return len(self._backlog)

    def arrive(self, loop: SimLoop, transport: SimTransport) -> None:
        self._backlog[transport] = None
        loop.call_soon(self._accept, loop, transport, context=self.context)

    def close(self) -> None:
        for transport in self._backlog:
            transport.die(silently=False)
        self._backlog.clear()

    def _accept(self, loop: SimLoop, transport: SimTransport) -> None:
        if transport not in self._backlog:
            return
        del self._backlog[transport]
        self.active[transport] = None
        transport.on_lost = lambda: self._detach(transport)
        try:
            transport.start(self.factory())
        except Exception as error:
            loop.call_exception_handler(
                {"message": "a new connection failed", "exception": error, "transport": transport}
            )
            transport.abort()

    def _detach(self, transport: SimTransport) -> None:
        self.active.pop(transport, None)
        if not self.active:
            self.idle.set()


class _Socket:
    """What a server shows of its socket."""

    family = 2
    type = 1

    def __init__(self, sockname: Address) -> None:
        self._sockname = sockname

    def getsockname(self) -> Address:
        return self._sockname


class SimServer(asyncio.AbstractServer):
    def __init__(
        self, loop: SimLoop, listeners: dict[Address, SimListener], address: Address, listener: SimListener
    ) -> None:
        self._loop = loop
        self._listeners = listeners
        self._address = address
        self._listener = listener
        self._closed = False
        self._forever: asyncio.Future[None] | None = None

    @property
    def sockets(self) -> tuple[_Socket, ...]:
        return () if self._closed else (_Socket(self._listener.sockname),)

    def get_loop(self) -> SimLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._listeners.get(self._address) is self._listener

    async def start_serving(self) -> None:
        assert not self._closed, "a closed server does not serve again"
        if not self.is_serving():
            if self._address in self._listeners:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            self._listeners[self._address] = self._listener

    async def serve_forever(self) -> None:
        await self.start_serving()
        self._forever = self._loop.create_future()
        try:
            await self._forever
        except asyncio.CancelledError:
            self.close()
            await self.wait_closed()
            raise

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self.is_serving():
                del self._listeners[self._address]
            self._listener.close()
            if self._forever is not None and not self._forever.done():
                self._forever.cancel()

    async def wait_closed(self) -> None:
        """Wait for the accepted connections too, as newer asyncio does; uvloop returns at once."""
        while self._closed and any(t.process.state is not ProcessState.DEAD for t in self._listener.active):
            self._listener.idle.clear()
            await self._listener.idle.wait()
