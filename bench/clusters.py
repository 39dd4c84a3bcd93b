"""The clusters that are measured: Strandline as a user starts it, and Apache Kafka beside it.

Always true: a cluster's processes are gone when its `with` block is left, and its data unless the caller named a directory;
`start_s` is the time from the command until every broker named all of them in a Metadata answer. Kafka's directories are formatted
before its clock starts, ours after.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.kafka_cluster import free_ports, kafka_cluster
from bench.probe import await_brokers

Name = Literal["ours", "kafka"]
START_TIMEOUT_S = 30.0
COMMAND_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 180.0
"""Every log is flushed at a stop, and there may be thousands; what has not stopped by then is killed."""
CONTROLLER_PORT_OFFSET = 1000
PORT_ATTEMPTS_MAX = 20


class CannotStart(Exception):
    """A cluster did not come up; says what it printed."""


@dataclass(frozen=True, slots=True)
class Cluster:
    name: Name
    bootstrap: str
    pids: tuple[int, ...]
    start_s: float


@contextlib.contextmanager
def apache_kafka(nodes: int, directory: Path | None = None) -> Iterator[Cluster]:
    """A directory that is given is kept, so that the cluster can be started again on it."""
    with kafka_cluster(nodes, directory=directory) as cluster:
        yield Cluster("kafka", cluster.bootstrap, cluster.pids, cluster.start_s)


@contextlib.contextmanager
def strandline(nodes: int, directory: Path | None = None) -> Iterator[Cluster]:
    """A directory that is given is kept, so that the cluster can be started again on it."""
    with contextlib.ExitStack() as stack:
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="strandline-bench-", ignore_cleanup_errors=True)
            directory = Path(stack.enter_context(temporary))
        directory.mkdir(parents=True, exist_ok=True)
        port = free_run_of_ports(nodes)
        log = directory / "up.out"
        command = _command("up", "--nodes", str(nodes), "--detach", "--dir", f"{directory}/data", "--port", str(port))
        started = time.monotonic()
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
                try:
                    for node in range(nodes):
                        address = f"127.0.0.1:{port + node}"
                        await_brokers(address, nodes, START_TIMEOUT_S, lambda: _check_alive(process, log))
                except TimeoutError as error:
                    raise CannotStart(f"{error}:\n{log.read_text(errors='replace')}") from None
                start_s = time.monotonic() - started
                process.wait(COMMAND_TIMEOUT_S)
            bootstrap = ",".join(f"127.0.0.1:{port + node}" for node in range(nodes))
            yield Cluster("ours", bootstrap, _pids(f"{directory}/data"), start_s)
        finally:
            subprocess.run(
                _command("down", "--dir", f"{directory}/data", "--timeout", str(STOP_TIMEOUT_S)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=STOP_TIMEOUT_S + COMMAND_TIMEOUT_S,
                check=False,
            )


def _command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("strandline")), *arguments]


def _check_alive(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll():
        raise CannotStart(f"strandline up ended with {process.returncode}: {log.read_text(errors='replace').strip()}")


def _pids(directory: str) -> tuple[int, ...]:
    status = subprocess.run(
        _command("status", "--dir", directory, "--json"),
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=True,
    )
    return tuple(int(node["pid"]) for node in json.loads(status.stdout))


def free_run_of_ports(nodes: int) -> int:
    """A port that begins a run of free ones for clients, with the run of the controllers free as well."""
    for _ in range(PORT_ATTEMPTS_MAX):
        port = free_ports(1)[0]
        wanted = [port + node + offset for node in range(nodes) for offset in (0, CONTROLLER_PORT_OFFSET)]
        if max(wanted) < 65536 and _all_free(wanted):
            return port
    raise CannotStart(f"no {nodes} free ports in a row on 127.0.0.1")


def _all_free(ports: Sequence[int]) -> bool:
    with contextlib.ExitStack() as stack:
        for port in ports:
            try:
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                return False
    return True
