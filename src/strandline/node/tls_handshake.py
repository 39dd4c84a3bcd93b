"""One connection to a TLS listener until its handshake is done.

Always true: it is counted from the moment it was accepted, and closed when the handshake takes too long (SEC-T14); it
has no buffer for requests before that. What the peer sends right after the handshake waits for the connection, which
takes its place.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

from strandline.node.tasks import AsyncWork

if TYPE_CHECKING:
    from strandline.node.connection import Connection
    from strandline.node.listener import Listener

SHUTDOWN_TIMEOUT_S = 5.0
"""How long a peer may take to answer the end of its TLS session."""


class TlsHandshake(asyncio.Protocol):
    def __init__(self, listener: Listener, context: ssl.SSLContext, timeout_s: float) -> None:
        self._listener = listener
        self._context = context
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None
        self._handshaking: AsyncWork[asyncio.Transport | None] | None = None
        self.peer = "?"
        self.last_active = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peername = transport.get_extra_info("peername")
        self.peer = str(peername[0]) if isinstance(peername, tuple) else str(peername)
        if not self._listener.begun(self):
            self._transport.abort()
            return
        self._connection = self._listener.new_connection()
        self._handshaking = self._loop.start_tls(
            self._transport,
            self._connection,
            self._context,
            server_side=True,
            ssl_handshake_timeout=self._timeout_s,
            ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
        )
        self._go_on()

    def _go_on(self, _: object = None) -> None:
        """Run the handshake up to its next wait. Not as a task, which would begin a turn of the loop later: what the
        peer sends until then would come here, and be lost."""
        assert self._handshaking is not None, "it begins with the connection"
        try:
            waits_for = self._handshaking.send(None)
        except StopIteration as done:
            self._done(done.value)
        except Exception as error:  # whatever a peer's bytes bring about ends here
            self._listener.ended(self)
            self._listener.handshake_failed(self, str(error) or type(error).__name__)
            self.abort()
        else:
            waits_for._asyncio_future_blocking = False  # as a task would: it is we who wait
            waits_for.add_done_callback(self._go_on)

    def _done(self, secured: asyncio.Transport | None) -> None:
        self._listener.ended(self)
        assert self._connection is not None
        if secured is not None and not self._connection.is_lost:
            self._connection.connection_made(secured)

    def connection_lost(self, error: Exception | None) -> None:
        """Only before TLS took over: it was not let in, or the peer was gone at once."""
        self._listener.ended(self)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
