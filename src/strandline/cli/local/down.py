"""`down`: stop the nodes that `up` started, separate controllers after the brokers."""

from __future__ import annotations

import time

import click

from strandline.cli.local import local_cluster
from strandline.cli.local.processes import NodeProcess, stop
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, note


@click.command(epilog=example("strandline down --dir .strandline"))
@click.option(
    "--dir",
    "directory",
    default=local_cluster.DEFAULT_DIR,
    show_default=True,
    metavar="DIR",
    help="The directory of the cluster.",
)
@click.option(
    "--timeout",
    "timeout_s",
    default=30,
    show_default=True,
    metavar="SECONDS",
    type=click.FloatRange(0),
    help="Kill a node that has not stopped by then.",
)
def down(directory: str, timeout_s: float) -> int:
    """Stop the nodes that `up` started in DIR. Their data stays; `up` starts them again."""
    cluster = local_cluster.require(directory)
    if not cluster.running:
        echo(f"nothing is running in {directory}")
        return 0
    killed: list[NodeProcess] = []

    def on_kill(process: NodeProcess) -> None:
        killed.append(process)
        note(
            f"pid {process.pid} did not stop within {timeout_s:g} s and is killed; its logs are checked at the next start"
        )

    for group in cluster.stop_order:
        running = [node for node in group if node.alive]
        began = time.monotonic()
        stop([node.process for node in running if node.process is not None], timeout_s, on_kill, lambda: None)
        for node in running:
            how = "killed" if node.process in killed else "stopped cleanly"
            echo(f"node {node.node_id} {how} in {time.monotonic() - began:.1f} s")
    return 0
