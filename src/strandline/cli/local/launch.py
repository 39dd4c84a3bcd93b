"""The node processes of one `up`, while it is their parent.

Nodes are forked from this process once it has imported all that a node needs, so that three of them pay for that once.

Always true: all nodes are started before any is waited for; ready means that every broker named all others in an answer of its
own; controllers are stopped after the brokers that need them.
"""

from __future__ import annotations

import gc
import signal
import sys
import time
from dataclasses import replace
from functools import partial

from strandline.cli.errors import Refused
from strandline.cli.local import local_cluster, probe
from strandline.cli.local.forking import Child, fork
from strandline.cli.local.local_cluster import HOST, LocalCluster, LocalNode
from strandline.cli.local.processes import identify, stop
from strandline.cli.terminal.output import is_terminal, note

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
POLL_S = 0.01
WATCH_S = 0.2
LAST_LINES = 10


class Launch:
    """Started, watched and stopped together."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self._children: dict[int, Child] = {}
        self._log_starts: dict[int, int] = {}
        """Where the words of this run begin in each node's log."""
        signal.signal(signal.SIGTERM, _interrupt)

    def spawn(self) -> None:
        from strandline.runtime import server

        server.warm_up()
        # What is there now is never looked at again, so the nodes go on sharing its memory.
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
        everyone = {node.node_id for node in self.cluster.brokers}
        with Spinner(f"starting {_nodes(len(self.cluster.nodes))}") as spinner:
            for node in self.cluster.brokers:
                while not self._answers(node, everyone):
                    spinner.turn()
                    self._check_all_run()
                    if time.monotonic() > deadline:
                        raise Refused(
                            f"node {node.node_id} did not answer within {READY_TIMEOUT_S:.0f} s; see {node.log_path}"
                        )
                    time.sleep(POLL_S)

    def _answers(self, node: LocalNode, everyone: set[int]) -> bool:
        assert node.port is not None
        answer = probe.ask(HOST, node.port)
        return answer is not None and answer.cluster_id == self.cluster.cluster_id and answer.brokers.keys() >= everyone

    def _check_all_run(self) -> None:
        self.check()
        if any(child.poll() is not None for child in self._children.values()):
            raise Refused("a node was stopped before all of them were ready")

    def check(self) -> None:
        """Refused, with its last words, if a node has ended otherwise than in order."""
        for node in self._started:
            code = self._children[node.node_id].poll()
            if code:
                _tell_end(node, self._log_starts[node.node_id])
                raise Refused(f"node {node.node_id} ended {_how(code)}; its log is {node.log_path}")

    def watch(self) -> None:
        """Stay until Ctrl-C. A node that dies leaves the others running; Refused when the last one is gone, unless in order."""
        told: set[int] = set()
        while any(child.poll() is None for child in self._children.values()):
            time.sleep(WATCH_S)
            self.reap()
            for node in self._started:
                code = self._children[node.node_id].poll()
                if code and node.node_id not in told and len(self._children) > 1:
                    told.add(node.node_id)
                    note(
                        f"node {node.node_id} ended {_how(code)}; start it with `strandline server {node.properties_path}`"
                    )
        self.check()

    def reap(self) -> None:
        for child in self._children.values():
            child.poll()

    def stop(self) -> None:
        """Stop what was started; a second Ctrl-C kills it."""
        processes = [node.process for node in self._started if node.process]
        try:
            for group in self.cluster.stop_order:
                ours = [node.process for node in group if node.process in processes and node.process]
                stop(ours, STOP_TIMEOUT_S, _say_killed, self.reap)
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


def _how(code: int) -> str:
    return f"with exit code {code}" if code >= 0 else f"by signal {signal.Signals(-code).name}"


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
