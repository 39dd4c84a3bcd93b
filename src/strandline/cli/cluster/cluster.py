"""`cluster`: the id of a cluster, its brokers or controllers, and unregistering a broker that will not come back."""

from __future__ import annotations

import click

from strandline.cli.access.options import Access, access_options, or_controllers
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, json_option, print_json, print_table

cluster_options = or_controllers(access_options)


@click.group(epilog=example("strandline cluster describe", "strandline cluster unregister 3"))
def cluster() -> None:
    """Show a cluster and its nodes, and unregister a broker."""


@cluster.command(epilog=example("strandline cluster describe --bootstrap-controller 127.0.0.1:10092"))
@cluster_options
@json_option
def describe(access: Access, as_json: bool) -> None:
    """Show the cluster's id and its brokers, also fenced ones; with --bootstrap-controller its controllers."""
    from strandline.cli.access.connection import connect_admin

    of_controllers = access.bootstrap_controller is not None
    with connect_admin(access) as admin:
        described = admin.describe_cluster(include_fenced_brokers=not of_controllers)
    rows = []
    for node in described.brokers:
        if of_controllers:
            state = "active" if node.node_id == described.controller_id else "standby"
        else:
            state = "fenced" if node.node_id in described.fenced else "unfenced"
        rows.append({"node_id": node.node_id, "host": node.host, "port": node.port, "rack": node.rack, "state": state})
    if as_json:
        print_json({"cluster_id": described.cluster_id, "controllers" if of_controllers else "brokers": rows})
        return
    echo(f"cluster {described.cluster_id}")
    print_table(("node", "host", "port", "rack", "state"), [tuple(row.values()) for row in rows])


@cluster.command(epilog=example("strandline cluster unregister 3"))
@click.argument("node_id", type=click.IntRange(0))
@cluster_options
def unregister(node_id: int, access: Access) -> None:
    """Unregister a broker that will not come back. Its replicas stay assigned to it."""
    from strandline.cli.access.connection import connect_admin

    with connect_admin(access) as admin:
        admin.unregister_broker(node_id)
    echo(f"Broker {node_id} is no longer registered.")
