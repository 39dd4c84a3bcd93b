"""A node that can be looked at, in a simulated world, and somebody who looks."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

from strandline.node.monitoring.metrics import NodeMetrics
from strandline.node.monitoring.server import MonitoringServer
from tests.unit.node.conftest import HOST, Stage, play

__all__ = ["play"]

PORT = 9404
LISTENER = f"{HOST}:{PORT}"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def send(data: bytes) -> bytes:
    """All that comes back until the connection ends."""
    reader, writer = await asyncio.open_connection(HOST, PORT)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


def parse(data: bytes) -> Reply:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Reply(int(first.split()[1]), {name.lower(): value for name, value in headers.items()}, body)


async def get(path: str, method: str = "GET") -> Reply:
    return parse(await send(f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()))


class Looked:
    """A stage's node as it is observed, and a server that shows it."""

    def __init__(self, stage: Stage) -> None:
        node = self.node = stage.node
        self.observed = node.observe()
        self.clock = stage.host.clock
        self.server = MonitoringServer(self.observed, stage.config, stage.disk, self.clock, node._logger)
        self.requests = node.context.request_stats
        self.topics = node.replicas.topic_stats
        self.events = node.parts.events

    def metrics(self) -> NodeMetrics:
        return NodeMetrics(self.observed, self.clock, lambda: 0)

    async def __aenter__(self) -> Looked:
        """In place of the node's own."""
        await self.node.parts.monitoring.stop()
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()
