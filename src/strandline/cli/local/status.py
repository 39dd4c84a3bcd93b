"""`status`: the nodes that `up` started, and which of them is the active controller."""

from __future__ import annotations

import click

from strandline.cli.local import local_cluster, probe
from strandline.cli.local.local_cluster import CONTROLLER, LocalCluster, LocalNode, NodeStatus
from strandline.cli.terminal.output import example, json_option, note, print_json, print_table


@click.command(epilog=example("strandline status --dir .strandline --json"))
@click.option(
    "--dir",
    "directory",
    default=local_cluster.DEFAULT_DIR,
    show_default=True,
    metavar="DIR",
    help="The directory of the cluster.",
)
@json_option
def status(directory: str, as_json: bool) -> None:
    """Show the nodes that `up` started in DIR."""
    cluster = local_cluster.require(directory)
    rows = [_status(node) for node in cluster.nodes]
    if any(row["alive"] for row in rows) and not any(row.get("controller") for row in rows):
        note(_no_controller(cluster))
    if as_json:
        print_json(rows)
        return
    print_table(
        ("node", "pid", "address", "roles", "alive", "metrics", "data"),
        [
            (
                row["node_id"],
                row["pid"],
                row["address"],
                _roles(row),
                row["alive"],
                row["metrics"],
                row["data_dir"],
            )
            for row in rows
        ],
    )


def _no_controller(cluster: LocalCluster) -> str:
    count, alive = len(cluster.controllers), sum(node.alive for node in cluster.controllers)
    summary = f"there is no active controller: {alive} of {count} controllers run"
    if alive > count // 2:
        return f"{summary}, enough to elect one; if that takes longer than a moment, `strandline doctor` shows why"
    up = local_cluster.command("up --detach", cluster.directory)
    return f"{summary}, and more than half must; `{up}` starts the others"


def _status(node: LocalNode) -> NodeStatus:
    """The status of a node; for a controller, also whether it is the active one."""
    row = node.status()
    if node.controller_port is not None:
        row["controller"] = node.alive and probe.leads(local_cluster.HOST, node.controller_port)
    return row


def _roles(row: NodeStatus) -> list[str]:
    return [f"{role} (active)" if role == CONTROLLER and row["controller"] else role for role in row["roles"]]
