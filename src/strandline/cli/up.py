"""`up`: a cluster of real processes on this machine.

Always true: the nodes are started before anything is drawn; `up` says ready only when every node named all others in an answer
of its own; whatever it started and could not bring up is stopped again.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import click

from strandline.cli import local_cluster, probe
from strandline.cli.errors import Refused
from strandline.cli.local_cluster import DEFAULT_DIR, HOST, LocalCluster, LocalNode
from strandline.cli.output import example, is_terminal, json_option, note, print_json, print_table
from strandline.cli.processes import age_s, identify, stop

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.01
WATCH_S = 0.2
LAST_LINES = 10


@click.command(
    epilog=example(
        "strandline up",
        "strandline up --detach --dir /tmp/demo --port 19092 --config auto.create.topics.enable=false",
    )
)
@click.option(
    "--nodes", type=click.IntRange(1, 99), help="How many nodes; only 1 until the quorum is there.  [default: 1]"
)
@click.option(
    "--dir", "directory", default=DEFAULT_DIR, show_default=True, metavar="DIR", help="Where the cluster lives."
)
@click.option(
    "--port",
    type=click.IntRange(1, 64000),
    help="The first node's port; the others follow.  [default: as before in DIR, or 9092]",
)
@click.option("--detach", is_flag=True, help="Return when it is ready and leave it running.")
@click.option("--fresh", is_flag=True, help="Delete what an earlier cluster left in DIR first.")
@click.option(
    "--config", multiple=True, metavar="KEY=VALUE", help="A property for every node, kept for the next start."
)
@json_option
def up(
    nodes: int | None,
    directory: str,
    port: int | None,
    detach: bool,
    fresh: bool,
    config: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start a cluster on this machine and wait until it answers.

    Clients connect to 127.0.0.1:PORT, PORT+1, …; controllers listen on PORT+1000, …. Started again on the same DIR, the
    cluster goes on where it was. Ctrl-C stops it cleanly.
    """
    if nodes not in (None, 1):
        raise Refused("only one node can be started until the quorum is there; use --nodes 1")
    local_cluster.check_ours(directory)
    with local_cluster.lock(directory):
        cluster = _prepare(directory, nodes, port, fresh, config)
        launch = Launch(cluster)
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
            # It is on its own now: whoever closes the pipe that this goes to does not stop it.
            _announce(cluster, ready_s, detach, as_json)


def _stay(launch: Launch, ready_s: float, as_json: bool) -> None:
    try:
        _announce(launch.cluster, ready_s, False, as_json)
        launch.watch()
        note("stopped from elsewhere, in order")
    except KeyboardInterrupt:
        began = time.monotonic()
        launch.stop()
        note(f"stopped cleanly in {time.monotonic() - began:.1f} s")


def _prepare(directory: str, nodes: int | None, port: int | None, fresh: bool, config: tuple[str, ...]) -> LocalCluster:
    """The cluster to start: the one in the directory, or a new one."""
    from strandline.cli.kafka_flags import key_values

    given = key_values(config, "--config")
    present = local_cluster.find(directory)
    if present is not None and present.running:
        pids = ", ".join(str(node.process.pid) for node in present.running if node.process)
        raise Refused(
            f"a cluster is already running in {directory} (pid {pids}); `{local_cluster.command('down', directory)}` first"
        )
    if present is not None and fresh:
        local_cluster.clear(directory)
        present = None
    if present is None:
        present = local_cluster.new(directory, port or 9092, nodes or 1, {})
    elif nodes not in (None, present.nodes_count):
        raise Refused(
            f"the cluster in {directory} has {present.nodes_count} nodes; --fresh deletes it and starts {nodes}"
        )
    present.port = port or present.port
    present.processes = {}
    # What --config gives is kept only once a cluster has started with it.
    cluster = replace(present, config=present.config | given)
    for node in cluster.nodes:
        _check_free(node)
    present.save()
    cluster.write_properties()
    return cluster


def _check_free(node: LocalNode) -> None:
    import socket

    for port in (node.port, node.controller_port):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((HOST, port))
            except OSError:
                raise Refused(f"{HOST}:{port} is in use; choose another with --port") from None


class Launch:
    """The node processes of one `up`, while it is their parent."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._log_starts: dict[int, int] = {}
        """Where the words of this run begin in each node's log."""
        signal.signal(signal.SIGTERM, _interrupt)

    def spawn(self) -> None:
        for node in self.cluster.nodes:
            # The node's own entrance: it needs nothing of the command line, and would wait for its imports.
            command = [sys.executable, "-m", "strandline.runtime.server", node.properties_path, self.cluster.cluster_id]
            with open(node.log_path, "ab") as log:
                self._log_starts[node.node_id] = log.tell()
                self._children[node.node_id] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, close_fds=True
                )
        self.cluster.processes = {node_id: identify(child.pid) for node_id, child in self._children.items()}
        known = local_cluster.find(self.cluster.directory)
        if known is not None:
            replace(known, processes=self.cluster.processes).save()

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        everyone = {node.node_id for node in self.cluster.nodes}
        with Spinner(f"starting {_nodes(len(everyone))}") as spinner:
            for node in self.cluster.nodes:
                while not self._answers(node, everyone):
                    spinner.turn()
                    self.check()
                    if time.monotonic() > deadline:
                        raise Refused(
                            f"node {node.node_id} did not answer within {READY_TIMEOUT_S:.0f} s; see {node.log_path}"
                        )
                    time.sleep(POLL_S)

    def _answers(self, node: LocalNode, everyone: set[int]) -> bool:
        answer = probe.ask(HOST, node.port)
        return answer is not None and answer.cluster_id == self.cluster.cluster_id and answer.brokers.keys() >= everyone

    def check(self, *, may_stop: bool = False) -> None:
        """Refused, with its last words, if a node has ended; `may_stop` if it may do so in order."""
        for node in self.cluster.nodes:
            code = self._children[node.node_id].poll()
            if code is not None and not (may_stop and code == 0):
                _tell_end(node, self._log_starts[node.node_id])
                how = f"with exit code {code}" if code >= 0 else f"by signal {signal.Signals(-code).name}"
                raise Refused(f"node {node.node_id} ended {how}; its log is {node.log_path}")

    def _stopped_in_order(self) -> bool:
        return all(child.poll() == 0 for child in self._children.values())

    def watch(self) -> None:
        """Stay until Ctrl-C, or until a node dies; return if all of them were told to stop by somebody else."""
        while not self._stopped_in_order():
            self.check(may_stop=True)
            time.sleep(WATCH_S)

    def reap(self) -> None:
        for child in self._children.values():
            child.poll()

    def stop(self) -> None:
        """Stop what was started; a second Ctrl-C kills it."""
        processes = list(self.cluster.processes.values())
        try:
            stop(processes, STOP_TIMEOUT_S, _say_killed, self.reap)
        except KeyboardInterrupt:
            for process in processes:
                process.send(signal.SIGKILL)
            raise Refused(
                "interrupted again: the nodes were killed; their logs are checked at the next start"
            ) from None


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _say_killed(process: object) -> None:
    note(f"pid {getattr(process, 'pid', '?')} did not stop within {STOP_TIMEOUT_S:.0f} s and is killed")


def _tell_end(node: LocalNode, log_start: int) -> None:
    for line in node.last_lines(LAST_LINES, log_start):
        note(f"  node {node.node_id} | {line}")


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


class Spinner:
    """A sign of life on a terminal. Our own: rich takes as long to import as a node to start."""

    FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
    EVERY_S = 0.08

    def __init__(self, text: str) -> None:
        self._text = text
        self._stream = sys.stderr if is_terminal(sys.stderr) else None

    def __enter__(self) -> Spinner:
        return self

    def turn(self) -> None:
        if self._stream is not None:
            frame = self.FRAMES[int(time.monotonic() / self.EVERY_S) % len(self.FRAMES)]
            self._stream.write(f"\r{frame} {self._text}")
            self._stream.flush()

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()


def _announce(cluster: LocalCluster, ready_s: float, detach: bool, as_json: bool) -> None:
    rows = [node.status() for node in cluster.nodes]
    if as_json:
        print_json(rows)
        sys.stdout.flush()
        return
    print_table(
        ("node", "pid", "address", "roles", "data"),
        [(row["node_id"], row["pid"], row["address"], row["roles"], _short(row["data_dir"])) for row in rows],
    )
    click.echo(f"\nready in {ready_s:.1f} s, cluster {cluster.cluster_id}\n")
    server = "" if cluster.port == 9092 else f" -b {HOST}:{cluster.port}"
    default = cluster.directory == os.path.abspath(DEFAULT_DIR)
    down = "strandline down" if default else local_cluster.command("down", _short(cluster.directory))
    click.echo("Try next:")
    for command in (
        f"topics create hello{server}",
        f"produce hello{server}",
        f"consume hello --from-beginning{server}",
    ):
        click.echo(f"  {_program()} {command}")
    click.echo(f"Stop it with: {down}" if detach else "Stop it with: Ctrl-C")
    sys.stdout.flush()


def _program() -> str:
    """How this program is called from here: by its name where that is found."""
    return "strandline" if shutil.which("strandline") else _short(os.path.abspath(sys.argv[0]))


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative
