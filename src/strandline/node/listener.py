"""One address that the node listens on, and the connections it has there.

Always true: the number of connections is bounded, in all and per peer, from the moment they are accepted; an idle one
is closed after `connections.max.idle.ms`, one whose peer neither goes on sending nor reads before that; a peer that
breaks the protocol loses its connection and nothing else happens.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial

from strandline.api.context import NodeContext
from strandline.api.requests.request_stats import RequestStats
from strandline.config.listeners import ListenerConfig
from strandline.config.tls import TlsConfig
from strandline.node.connection import Connection
from strandline.node.connection_counts import ConnectionCounts
from strandline.node.connection_resources import ConnectionResources
from strandline.node.limited_log import LimitedLog
from strandline.node.logger import Logger
from strandline.node.tls_handshake import TlsHandshake

IDLE_CHECK_S = 1.0
CHECKED_AT_ONCE = 500
"""Connections that are looked at before others have their turn."""
SYSTEM_DEFAULT = -1
KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""A peer that is silent for a minute and then does not answer four probes is gone, even if a request of its waits
(SEC-L7)."""


class Listener:
    def __init__(
        self,
        config: ListenerConfig,
        node: NodeContext,
        logger: Logger,
        resources: ConnectionResources | None = None,
        stats: RequestStats | None = None,
        counts: ConnectionCounts | None = None,
    ) -> None:
        self.config = config
        self.resources = resources or ConnectionResources()
        self.stats = stats or RequestStats()
        self.counts = ConnectionCounts() if counts is None else counts
        self.port = config.port
        self._node = node
        self._logger = logger
        self._limited = LimitedLog(logger)
        self._server: asyncio.Server | None = None
        self._connections: dict[Connection, None] = {}
        self._handshakes: dict[TlsHandshake, None] = {}
        self._is_of_cluster = config.controller or node.config.is_for_brokers_alone(config.name)

    def new_connection(self) -> Connection:
        return Connection(self, self._node, self.config.name, self.resources, self.stats)

    async def bind(self) -> None:
        """Have the address; no connection is accepted yet."""
        loop = asyncio.get_running_loop()
        factory: Callable[[], asyncio.BaseProtocol] = self.new_connection
        if self.config.tls is not None:
            timeout_s = self._node.config.ssl_handshake_timeout_ms / 1000
            factory = partial(TlsHandshake, self, server_context(self.config.tls), timeout_s)
        self._server = await loop.create_server(
            factory,
            self.config.host or None,
            self.config.port,
            backlog=self._node.config.socket_listen_backlog_size,
            start_serving=False,
        )
        for listening in self._server.sockets:
            self._set_options(listening)
        self.port = self._server.sockets[0].getsockname()[1]

    def _set_options(self, listening: object) -> None:
        """Connections inherit these from the socket that accepted them. A simulated socket has none."""
        if not hasattr(listening, "fileno"):
            return
        with socket.socket(fileno=os.dup(listening.fileno())) as same:
            for option, size in (
                (socket.SO_SNDBUF, self._node.config.socket_send_buffer_bytes),
                (socket.SO_RCVBUF, self._node.config.socket_receive_buffer_bytes),
            ):
                if size != SYSTEM_DEFAULT:
                    same.setsockopt(socket.SOL_SOCKET, option, size)
            same.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in KEEPALIVE:
                if hasattr(socket, name):
                    same.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    async def serve(self) -> None:
        assert self._server is not None
        await self._server.start_serving()

    async def stop(self) -> None:
        """Take no more connections and end those that are there."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.close()
        for handshake in list(self._handshakes):
            handshake.abort()

    def __len__(self) -> int:
        return len(self._connections) + len(self._handshakes)

    async def close_idle(self) -> None:
        """Close connections that were silent, or do not go on, for too long; take back what the quiet ones do not
        need."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(IDLE_CHECK_S)
            connections = list(self._connections)
            for start in range(0, len(connections), CHECKED_AT_ONCE):
                now = loop.time()
                for connection in connections[start : start + CHECKED_AT_ONCE]:
                    self._check(connection, now)
                await asyncio.sleep(0)

    def _check(self, connection: Connection, now: float) -> None:
        config = self._node.config
        connection.trim(is_idle=now - connection.last_active > IDLE_CHECK_S)
        limit_ms = config.connections_max_idle_ms
        if connection.is_idle and limit_ms >= 0 and (now - connection.last_served) * 1000 > limit_ms:
            connection.close()
        elif connection.is_request_stalled(now, config.socket_receive_stalled_timeout_ms / 1000):
            self.resources.stalled_requests += 1
            self._cut_off(connection, now, "a request does not go on arriving")
        elif connection.are_replies_stalled(now, config.socket_send_stalled_timeout_ms / 1000):
            self.resources.stalled_replies += 1
            self._cut_off(connection, now, "a peer does not read its replies")

    def _cut_off(self, connection: Connection, now: float, event: str) -> None:
        self._limited.warning(f"{event}: closed", now, listener=self.config.name, peer=connection.peer)
        connection.abort()

    # What connections report

    def _admit(self, connection: Connection | TlsHandshake) -> bool:
        limits = self._node.config
        evicted = self.counts.evicted
        refusal = self.counts.admit(
            connection,
            of_cluster=self._is_of_cluster,
            max_connections=limits.max_connections,
            per_ip=limits.max_connections_per_ip,
        )
        if refusal is not None:
            self._limited.warning(
                "too many connections",
                connection.last_active,
                listener=self.config.name,
                peer=connection.peer,
                limit=refusal,
            )
        elif self.counts.evicted != evicted:
            self._limited.warning(
                "a client's connection was closed for one of the cluster's own",
                connection.last_active,
                listener=self.config.name,
                limit="open files",
            )
        return refusal is None

    def opened(self, connection: Connection) -> None:
        if self._admit(connection):
            self._connections[connection] = None
        else:
            connection.abort()

    def closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        self.counts.leave(connection)

    def begun(self, handshake: TlsHandshake) -> bool:
        """Whether this one may go on to its handshake."""
        is_admitted = self._admit(handshake)
        if is_admitted:
            self._handshakes[handshake] = None
        return is_admitted

    def ended(self, handshake: TlsHandshake) -> None:
        """It became a connection, or nothing."""
        self._handshakes.pop(handshake, None)
        self.counts.leave(handshake)

    def handshake_failed(self, handshake: TlsHandshake, reason: str) -> None:
        self.counts.refused["TLS handshake"] += 1
        now = asyncio.get_running_loop().time()
        self._limited.warning(
            "a TLS handshake failed", now, listener=self.config.name, peer=handshake.peer, reason=reason
        )

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
    """Python reads a key only from a file: it gets one for a moment, readable by no other user."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{tls.key}\n{tls.certificate_chain}\n")
        file.flush()
        context.load_cert_chain(file.name, password=tls.key_password)
