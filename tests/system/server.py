"""One Strandline node as a real process, for real clients.

Always true: the process is gone when `running` is left; it listens on 127.0.0.1 only; what it logged is in `log`.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.kafka_cluster import free_ports
from bench.probe import await_brokers

from strandline.ids import Uuid
from strandline.metadata.features import bootstrap_features
from strandline.node.log_dirs import format_dirs
from strandline.runtime.disk import FileDisk

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 20.0
LOG_SHOWN_BYTES = 6000
NODE_ID = 1

T = TypeVar("T")


def eventually(check: Callable[[], T | None], what: str, timeout_s: float = 10.0) -> T:
    """The first result of `check` that is true; an empty list is not. Fails when none came in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = check()
        if result:
            return result
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:.0f} s"
        time.sleep(0.02)


@dataclass(slots=True)
class Server:
    process: subprocess.Popen[bytes]
    port: int
    data: Path
    log: Path

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_SHOWN_BYTES:]

    def stop(self) -> None:
        """In order, as an operator would."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(STOP_TIMEOUT_S)
        assert code == 0, f"the server ended with {code}\n{self.log_tail()}"

    def kill(self) -> None:
        """As a crash would: nothing is flushed, nobody is told."""
        self.process.kill()
        self.process.wait()


def format_data(data: Path, features: Mapping[str, int] | None = None, cluster_id: str | None = None) -> None:
    """Make this the log dir of a new cluster's only node; of features that are not given, the usual levels."""
    randomness = random.SystemRandom()
    levels = bootstrap_features(wanted=features)
    format_dirs(FileDisk(), [str(data)], cluster_id or str(Uuid.draw(randomness)), NODE_ID, randomness, features=levels)


@contextlib.contextmanager
def running(
    directory: Path, data: Path, properties: Mapping[str, str] | None = None, *, port: int | None = None
) -> Iterator[Server]:
    """A node over a formatted log dir. `properties` come on top; ports beyond the first are the caller's business."""
    free_port, controller_port = free_ports(2)
    port = port or free_port
    values = {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    given = dict(properties or {})
    if more := given.pop("listeners", None):
        values["listeners"] += f",{more}"
    values |= given
    file, log = directory / "server.properties", directory / "server.log"
    file.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "strandline", "server", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    server = Server(process, port, data, log)

    def check_alive() -> None:
        assert process.poll() is None, f"the server ended with {process.returncode}\n{server.log_tail()}"

    try:
        try:
            await_brokers(server.bootstrap, 1, START_TIMEOUT_S, check_alive)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{server.log_tail()}") from None
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
