"""The clusters that are measured: Strandline as a user starts it, and Apache Kafka beside it.

Always true: a cluster's processes are gone when its `with` block is left, and its data unless the caller named a directory;
`start_s` is the time from the command until every broker named all of them in a Metadata answer. Kafka's directories are formatted
before its clock starts, ours after. Node ids begin with 1, and every node is broker and controller in one.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from rich.console import Console
from tests.judges.java import JudgeMissing, find_kafka

from bench.kafka_cluster import free_ports, kafka_cluster
from bench.probe import await_brokers

Name = Literal["ours", "kafka"]
TITLES: Mapping[Name, str] = {"ours": "Strandline", "kafka": "Apache Kafka"}
START_TIMEOUT_S = 30.0
COMMAND_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 180.0
"""Every log is flushed at a stop, and there may be thousands; what has not stopped by then is killed."""
PORT_OFFSETS = (0, 1000, 2000, 2100, 3000)
"""Of the clients' port, the controllers', that of the metrics (separate controllers have theirs apart), and the brokers'."""
PORT_ATTEMPTS_MAX = 20


class CannotStart(Exception):
    """A cluster did not come up; says what it printed."""


@dataclass(frozen=True, slots=True)
class Cluster:
    name: Name
    bootstrap: str
    pids: tuple[int, ...]
    """In the order of node ids."""
    start_s: float
    revive: Callable[[], tuple[int, ...]]
    """Start the nodes that died, and return the process ids of all once every broker knows all of them."""

    @property
    def addresses(self) -> list[str]:
        return self.bootstrap.split(",")


def wanted(only: Name | None, console: Console) -> list[Name]:
    """What is to be measured and can be."""
    if only is not None:
        return [only]
    try:
        find_kafka()
    except JudgeMissing as missing:
        console.print(f"without Apache Kafka: {missing}", markup=False, style="yellow")
        return ["ours"]
    return ["ours", "kafka"]


@contextlib.contextmanager
def apache_kafka(nodes: int, directory: Path | None = None) -> Iterator[Cluster]:
    """A directory that is given is kept, so that the cluster can be started again on it."""
    with kafka_cluster(nodes, directory=directory) as cluster:
        yield Cluster("kafka", cluster.bootstrap, cluster.pids, cluster.start_s, cluster.revive)


@contextlib.contextmanager
def strandline(nodes: int, directory: Path | None = None, source: Path | None = None) -> Iterator[Cluster]:
    """A directory that is given is kept, so that the cluster can be started again on it. `source`: of another commit."""
    environment = dict(os.environ) if source is None else {**os.environ, "PYTHONPATH": str(source)}
    with contextlib.ExitStack() as stack:
        if directory is None:
            temporary = tempfile.TemporaryDirectory(prefix="strandline-bench-", ignore_cleanup_errors=True)
            directory = Path(stack.enter_context(temporary))
        directory.mkdir(parents=True, exist_ok=True)
        port = free_run_of_ports(nodes)
        addresses = [f"127.0.0.1:{port + node}" for node in range(nodes)]
        log = directory / "up.out"
        command = _command("up", "--nodes", str(nodes), "--detach", "--dir", f"{directory}/data", "--port", str(port))
        started = time.monotonic()
        try:
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
                )
                _await_all(addresses, log, lambda: _check_alive(process, log))
                start_s = time.monotonic() - started
                process.wait(COMMAND_TIMEOUT_S)
            revive = partial(_revive, command, addresses, log, environment)
            yield Cluster("ours", ",".join(addresses), _pids(f"{directory}/data"), start_s, revive)
        finally:
            subprocess.run(
                _command("down", "--dir", f"{directory}/data", "--timeout", str(STOP_TIMEOUT_S)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=STOP_TIMEOUT_S + COMMAND_TIMEOUT_S,
                check=False,
            )


START: Mapping[Name, Callable[..., AbstractContextManager[Cluster]]] = {"ours": strandline, "kafka": apache_kafka}


def _command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("strandline")), *arguments]


def _check_alive(process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll():
        raise CannotStart(f"strandline up ended with {process.returncode}: {log.read_text(errors='replace').strip()}")


def _await_all(addresses: Sequence[str], log: Path, check: Callable[[], None]) -> None:
    try:
        for address in addresses:
            await_brokers(address, len(addresses), START_TIMEOUT_S, check)
    except TimeoutError as error:
        raise CannotStart(f"{error}:\n{log.read_text(errors='replace')}") from None


def _revive(command: list[str], addresses: Sequence[str], log: Path, environment: Mapping[str, str]) -> tuple[int, ...]:
    """The same command starts the nodes that died beside those that run."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        process.wait(COMMAND_TIMEOUT_S)
    _check_alive(process, log)
    _await_all(addresses, log, lambda: None)
    return _pids(command[command.index("--dir") + 1])


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
    """A port that begins a run of free ones for clients, with the other runs of a cluster free as well."""
    for _ in range(PORT_ATTEMPTS_MAX):
        port = free_ports(1)[0]
        ports = [port + node + offset for node in range(nodes) for offset in PORT_OFFSETS]
        if _all_free(ports):
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
