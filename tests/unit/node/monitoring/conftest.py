"""A node that can be looked at, in a simulated world, and somebody who looks."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

from strandline.api.requests.request_stats import RequestStats
from strandline.node.broker_state import BrokerState
from strandline.node.monitoring.monitored_node import MonitoredNode
from strandline.node.monitoring.server import MonitoringServer
from strandline.replica.topic_stats import BrokerTopicStats
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
    """The view of a stage's node, and the server that serves it."""

    def __init__(self, stage: Stage) -> None:
        node = self.node = stage.node
        self.requests = RequestStats()
        self.topics = BrokerTopicStats()
        self.state = BrokerState.RUNNING
        self.view = MonitoredNode(
            node.context,
            node.quorum,
            lambda: self.state,
            node.parts.events,
            self.requests,
            self.topics,
            node.parts.groups,
        )
        self.server = MonitoringServer(self.view, node._logger)
        self.events = node.parts.events

    async def __aenter__(self) -> Looked:
        """In place of the node's own."""
        await self.node.parts.monitoring.stop()
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()
