"""The HTTP endpoints of nodes, which serve metrics, events and replicas: finding them, and requests to them.

Always true: a node that does not answer is reported with the reason, and the others are shown without it; all are asked at once,
each with a timeout.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.errors import CommandRefused

F = TypeVar("F", bound=Callable[..., object])

TIMEOUT_S = 3.0
ANSWER_BYTES_MAX = 64 * 1024 * 1024
METRICS_KEY = "metrics.listener"
ANYWHERE = ("0.0.0.0", "::")
Json: TypeAlias = Any
"""What a node serves, as json reads it."""


class MonitoringEndpoint(NamedTuple):
    """The HTTP endpoint of a node; without a port there is none, and `problem` says why."""

    node_id: int
    host: str = ""
    port: int = 0
    problem: str = ""


class NodeUnreachable(Exception):
    """A node that does not answer, with the reason."""


def monitoring_options(command: F) -> F:
    """The options that name a cluster: by its brokers, or by the directory of `up`."""
    directory = click.option("--dir", "directory", metavar="DIR", help="The cluster that `up` started in DIR.")
    return access_options(directory(command))


def endpoints_of(access: Access, directory: str | None) -> list[MonitoringEndpoint]:
    """The endpoint of every node of the cluster."""
    if directory is not None:
        if access.bootstrap_server is not None:
            raise click.UsageError("give --bootstrap-server or --dir, not both")
        return _local_endpoints(directory)
    found = _remote_endpoints(access)
    if not any(endpoint.port for endpoint in found):
        raise CommandRefused(f"no broker serves its metrics; set {METRICS_KEY}=HOST:PORT in their configuration")
    return found


def _local_endpoints(directory: str) -> list[MonitoringEndpoint]:
    from strandline.cli.local import local_cluster

    return [
        MonitoringEndpoint(node.node_id, local_cluster.HOST, node.metrics_port)
        if node.metrics_port is not None
        else MonitoringEndpoint(node.node_id, problem="serves no metrics")
        for node in local_cluster.require(directory).nodes
    ]


def _remote_endpoints(access: Access) -> list[MonitoringEndpoint]:
    from strandline.cli.access.connection import connect_admin, value_of
    from strandline.client.flow.descriptions import ConfigResource, ResourceType
    from strandline.errors import KafkaError

    found = []
    with connect_admin(access) as admin:
        cluster = admin.describe_cluster(include_fenced_brokers=True)
        for node in cluster.brokers:
            if node.node_id in cluster.fenced:
                found.append(MonitoringEndpoint(node.node_id, problem="is fenced"))
                continue
            resource = ConfigResource(ResourceType.BROKER, str(node.node_id))
            try:
                entries = value_of(admin.describe_configs([resource])[resource])
            except (KafkaError, OSError) as error:
                found.append(MonitoringEndpoint(node.node_id, problem=f"did not report its metrics.listener ({error})"))
                continue
            listener = next((entry.value for entry in entries if entry.name == METRICS_KEY), None)
            found.append(endpoint_of(node.node_id, node.host, listener or ""))
    return sorted(found)


def endpoint_of(node_id: int, broker_host: str, listener: str) -> MonitoringEndpoint:
    """From a broker's metrics.listener. If that is every address, or its loopback, the broker's advertised host is used."""
    from strandline.config.address import parse_address
    from strandline.config.listeners import is_loopback

    address = parse_address(listener)
    if address is None or not address[1]:
        return MonitoringEndpoint(
            node_id, problem=f"serves no metrics; set {METRICS_KEY}=HOST:PORT in its configuration"
        )
    host, port = address
    return MonitoringEndpoint(node_id, broker_host if host in ANYWHERE or is_loopback(host) else host, port)


def get(endpoint: MonitoringEndpoint, path: str, timeout_s: float = TIMEOUT_S) -> Json:
    """The JSON that the node serves at this path; NodeUnreachable if it does not."""
    import http.client

    if not endpoint.port:
        raise NodeUnreachable(endpoint.problem)
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(ANSWER_BYTES_MAX)
        if response.status != 200:
            raise NodeUnreachable(f"{endpoint.host}:{endpoint.port} answers {response.status} {response.reason}")
        return json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise NodeUnreachable(f"{endpoint.host}:{endpoint.port} does not answer ({reason})") from None
    finally:
        connection.close()


def get_all(where: Sequence[MonitoringEndpoint], path: str) -> tuple[dict[int, Json], dict[int, str]]:
    """The answers by node, and the problems of the others."""
    from concurrent.futures import ThreadPoolExecutor

    def ask(endpoint: MonitoringEndpoint) -> Json | NodeUnreachable:
        try:
            return get(endpoint, path)
        except NodeUnreachable as error:
            return error

    with ThreadPoolExecutor(max(1, len(where))) as pool:
        results = {endpoint.node_id: answer for endpoint, answer in zip(where, pool.map(ask, where), strict=True)}
    problems = {node: str(answer) for node, answer in results.items() if isinstance(answer, NodeUnreachable)}
    return {node: answer for node, answer in results.items() if node not in problems}, problems
