"""`kafka-cluster`: a cluster's id and endpoints with Kafka's flags and Kafka's output, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from strandline.cli.access.options import Access, kafka_access_options, or_controllers
from strandline.cli.errors import CommandRefused
from strandline.cli.kafka_tools.kafka_flags import KafkaCommand
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example

if TYPE_CHECKING:
    from strandline.client.flow.descriptions import ClusterDescription

SERVER = "--bootstrap-server 127.0.0.1:9092"
EMPTY_HOST_WIDTH, EMPTY_RACK_WIDTH = 100, 10

cluster_options = or_controllers(kafka_access_options("-c", "--config", short=("-b",)), "-C")


@click.group(epilog=example(f"strandline kafka-cluster cluster-id {SERVER}"))
def kafka_cluster() -> None:
    """Show a cluster and unregister brokers, with Kafka's flags and output."""


def _command(name: str, flags: str = "") -> Callable[[Callable[..., object]], click.Command]:
    epilog = example(f"strandline kafka-cluster {name} {SERVER}{flags}")
    return kafka_cluster.command(name, cls=KafkaCommand, epilog=epilog)


@_command("cluster-id")
@cluster_options
def cluster_id(access: Access) -> None:
    """Show the cluster's id."""
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        echo(f"Cluster ID: {admin.describe_cluster().cluster_id}")


@_command("unregister", " --id 3")
@cluster_options
@click.option("--id", "-i", "broker_id", type=int, required=True, help="The broker.")
def unregister(access: Access, broker_id: int) -> None:
    """Unregister a broker."""
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        admin.unregister_broker(broker_id)
    echo(f"Broker {broker_id} is no longer registered.")


@_command("list-endpoints", " --include-fenced-brokers")
@cluster_options
@click.option("--include-fenced-brokers", is_flag=True, help="Also brokers that are fenced.")
def list_endpoints(access: Access, include_fenced_brokers: bool) -> None:
    """Show the brokers, or with --bootstrap-controller the controllers."""
    of_controllers = access.bootstrap_controller is not None
    if of_controllers and include_fenced_brokers:
        raise CommandRefused("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        described = admin.describe_cluster(include_fenced_brokers=include_fenced_brokers)
    for line in endpoint_lines(described, of_controllers):
        echo(line)


def endpoint_lines(described: ClusterDescription, of_controllers: bool) -> list[str]:
    host_width = max((len(node.host) for node in described.brokers), default=EMPTY_HOST_WIDTH)
    rack_width = max((len(node.rack) for node in described.brokers if node.rack), default=EMPTY_RACK_WIDTH)

    def line(node_id: object, host: str, port: object, rack: str, state: str, kind: str) -> str:
        start = f"{node_id!s:<10} {host:<{host_width}} {port!s:<10} {rack:<{rack_width}}"
        return f"{start} {kind:<15}" if of_controllers else f"{start} {state:<10} {kind:<15}"

    kind = "controller" if of_controllers else "broker"
    return [line("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")] + [
        line(
            node.node_id,
            node.host,
            node.port,
            node.rack or "null",
            "fenced" if node.node_id in described.fenced else "unfenced",
            kind,
        )
        for node in described.brokers
    ]
