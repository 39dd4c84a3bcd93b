"""`status`: the nodes that `up` started."""

from __future__ import annotations

import click

from strandline.cli import local_cluster
from strandline.cli.output import example, json_option, print_json, print_table


@click.command(epilog=example("strandline status --dir .strandline --json"))
@click.option(
    "--dir",
    "directory",
    default=local_cluster.DEFAULT_DIR,
    show_default=True,
    metavar="DIR",
    help="Where the cluster lives.",
)
@json_option
def status(directory: str, as_json: bool) -> None:
    """Show the nodes that `up` started in DIR."""
    rows = [node.status() for node in local_cluster.require(directory).nodes]
    if as_json:
        print_json(rows)
        return
    columns = ("node_id", "pid", "address", "roles", "alive", "data_dir")
    print_table(("node", "pid", "address", "roles", "alive", "data"), [[row[name] for name in columns] for row in rows])
