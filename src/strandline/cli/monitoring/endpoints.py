"""Looking at the nodes of a cluster over HTTP: where each serves its metrics, events and replicas, and what it says there.

Always true: a node that can't be asked is named with the reason, and the others are shown without it; all are asked at once, and
none is waited for longer than its time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from strandline.cli.access.options import Access, access_options
from strandline.cli.errors import Refused

F = TypeVar("F", bound=Callable[..., Any])

TIMEOUT_S = 3.0
ANSWER_BYTES_MAX = 64 * 1024 * 1024
METRICS_KEY = "metrics.listener"
ANYWHERE = ("0.0.0.0", "::")


class Place(NamedTuple):
    """A node, and where it can be looked at; no port if it can't, and why."""

    node_id: int
    host: str = ""
    port: int = 0
    problem: str = ""


class Unreachable(Exception):
    """A node could not be asked; says why."""


def sight_options(command: F) -> F:
    """Which cluster: by its brokers, or by the directory that `up` keeps it in."""
    directory = click.option("--dir", "directory", metavar="DIR", help="The cluster that `up` started in DIR.")
    return access_options(directory(command))


def places(access: Access, directory: str | None) -> list[Place]:
    """Every node of the cluster."""
    if directory is not None:
        if access.bootstrap_server is not None:
            raise click.UsageError("give --bootstrap-server or --dir, not both")
        return _local_places(directory)
    found = _remote_places(access)
    if not any(place.port for place in found):
        raise Refused(f"no broker serves its metrics; set {METRICS_KEY}=HOST:PORT in their configuration")
    return found


def _local_places(directory: str) -> list[Place]:
    from strandline.cli.local import local_cluster

    return [
        Place(node.node_id, local_cluster.HOST, node.metrics_port)
        if node.metrics_port is not None
        else Place(node.node_id, problem="serves no metrics")
        for node in local_cluster.require(directory).nodes
    ]


def _remote_places(access: Access) -> list[Place]:
    from strandline.cli.access.connection import connect_admin, value_of
    from strandline.client.flow.described import ConfigResource, ResourceType
    from strandline.errors import KafkaError

    found = []
    with connect_admin(access) as admin:
        cluster = admin.describe_cluster(include_fenced_brokers=True)
        for node in cluster.brokers:
            if node.node_id in cluster.fenced:
                found.append(Place(node.node_id, problem="is fenced"))
                continue
            resource = ConfigResource(ResourceType.BROKER, str(node.node_id))
            try:
                entries = value_of(admin.describe_configs([resource])[resource])
            except (KafkaError, OSError) as error:
                found.append(Place(node.node_id, problem=f"did not say where its metrics are ({error})"))
                continue
            listener = next((entry.value for entry in entries if entry.name == METRICS_KEY), None)
            found.append(place_of(node.node_id, node.host, listener or ""))
    return sorted(found)


def place_of(node_id: int, broker_host: str, listener: str) -> Place:
    """From what a broker says of itself. Where it listens on all addresses, or on its own loopback, its host is the way there."""
    from strandline.config.address import parse_address
    from strandline.config.listeners import is_loopback

    address = parse_address(listener)
    if address is None or not address[1]:
        return Place(node_id, problem=f"serves no metrics; set {METRICS_KEY}=HOST:PORT in its configuration")
    host, port = address
    return Place(node_id, broker_host if host in ANYWHERE or is_loopback(host) else host, port)


def get(place: Place, path: str, timeout_s: float = TIMEOUT_S) -> Any:
    """What the node says there; Unreachable if it does not."""
    import http.client

    if not place.port:
        raise Unreachable(place.problem)
    connection = http.client.HTTPConnection(place.host, place.port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(ANSWER_BYTES_MAX)
        if response.status != 200:
            raise Unreachable(f"{place.host}:{place.port} answers {response.status} {response.reason}")
        return json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unreachable(f"{place.host}:{place.port} does not answer ({reason})") from None
    finally:
        connection.close()


def get_all(where: Sequence[Place], path: str) -> tuple[dict[int, Any], dict[int, str]]:
    """Answers by node, and why the others gave none."""
    from concurrent.futures import ThreadPoolExecutor

    def ask(place: Place) -> Any:
        try:
            return get(place, path)
        except Unreachable as error:
            return error

    with ThreadPoolExecutor(max(1, len(where))) as pool:
        told = {place.node_id: answer for place, answer in zip(where, pool.map(ask, where), strict=True)}
    problems = {node: str(answer) for node, answer in told.items() if isinstance(answer, Unreachable)}
    return {node: answer for node, answer in told.items() if node not in problems}, problems
