"""One address that the node listens on, and the connections it has there.

Always true: the number of connections is bounded, in all and per peer; an idle one is closed after `connections.max.idle.ms`;
a peer that breaks the protocol loses its connection and nothing else happens.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections import Counter
from typing import Any

from strandline.api.context import Broker
from strandline.api.request_stats import RequestStats
from strandline.config.listeners import Listener as ListenerConfig
from strandline.config.tls import TlsConfig
from strandline.node.connection import Connection
from strandline.node.logger import Logger
from strandline.node.read_budget import ReadBudget

IDLE_CHECK_S = 1.0
SYSTEM_DEFAULT = -1


class Listener:
    def __init__(
        self,
        config: ListenerConfig,
        broker: Broker,
        logger: Logger,
        budget: ReadBudget | None = None,
        stats: RequestStats | None = None,
    ) -> None:
        self.config = config
        self.budget = budget or ReadBudget()
        self.stats = stats or RequestStats()
        self.port = config.port
        self._broker = broker
        self._logger = logger
        self._server: asyncio.Server | None = None
        self._connections: dict[Connection, None] = {}
        self._per_peer: Counter[str] = Counter()

    async def bind(self) -> None:
        """Have the address; nobody is let in yet."""
        loop = asyncio.get_running_loop()
        context = None if self.config.tls is None else server_context(self.config.tls)
        self._server = await loop.create_server(
            lambda: Connection(self, self._broker, self.config.name, self.budget, self.stats),
            self.config.host or None,
            self.config.port,
            backlog=self._broker.config.socket_listen_backlog_size,
            ssl=context,
            start_serving=False,
        )
        for listening in self._server.sockets:
            self._size_buffers(listening)
        self.port = self._server.sockets[0].getsockname()[1]

    def _size_buffers(self, listening: Any) -> None:
        """Connections inherit the buffers of the socket that accepted them. A simulated socket has none."""
        if not hasattr(listening, "fileno"):
            return
        with socket.socket(fileno=os.dup(listening.fileno())) as same:
            for option, size in (
                (socket.SO_SNDBUF, self._broker.config.socket_send_buffer_bytes),
                (socket.SO_RCVBUF, self._broker.config.socket_receive_buffer_bytes),
            ):
                if size != SYSTEM_DEFAULT:
                    same.setsockopt(socket.SOL_SOCKET, option, size)

    async def serve(self) -> None:
        assert self._server is not None
        await self._server.start_serving()

    async def stop(self) -> None:
        """Take no more connections and end those that are there."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()

    def __len__(self) -> int:
        return len(self._connections)

    async def close_idle(self) -> None:
        """Close connections that were silent, or in the middle of one request, for too long; let the quiet ones rest."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(IDLE_CHECK_S)
            limit_ms, now = self._broker.config.connections_max_idle_ms, loop.time()
            for connection in list(self._connections):
                if now - connection.last_active > IDLE_CHECK_S:
                    connection.rest()
                if connection.is_idle and limit_ms >= 0 and (now - connection.last_served) * 1000 > limit_ms:
                    connection.close()

    # What connections tell

    def opened(self, connection: Connection) -> None:
        self._connections[connection] = None
        self._per_peer[connection.peer] += 1
        limits = self._broker.config
        if (
            len(self._connections) > limits.max_connections
            or self._per_peer[connection.peer] > limits.max_connections_per_ip
        ):
            self._logger.warning("too many connections", listener=self.config.name, peer=connection.peer)
            connection.abort()

    def closed(self, connection: Connection) -> None:
        if self._connections.pop(connection, self) is None:
            self._per_peer[connection.peer] -= 1
            if not self._per_peer[connection.peer]:
                del self._per_peer[connection.peer]

    def refused(self, connection: Connection, reason: str) -> None:
        self._logger.info("closed a connection", listener=self.config.name, peer=connection.peer, reason=reason)

    def failed(self, connection: Connection, error: Exception) -> None:
        if isinstance(error, ConnectionError):
            self.refused(connection, str(error))
        else:
            self._logger.error(
                "could not answer a request", listener=self.config.name, peer=connection.peer, exc_info=error
            )


def server_context(tls: TlsConfig) -> ssl.SSLContext:
    """The TLS side of a listener, from PEM files or PEM texts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in tls.enabled_protocols else ssl.TLSVersion.TLSv1_3
    if "TLSv1.3" not in tls.enabled_protocols:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if tls.keystore_location is not None:
        context.load_cert_chain(tls.keystore_location, password=tls.key_password)
    else:
        _load_inline_chain(context, tls)
    if tls.truststore_location is not None:
        context.load_verify_locations(cafile=tls.truststore_location)
    if tls.truststore_certificates is not None:
        context.load_verify_locations(cadata=tls.truststore_certificates)
    context.verify_mode = {
        "none": ssl.CERT_NONE,
        "requested": ssl.CERT_OPTIONAL,
        "required": ssl.CERT_REQUIRED,
    }[tls.client_auth]
    return context


def _load_inline_chain(context: ssl.SSLContext, tls: TlsConfig) -> None:
    """Python reads a key only from a file: it gets one for a moment, readable by nobody else."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{tls.key}\n{tls.certificate_chain}\n")
        file.flush()
        context.load_cert_chain(file.name, password=tls.key_password)
