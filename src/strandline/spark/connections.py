"""Clients of this process, one for equal settings, kept from task to task.

Spark runs one task after the other in a Python worker, so whoever asks has the client for himself until the task is over.
Connections that died in between are the client's to notice and make anew.

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
    """A client of the caller's own, who closes it."""
    tls = None if cluster.tls is None else cluster.tls.context()
    return Client(cluster.bootstrap_servers, config=cluster.config, tls=tls)
