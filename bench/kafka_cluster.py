"""A cluster of real Apache Kafka on this machine, to measure and compare with.

Every node is broker and controller in one, on ports of 127.0.0.1 that were free. Always true: when `kafka_cluster` is left, in
whatever way, its processes are gone; where `setpriv` exists they even die with a parent that was killed.

    python bench/kafka_cluster.py 3      # prints the bootstrap servers, runs until interrupted
"""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.judges.java import Kafka, Run, find_kafka

from bench.probe import await_brokers
from bench.processes import is_running

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 20.0
PORTS = range(10_000, 28_000)
"""Below the ports that Linux gives to outgoing connections: none of those may take the port of a node that is down for a while."""


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """Running brokers. `pids` and `addresses` are in the order of node ids, which begin with 1; logs are in `directory`.

    `start_s` is the time from the start of the processes, formatted before, until each of them knew all of them.
    """

    bootstrap: str
    addresses: tuple[str, ...]
    pids: tuple[int, ...]
    directory: Path
    start_s: float
    revive: Callable[[], tuple[int, ...]]
    """Start the nodes that died, and return the process ids of all once every broker knows all of them."""


@contextlib.contextmanager
def kafka_cluster(
    nodes: int = 1,
    *,
    properties: Mapping[str, str] | None = None,
    features: Mapping[str, int] | None = None,
    directory: Path | None = None,
    heap: str = "1G",
    log_level: str = "warn",
    ports: Sequence[int] = (),
) -> Iterator[KafkaCluster]:
    """`nodes` combined nodes with these extra properties, and features at these levels instead of Kafka's own.
    A directory that is given is kept, otherwise all data goes at the end. Ports are for clients, in place of free ones.
    """
    kafka = find_kafka()
    with contextlib.ExitStack() as stack:
        if directory is None:
            directory = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-cluster-", ignore_cleanup_errors=True))
            )
        directory.mkdir(parents=True, exist_ok=True)
        free = free_ports(2 * nodes)
        client_ports, controller_ports = [*ports] or free[:nodes], free[nodes:]
        files = [
            _write_properties(directory, node, client_ports, controller_ports, properties or {})
            for node in range(1, nodes + 1)
        ]
        _format(kafka, files, features or {})
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(_stop, processes)
        logs = [stack.enter_context((directory / f"{node}.log").open("wb")) for node in range(1, nodes + 1)]
        addresses = tuple(f"127.0.0.1:{port}" for port in client_ports)

        def start(index: int) -> subprocess.Popen[bytes]:
            command = _command(kafka, files[index], heap, log_level)
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=logs[index], stderr=logs[index])

        def await_all() -> tuple[int, ...]:
            for address in addresses:
                await_brokers(address, nodes, START_TIMEOUT_S, lambda: _check_alive(processes, directory))
            return tuple(process.pid for process in processes)

        def revive() -> tuple[int, ...]:
            for index, process in enumerate(processes):
                if not is_running(process.pid):
                    process.wait(STOP_TIMEOUT_S)  # its first thread has ended, the others may need a moment
                    processes[index] = start(index)
            return await_all()

        started = time.monotonic()
        processes += [start(index) for index in range(nodes)]
        pids = await_all()
        start_s = time.monotonic() - started
        yield KafkaCluster(",".join(addresses), addresses, pids, directory, start_s, revive)


_chance = random.SystemRandom()
"""Not the generator that a test may have seeded: two processes with one seed would draw the same ports."""


def free_ports(count: int) -> list[int]:
    """Ports that are free now. They are held together while drawn, so that none comes twice."""
    with contextlib.ExitStack() as stack:
        ports: list[int] = []
        while len(ports) < count:
            port = _chance.choice(PORTS)
            with contextlib.suppress(OSError):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                ports.append(port)
        return ports


def _write_properties(
    directory: Path, node: int, client_ports: list[int], controller_ports: list[int], extra: Mapping[str, str]
) -> Path:
    replicas = min(len(client_ports), 3)
    in_sync = min(replicas, 2)
    values = {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(
            f"{n}@127.0.0.1:{port}" for n, port in enumerate(controller_ports, start=1)
        ),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{client_ports[node - 1]},CONTROLLER://127.0.0.1:{controller_ports[node - 1]}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(directory / f"data-{node}"),
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "group.initial.rebalance.delay.ms": "0",
    } | dict(extra)
    file = directory / f"{node}.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    return file


def _format(kafka: Kafka, files: list[Path], features: Mapping[str, int]) -> None:
    levels = [word for name, level in features.items() for word in ("--feature", f"{name}={level}")]
    arguments = [("format", "-t", CLUSTER_ID, "-c", str(file), "--ignore-formatted", *levels) for file in files]
    for result in kafka.run_all([Run("kafka.tools.StorageTool", each) for each in arguments]):
        result.check()


def _command(kafka: Kafka, file: Path, heap: str, log_level: str) -> list[str]:
    # The options of Kafka's own start script, so that a comparison is fair.
    jvm = [f"-Xmx{heap}", f"-Xms{heap}", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    jvm += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true"]
    command = kafka.command("kafka.Kafka", str(file), jvm=jvm, log_level=log_level)
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else command


def _check_alive(processes: list[subprocess.Popen[bytes]], directory: Path) -> None:
    for node, process in enumerate(processes, start=1):
        if process.poll() is not None:
            raise RuntimeError(
                f"Kafka node {node} ended with {process.returncode}:\n{_tail(directory / f'{node}.log')}"
            )


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """All together, because a stopping broker may wait for a controller that still lives."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + STOP_TIMEOUT_S
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt), kafka_cluster(int(sys.argv[1]) if len(sys.argv) > 1 else 1) as cluster:
        print(cluster.bootstrap, *cluster.pids, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
