"""The node processes of one `up`, while it is their parent.

Nodes are forked from this process after it has imported everything that a node needs, so that the imports are paid for once.

Always true: all nodes are started before any is waited for; the cluster is ready when the metadata of every broker lists all
brokers; controllers are stopped after the brokers that need them.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from dataclasses import replace
from functools import partial

from strandline.cli.errors import CommandRefused
from strandline.cli.local import local_cluster, probe
from strandline.cli.local.forking import ForkedChild, fork
from strandline.cli.local.local_cluster import HOST, LocalCluster, LocalNode
from strandline.cli.local.processes import identify, stop
from strandline.cli.terminal.output import is_terminal, note

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.01
WATCH_S = 0.2
LAST_LINES = 10


class NodeProcesses:
    """The nodes of a local cluster, started, watched and stopped together."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self._children: dict[int, ForkedChild] = {}
        self._log_starts: dict[int, int] = {}
        """Where the output of this run begins in each node's log."""
        signal.signal(signal.SIGTERM, _interrupt)

    def spawn(self) -> None:
        from strandline.runtime import server

        server.warm_up()
        # The garbage collector ignores what exists now, so the nodes keep sharing its memory.
        gc.collect()
        gc.freeze()
        for node in [node for node in self.cluster.nodes if not node.alive]:
            self._log_starts[node.node_id] = node.log_bytes
            run = partial(server.main, node.properties_path, self.cluster.cluster_id)
            child = fork(run, node.log_path, f"strandline-{node.node_id}")
            self._children[node.node_id] = child
            self.cluster.processes[node.node_id] = identify(child.pid)
        known = local_cluster.find(self.cluster.directory)
        if known is not None:
            replace(known, processes=self.cluster.processes).save()

    @property
    def _started(self) -> list[LocalNode]:
        return [node for node in self.cluster.nodes if node.node_id in self._children]

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        all_brokers = {node.node_id for node in self.cluster.brokers}
        with Spinner(f"starting {_nodes(len(self.cluster.nodes))}") as spinner:
            for node in self.cluster.brokers:
                while not self._answers(node, all_brokers):
                    spinner.turn()
                    self._check_all_run()
                    if time.monotonic() > deadline:
                        raise CommandRefused(
                            f"node {node.node_id} did not answer within {READY_TIMEOUT_S:.0f} s; see {node.log_path}"
                        )
                    time.sleep(POLL_S)

    def _answers(self, node: LocalNode, all_brokers: set[int]) -> bool:
        assert node.port is not None
        answer = probe.ask(HOST, node.port)
        return (
            answer is not None and answer.cluster_id == self.cluster.cluster_id and answer.brokers.keys() >= all_brokers
        )

    def _check_all_run(self) -> None:
        self.check()
        if any(child.poll() is not None for child in self._children.values()):
            raise CommandRefused("a node was stopped before all of them were ready")

    def check(self) -> None:
        """Print the last log lines of a node that has failed, and raise CommandRefused."""
        for node in self._started:
            code = self._children[node.node_id].poll()
            if code:
                _print_last_lines(node, self._log_starts[node.node_id])
                raise CommandRefused(f"node {node.node_id} ended {_how(code)}; its log is {node.log_path}")

    def watch(self) -> None:
        """Block until Ctrl-C or until all nodes have ended; then CommandRefused if one has failed."""
        reported: set[int] = set()
        while any(child.poll() is None for child in self._children.values()):
            time.sleep(WATCH_S)
            self.reap()
            for node in self._started:
                code = self._children[node.node_id].poll()
                if code and node.node_id not in reported and len(self._children) > 1:
                    reported.add(node.node_id)
                    note(
                        f"node {node.node_id} ended {_how(code)}; start it with `strandline server {node.properties_path}`"
                    )
        self.check()

    def reap(self) -> None:
        for child in self._children.values():
            child.poll()

    def stop(self) -> None:
        """Stop the nodes that were started here; a second Ctrl-C kills them."""
        processes = [node.process for node in self._started if node.process]
        try:
            for group in self.cluster.stop_order:
                ours = [node.process for node in group if node.process in processes and node.process]
                stop(ours, STOP_TIMEOUT_S, _say_killed, self.reap)
        except KeyboardInterrupt:
            for process in processes:
                process.send(signal.SIGKILL)
            raise CommandRefused(
                "interrupted again: the nodes were killed; their logs are checked at the next start"
            ) from None


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _say_killed(process: object) -> None:
    note(f"pid {getattr(process, 'pid', '?')} did not stop within {STOP_TIMEOUT_S:.0f} s and is killed")


def _print_last_lines(node: LocalNode, log_start: int) -> None:
    for line in node.last_lines(LAST_LINES, log_start):
        note(f"  node {node.node_id} | {line}")


def _how(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by signal {signal.Signals(-code).name}"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


class Spinner:
    """A spinner on a terminal. Not rich's, whose import takes as long as starting a node."""

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
