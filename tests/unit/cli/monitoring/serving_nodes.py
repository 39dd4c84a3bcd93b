"""Nodes of a local cluster that only serve pages over HTTP, beside the test."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from strandline.cli.local import local_cluster
from strandline.cli.local.local_cluster import HOST, METRICS_PORTS_FROM
from strandline.node.monitoring.http import HttpAnswer, HttpServer

from ...node.scripted import quiet_logger

Pages = dict[str, Any]
"""What a node says, by path."""


def free_port(count: int) -> int:
    """A port of a cluster whose metrics ports are free."""
    # Not the same for two processes that look at the same time.
    for port in range(14_092 + os.getpid() % 2000 * 10, 60_000, 10):
        try:
            for index in range(count):
                with socket.socket() as probe:
                    probe.bind((HOST, port + METRICS_PORTS_FROM + index))
        except OSError:
            continue
        return port
    raise AssertionError("no port is free")


@contextmanager
def serving_nodes(directory: str, *nodes: Pages | None) -> Iterator[None]:
    """A cluster in the directory with these nodes; None is one that is down."""
    cluster = local_cluster.new(directory, free_port(len(nodes)), len(nodes))
    cluster.save()
    loop = asyncio.new_event_loop()
    servers = []

    async def start(pages: Pages, port: int) -> None:
        async def answer(path: str, query: Any) -> HttpAnswer:
            page = pages[path]
            return HttpAnswer(json.dumps(page(query) if callable(page) else page).encode())

        routes = {path: (lambda query, path=path: answer(path, query)) for path in pages}
        server = HttpServer(routes, quiet_logger())
        await server.start(HOST, port)
        servers.append(server)

    for node, pages in zip(cluster.nodes, nodes, strict=True):
        if pages is not None:
            assert node.metrics_port is not None
            loop.run_until_complete(start(pages, node.metrics_port))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        for server in servers:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
