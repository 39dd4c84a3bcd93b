"""A controller made up for tests: a function per API, from a request to its reply, served on a simulated or a real socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, cast

from strandline.config.node import NodeConfig
from strandline.config.properties import of
from strandline.runtime.logging import JsonLogger
from strandline.wire import messages
from strandline.wire.headers import read_request_header, response_header

API_VERSIONS = 18
HANG_UP, SILENCE = object(), object()
"""What a script may return instead of a reply."""
Script = Callable[[Any], Any]


def config_of(node_id: int = 1, **settings: str) -> NodeConfig:
    texts = {
        "node.id": str(node_id),
        "process.roles": "broker",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "c1:9093",
        "listeners": "PLAINTEXT://b1:9092",
        "log.dirs": "/data",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return NodeConfig.build(of(texts), insecure=True)


def quiet_logger() -> JsonLogger:
    return JsonLogger(lambda line: None, 20)


class Controller:
    """`scripts` says what it serves; a script may be replaced at any time. What it was asked is in `asked`."""

    def __init__(self, scripts: dict[int, Script] | None = None) -> None:
        self.scripts = scripts or {}
        self.asked: list[tuple[int, Any]] = []
        self.connections: list[_Served] = []
        self.accepted = 0
        self.is_mute = False
        """It takes connections and says nothing, not even what it serves."""
        self.port = 9093
        self._server: Any = None

    async def serve(self, host: str = "", port: int = 9093, tls: ssl.SSLContext | None = None) -> None:
        options: dict[str, Any] = {} if tls is None else {"ssl": tls}
        self._server = await asyncio.get_running_loop().create_server(lambda: _Served(self), host, port, **options)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        self._server.close()
        self.hang_up()

    def hang_up(self) -> None:
        for connection in list(self.connections):
            connection.transport.abort()

    def requests(self, api_key: int) -> list[Any]:
        return [request for key, request in self.asked if key == api_key]

    def answer(self, frame: bytes) -> Any:
        header = read_request_header(frame)
        key, version = header.api_key, header.api_version
        request = messages.decode_request(key, version, frame, header.body_position)
        if self.is_mute:
            return SILENCE
        if key == API_VERSIONS:
            Versions = messages.response(key)
            ranges = {key: messages.request_family(key).versions for key in (*self.scripts, API_VERSIONS)}
            reply = Versions(
                api_keys=[
                    Versions.ApiVersion(api_key=key, min_version=served[0], max_version=min(served[-1], 4))
                    for key, served in ranges.items()
                ]
            )
        else:
            self.asked.append((key, request))
            reply = self.scripts[key](request)
        if reply is HANG_UP or reply is SILENCE:
            return reply
        body = response_header(key, version, header.correlation_id) + messages.encode_response(key, version, reply)
        return len(body).to_bytes(4, "big") + body


class _Served(asyncio.Protocol):
    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._controller.connections.append(self)
        self._controller.accepted += 1

    def connection_lost(self, error: Exception | None) -> None:
        self._controller.connections.remove(self)

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= 4 and len(self._data) >= (end := 4 + int.from_bytes(self._data[:4], "big")):
            frame, self._data = self._data[4:end], self._data[end:]
            reply = self._controller.answer(frame)
            if reply is HANG_UP:
                self.transport.abort()
                return
            if reply is not SILENCE:
                self.transport.write(reply)
