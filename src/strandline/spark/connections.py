"""Clients of this process, one for equal settings, kept from task to task.

Spark runs one task after the other in a Python worker, so a task has the client to itself until it ends.
The client notices connections that died in between and replaces them.

Always true: a client is used by the process that made it only, and no task closes one; they end with the process.
"""

from __future__ import annotations

import os

from strandline.client.blocking import Client
from strandline.spark.options.kafka import ClusterOptions

_clients: dict[tuple[int, ClusterOptions], Client] = {}


def client_of(cluster: ClusterOptions) -> Client:
    key = (os.getpid(), cluster)
    client = _clients.get(key)
    if client is None:
        client = _clients[key] = connect(cluster)
    return client


def connect(cluster: ClusterOptions) -> Client:
    """A new client, which the caller closes."""
    tls = None if cluster.tls is None else cluster.tls.context()
    return Client(cluster.bootstrap_servers, config=cluster.config, tls=tls)
