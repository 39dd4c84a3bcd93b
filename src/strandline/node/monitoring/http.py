"""A small HTTP/1.1 server for people and tools that look at the node: GET and HEAD, one request per connection.

h11 knows the protocol; this file carries its bytes.

Always true: what a peer can make us hold is bounded, in connections, in the size of a request and in time; `/health`
can be asked however many others are connected; nothing but a request's line and headers is read, and a request that
fails ends with its own connection. Only who names this server by a name of its own is answered, so that no web page
reaches it through a name that leads here (DNS rebinding, SEC-H4). No request changes anything, and no other origin is
allowed to read an answer.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, Protocol, cast
from urllib.parse import parse_qsl, urlsplit

import h11

CONNECTIONS_MAX = 64
HEALTH_CONNECTIONS = 8
"""Of these, so many are kept for `HEALTH_PATH`."""
HEALTH_PATH = "/health"
HTTP_REQUEST_BYTES_MAX = 16 * 1024
READ_TIMEOUT_S = 10.0
"""How long a request may take to arrive, and as a bound on idleness."""
WRITE_TIMEOUT_S = 30.0
"""How long a peer may take to read its answer."""
BACKLOG = 64


class HttpAnswer(NamedTuple):
    body: bytes
    content_type: str = "application/json"
    status: int = 200


class BadQuery(Exception):
    """The query asks for what can't be; says what."""


Handler = Callable[[Mapping[str, str]], Awaitable[HttpAnswer]]
"""From the query, by name."""


def text(words: str, status: int) -> HttpAnswer:
    return HttpAnswer(f"{words}\n".encode(), "text/plain; charset=utf-8", status)


def host_of(header: str) -> str:
    """The host of a Host header or an absolute target, without its port, in lower case."""
    host = header.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".")


def is_loopback_name(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ErrorLogger(Protocol):
    """All that is logged here: what we could not answer."""

    def error(self, event: str, **values: object) -> None: ...


class HttpServer:
    def __init__(self, routes: Mapping[str, Handler], logger: ErrorLogger, allowed_hosts: Iterable[str] = ()) -> None:
        """`allowed_hosts`: names of this server, beside loopback's, the host it listens on and the address it is
        reached at."""
        self.port = 0
        self.refused = 0
        """Connections and requests that were one too many, or came under a foreign name."""
        self._routes = routes
        self._logger = logger
        self._server: asyncio.Server | None = None
        self._hosts = {host.lower() for host in allowed_hosts}
        self.exchanges: dict[HttpExchange, None] = {}

    def is_own_name(self, host: str, reached_at: str) -> bool:
        return is_loopback_name(host) or host in self._hosts or host == reached_at.lower()

    def make_room(self) -> None:
        """For one more connection. One that has its answer, or asks for nothing yet, goes first; a request of the kind
        of which places are left over would not be waiting here."""
        if len(self.exchanges) >= CONNECTIONS_MAX:
            idle = [exchange for exchange in self.exchanges if not exchange.is_answering]
            if idle:
                self.refused += 1
                idle[0].abort()

    def has_room_for(self, path: str) -> bool:
        """Whether a request for this, which is one of those that are being answered, may go on."""
        answering = sum(exchange.is_answering for exchange in self.exchanges)
        return answering <= (CONNECTIONS_MAX if path == HEALTH_PATH else CONNECTIONS_MAX - HEALTH_CONNECTIONS)

    async def start(self, host: str, port: int) -> None:
        """Listen; OSError if that is not possible."""
        if host:
            self._hosts.add(host.lower())
        self._server = await asyncio.get_running_loop().create_server(
            lambda: HttpExchange(self), host, port, backlog=BACKLOG
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        ending = [exchange.abort() for exchange in list(self.exchanges)]
        await asyncio.gather(*(task for task in ending if task is not None), return_exceptions=True)

    async def answer(self, target: str, host: str, reached_at: str) -> HttpAnswer:
        """What is to be seen there, for one who names the server so. Raises nothing."""
        try:
            parts = urlsplit(target)
            names = {host_of(name) for name in (host, parts.netloc) if name}
            if not names or not all(self.is_own_name(name, reached_at) for name in names):
                self.refused += 1
                return text(
                    f"{', '.join(sorted(names))[:200] or 'no Host'} is no name of this server; "
                    "name it by its address, or in metrics.allowed.hosts",
                    421,
                )
            if not self.has_room_for(parts.path):
                self.refused += 1
                return text("too many requests at a time; try again", 503)
            handler = self._routes.get(parts.path)
            if handler is None:
                return text(f"there is nothing at this path; there is {', '.join(self._routes)}", 404)
            return await handler(dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=16)))
        except (BadQuery, ValueError) as error:
            return text(str(error), 400)
        except Exception as error:
            self._logger.error("could not answer over HTTP", target=target[:200], exc_info=error)
            return text("this could not be answered; the node's log says why", 500)


class HttpExchange(asyncio.Protocol):
    """One connection: a request, its answer, and the end."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HTTP_REQUEST_BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._request: h11.Request | None = None
        self._is_sent = self.is_answering = False
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.make_room()
        if len(self._server.exchanges) >= CONNECTIONS_MAX:
            self._server.refused += 1
            self._transport.abort()
            return
        self._server.exchanges[self] = None
        self._timer = self._loop.call_later(READ_TIMEOUT_S, self._transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._leave()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._task is not None or self._is_sent:
            return  # there is one request per connection
        try:
            self._http.receive_data(data)
            while (event := self._http.next_event()) is not h11.NEED_DATA and event is not h11.PAUSED:
                if isinstance(event, h11.Request):
                    self._request = event
                elif isinstance(event, h11.EndOfMessage):
                    self._begin()
                    return
                else:
                    self._send(text("a request here has no body", 413))
                    return
        except h11.RemoteProtocolError as error:
            self._send(text(str(error), error.error_status_hint))

    def eof_received(self) -> bool:
        """A peer that closes has its answer, or wants it no more: nothing else shows that a client that waits for
        events is gone."""
        return False

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._task = self._loop.create_task(self._answer())

    async def _answer(self) -> None:
        request = self._request
        assert request is not None
        if request.method not in (b"GET", b"HEAD"):
            self._send(text("only GET and HEAD are served", 405))
            return
        host = next((value for name, value in request.headers if name == b"host"), b"")
        sockname = None if self._transport is None else self._transport.get_extra_info("sockname")
        reached_at = str(sockname[0]) if isinstance(sockname, tuple) else ""
        answering = self._server.answer(
            request.target.decode("ascii", "replace"), host.decode("ascii", "replace"), reached_at
        )
        self.is_answering = True
        self._send(await answering)

    def _send(self, answer: HttpAnswer) -> None:
        if self._transport is None:
            return
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Connection", "close"),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        if answer.status == 405:
            headers.append(("Allow", "GET, HEAD"))
        try:
            parts = [self._http.send(h11.Response(status_code=answer.status, headers=headers))]
            if self._request is None or self._request.method != b"HEAD":
                parts.append(self._http.send(h11.Data(data=answer.body)))
            parts.append(self._http.send(h11.EndOfMessage()))
        except h11.LocalProtocolError:
            # The peer's request was such that it can't be answered.
            self._transport.abort()
            return
        self._is_sent = True
        self.is_answering = False
        self._transport.write(b"".join(part for part in parts if part))
        # The peer closes when it has read all of it. To close first, with bytes of the peer unread, would take the
        # answer back.
        self._transport.write_eof()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(WRITE_TIMEOUT_S, self._transport.abort)

    def _leave(self) -> None:
        self._server.exchanges.pop(self, None)

    def abort(self) -> asyncio.Task[None] | None:
        """End it at once; what was being answered is left to await."""
        self._leave()
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()
        return self._task
