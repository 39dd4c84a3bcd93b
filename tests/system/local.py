"""Clusters as `strandline up` starts them, for tests that kill, stop and restart their nodes.

Always true: when `up` is left, every process that it or the test started is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.clusters import free_run_of_ports

from strandline.cli.local import probe
from strandline.cli.local.local_cluster import METRICS_PORTS_FROM
from tests.system.server import eventually

COMMAND = [sys.executable, "-m", "strandline"]
COMMAND_TIMEOUT_S = 90
END_TIMEOUT_S = 30


def strandline(*arguments: str, stdin: str = "", code: int = 0) -> str:
    """The output of one call; its exit code must be as expected."""
    done = subprocess.run(
        [*COMMAND, *arguments], input=stdin, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
    )
    assert done.returncode == code, f"{arguments} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout if code == 0 else done.stdout + done.stderr


class Cluster:
    def __init__(self, directory: Path, nodes: int, controllers: int) -> None:
        self.directory = directory
        self.nodes = nodes
        self.controllers = controllers
        self.port = free_run_of_ports(max(nodes + 1, controllers))
        """One more is free: a broker may be added."""
        self.metrics_port = self.port + METRICS_PORTS_FROM
        self._restarted: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self.port + index}" for index in range(self.nodes))

    def without(self, *node_ids: int) -> str:
        """The other brokers."""
        others = [node_id for node_id in range(1, self.nodes + 1) if node_id not in node_ids]
        return ",".join(f"127.0.0.1:{self.port + node_id - 1}" for node_id in others)

    @property
    def server(self) -> tuple[str, str]:
        return "--bootstrap-server", self.bootstrap

    @property
    def controller(self) -> tuple[str, str]:
        ports = range(self.port + 1000, self.port + 1000 + (self.controllers or self.nodes))
        return "--bootstrap-controller", ",".join(f"127.0.0.1:{port}" for port in ports)

    def up(self, *arguments: str) -> str:
        return strandline("up", "--detach", "--dir", str(self.directory), "--port", str(self.port), *arguments)

    def down(self) -> str:
        return strandline("down", "--dir", str(self.directory))

    def status(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(strandline("status", "--dir", str(self.directory), "--json"))
        return rows

    def pid(self, node_id: int) -> int:
        restarted = self._restarted.get(node_id)
        return restarted.pid if restarted else next(row["pid"] for row in self.status() if row["node_id"] == node_id)

    def active(self) -> int:
        """The node that is the active controller, once there is one."""

        def find() -> int | None:
            first = 101 if self.controllers else 1
            ports = range(self.port + 1000, self.port + 1000 + (self.controllers or self.nodes))
            leading = [first + index for index, port in enumerate(ports) if probe.leads("127.0.0.1", port)]
            return leading[0] if len(leading) == 1 else None

        return eventually(find, "an active controller", 20)

    def kill(self, node_id: int) -> None:
        pid = self.pid(node_id)
        node = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        restarted = self._restarted.pop(node_id, None)
        if restarted is not None:
            restarted.wait(END_TIMEOUT_S)
        else:
            assert select.select([node], [], [], END_TIMEOUT_S)[0]
        os.close(node)

    def stop(self, node_id: int) -> None:
        """As an operator would: the node hands over what it leads, then ends by itself."""
        pid = self.pid(node_id)
        node = os.pidfd_open(pid)
        os.kill(pid, signal.SIGTERM)
        assert select.select([node], [], [], END_TIMEOUT_S)[0], f"node {node_id} did not end"
        os.close(node)
        self.forget(node_id)

    @contextlib.contextmanager
    def paused(self, *node_ids: int) -> Iterator[None]:
        """These nodes stand still for a while, with all their connections open."""
        pids = [self.pid(node_id) for node_id in node_ids]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def forget(self, node_id: int) -> None:
        """A node that the test killed by itself."""
        restarted = self._restarted.pop(node_id, None)
        if restarted is not None:
            restarted.wait(END_TIMEOUT_S)

    def restart(self, node_id: int) -> None:
        """Start a node that was killed, by itself."""
        directory = self.directory / f"node-{node_id}"
        with (directory / "log").open("ab") as log:
            command = [*COMMAND, "server", str(directory / "server.properties")]
            self._restarted[node_id] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def configure(self, node_id: int, **properties: str) -> None:
        """Properties of one node alone, from its next start by `restart` on."""
        with (self.directory / f"node-{node_id}" / "server.properties").open("a") as file:
            file.writelines(f"{name.replace('_', '.')}={value}\n" for name, value in properties.items())

    def served(self, node_id: int, path: str) -> str:
        """What a broker tells at its metrics port."""
        url = f"http://127.0.0.1:{self.metrics_port + node_id - 1}{path}"
        with urllib.request.urlopen(url, timeout=COMMAND_TIMEOUT_S) as answer:
            text: str = answer.read().decode()
        return text

    def await_brokers(self) -> None:
        """Until every broker knows all of them to be alive."""
        everyone = set(range(1, self.nodes + 1))
        for index in range(self.nodes):

            def knows_all(port: int = self.port + index) -> bool:
                answer = probe.ask("127.0.0.1", port)
                return answer is not None and answer.brokers.keys() >= everyone

            eventually(knows_all, f"node {index + 1} knows all brokers", 30)

    def close(self) -> None:
        for process in self._restarted.values():
            process.terminate()
        for process in self._restarted.values():
            try:
                process.wait(END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.down()

    def logs(self) -> str:
        return "\n".join(
            f"{path}:\n{path.read_text(errors='replace')[-2000:]}" for path in sorted(self.directory.glob("node-*/log"))
        )


@contextlib.contextmanager
def up(directory: Path, nodes: int, controllers: int = 0, *arguments: str) -> Iterator[Cluster]:
    cluster = Cluster(directory, nodes, controllers)
    cluster.up("--nodes", str(nodes), "--controllers", str(controllers), *arguments)
    try:
        yield cluster
    except BaseException:
        sys.stderr.write(cluster.logs())
        raise
    finally:
        cluster.close()
