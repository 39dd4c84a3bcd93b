"""`up`: a cluster of real processes on this machine.

Always true: the nodes are started before anything is drawn; if the start fails, the nodes that were started are stopped again;
the number of nodes changes only where that is safe: brokers can be added if there are separate controllers.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import replace

import click

from strandline.cli.errors import CommandRefused
from strandline.cli.local import local_cluster
from strandline.cli.local.launch import NodeProcesses
from strandline.cli.local.local_cluster import DEFAULT_DIR, HOST, LocalCluster, LocalNode
from strandline.cli.local.processes import age_s
from strandline.cli.terminal.escaping import echo
from strandline.cli.terminal.output import example, json_option, note, print_json, print_table

NODES_DEFAULT = 1


@click.command(
    epilog=example(
        "strandline up",
        "strandline up --nodes 3",
        "strandline up --nodes 2 --controllers 3 --detach",
        "strandline up --detach --dir /tmp/demo --port 19092 --config auto.create.topics.enable=false",
    )
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 99),
    help=f"How many brokers, ids 1, 2, ….  [default: as before in DIR, or {NODES_DEFAULT}]",
)
@click.option(
    "--controllers",
    type=click.IntRange(0, 99),
    help="How many separate controllers, ids 101, 102, …; with 0 every node is one.  [default: as before in DIR, or 0]",
)
@click.option(
    "--dir", "directory", default=DEFAULT_DIR, show_default=True, metavar="DIR", help="The directory of the cluster."
)
@click.option(
    "--port",
    type=click.IntRange(1, 64000),
    help="The first node's port; the others follow.  [default: as before in DIR, or 9092]",
)
@click.option("--detach", is_flag=True, help="Return when the cluster is ready, and leave it running.")
@click.option("--fresh", is_flag=True, help="First delete the data of an earlier cluster in DIR.")
@click.option(
    "--config", multiple=True, metavar="KEY=VALUE", help="A property for every node, kept for the next start."
)
@json_option
def up(
    nodes: int | None,
    controllers: int | None,
    directory: str,
    port: int | None,
    detach: bool,
    fresh: bool,
    config: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start a cluster on this machine and wait until it answers.

    Clients connect to 127.0.0.1:PORT, PORT+1, …; controllers listen on PORT+1000, …, brokers for each other on PORT+3000, …;
    metrics are on PORT+2000, …. A program that reaches the ports from PORT+1000 on can act as a controller or a broker. Started
    again on the same DIR, the cluster keeps its data; with --detach, nodes that have failed are started beside those that run.
    Ctrl-C stops it cleanly.
    """
    local_cluster.check_ours(directory)
    with local_cluster.lock(directory):
        cluster = _prepare(directory, nodes, controllers, port, fresh, config, detach)
        launch = NodeProcesses(cluster)
        try:
            launch.spawn()
            launch.wait_until_ready()
            ready_s = age_s()
            cluster.save()
            if not detach:
                _stay(launch, ready_s, as_json)
        except BaseException:
            launch.stop()
            raise
        if detach:
            # From here on a closed pipe must not stop the cluster.
            _announce(cluster, ready_s, detach, as_json)


def _stay(launch: NodeProcesses, ready_s: float, as_json: bool) -> None:
    try:
        _announce(launch.cluster, ready_s, False, as_json)
        launch.watch()
        note("stopped cleanly by another process")
    except KeyboardInterrupt:
        began = time.monotonic()
        launch.stop()
        note(f"stopped cleanly in {time.monotonic() - began:.1f} s")


def _prepare(
    directory: str,
    nodes: int | None,
    controllers: int | None,
    port: int | None,
    fresh: bool,
    config: tuple[str, ...],
    detach: bool,
) -> LocalCluster:
    """The cluster to start: that in the directory, or a new one."""
    from strandline.cli.option_values import key_values

    given = key_values(config, "--config")
    present = local_cluster.find(directory)
    if present is not None and 0 < len(present.running) < len(present.nodes):
        same = (port or present.port, nodes or present.nodes_count, controllers or present.controllers_count) == (
            present.port,
            present.nodes_count,
            present.controllers_count,
        )
        if detach and same and not (fresh or config):
            for node in present.nodes:
                if not node.alive:
                    _check_free(node, present)
            present.write_properties()
            return present
    if present is not None and present.running:
        pids = ", ".join(str(node.process.pid) for node in present.running if node.process)
        instead = f"`{local_cluster.command('down', directory)}` first"
        if len(present.running) < len(present.nodes):
            instead = f"`{local_cluster.command('up --detach', directory)}` starts the nodes that do not run"
        raise CommandRefused(f"a cluster is already running in {directory} (pid {pids}); {instead}")
    if present is not None and fresh:
        local_cluster.clear(directory)
        present = None
    if present is None:
        present = local_cluster.new(directory, port or 9092, nodes or NODES_DEFAULT, controllers or 0)
    else:
        resize(present, nodes, controllers)
    present.port = port or present.port
    present.processes = {}
    # The values of --config are kept only once a cluster has started with them.
    cluster = replace(present, config=present.config | given)
    for node in cluster.nodes:
        _check_free(node, cluster)
    present.save()
    cluster.write_properties()
    return cluster


def resize(cluster: LocalCluster, nodes: int | None, controllers: int | None) -> None:
    """Add brokers to an existing cluster. Its controllers cannot change: the voters are in the configuration of every node."""
    nodes = cluster.nodes_count if nodes is None else nodes
    controllers = cluster.controllers_count if controllers is None else controllers
    if (nodes, controllers) == (cluster.nodes_count, cluster.controllers_count):
        return
    if controllers != cluster.controllers_count or cluster.controllers_count == 0 or nodes < cluster.nodes_count:
        separate = f" and {cluster.controllers_count} controllers" if cluster.controllers_count else ""
        has = f"{cluster.nodes_count} {'nodes' if cluster.nodes_count > 1 else 'node'}{separate}"
        raise CommandRefused(
            f"the cluster in {cluster.directory} has {has}; start it without --nodes and --controllers, name another --dir, "
            "or let --fresh delete it and start anew"
        )
    cluster.nodes_count = nodes


def _check_free(node: LocalNode, cluster: LocalCluster) -> None:
    import socket

    for port in node.ports:
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, port))
            except OSError:
                for other in cluster.running:
                    if other.metrics == f"{HOST}:{port}":
                        raise CommandRefused(
                            f"{HOST}:{port} is for broker {node.node_id}, and node {other.node_id}, started by an older version, "
                            "has its metrics there; restart the controllers first"
                        ) from None
                raise CommandRefused(f"{HOST}:{port} is in use; choose another with --port") from None


def _announce(cluster: LocalCluster, ready_s: float, detach: bool, as_json: bool) -> None:
    rows = [node.status() for node in cluster.nodes]
    if as_json:
        print_json(rows)
        sys.stdout.flush()
        return
    print_table(
        ("node", "pid", "address", "roles", "metrics", "data"),
        [
            (row["node_id"], row["pid"], row["address"], row["roles"], row["metrics"], _short(row["data_dir"]))
            for row in rows
        ],
    )
    echo(f"\nready in {ready_s:.1f} s, cluster {cluster.cluster_id}\n")
    server = "" if cluster.port == 9092 else f" -b {HOST}:{cluster.port}"
    default = cluster.directory == os.path.abspath(DEFAULT_DIR)
    down = "strandline down" if default else local_cluster.command("down", _short(cluster.directory))
    echo("Try next:")
    for command in (
        f"topics create hello{server}",
        f"produce hello{server}",
        f"consume hello --from-beginning{server}",
    ):
        echo(f"  {_program()} {command}")
    echo(f"Stop it with: {down}" if detach else "Stop it with: Ctrl-C")
    sys.stdout.flush()


def _program() -> str:
    """How to call this program: by its name if that is on the path."""
    return "strandline" if shutil.which("strandline") else _short(os.path.abspath(sys.argv[0]))


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
