"""A cluster on this machine, as `up` starts it: its directory and its description there.

    DIR/cluster.json                what was started: ids, ports, processes
    DIR/node-1/server.properties    the node's configuration
    DIR/node-1/data                 its log dir
    DIR/node-1/log                  its output

Nodes 1, 2, … are brokers: clients connect to PORT, PORT+1, …, other brokers to PORT+3000, …. They are also controllers, on
PORT+1000, …, unless there are separate ones: these are nodes 101, 102, … on the same ports. Metrics are on PORT+2000, …, those of
separate controllers on PORT+2100, ….

Always true: `cluster.json` is replaced atomically; a directory without it is used only if it is empty. The properties file of a
running node is the one it was started with.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from typing import NotRequired, TextIO, TypedDict

from strandline.cli.errors import CommandRefused
from strandline.cli.local.processes import NodeProcess

HOST = "127.0.0.1"
CONTROLLER_PORTS_FROM = 1000
METRICS_PORTS_FROM = 2000
CONTROLLER_METRICS_PORTS_FROM = 2100
BROKER_PORTS_FROM = 3000
PORT_MAX = 65535
DEFAULT_DIR = ".strandline"
STATE_FILE = "cluster.json"
STATE_VERSION = 1
CONTROLLER_IDS_FROM = 101
BROKER, CONTROLLER = "broker", "controller"
METRICS_KEY = "metrics.listener"
"""With this key in --config, `up` chooses no metrics ports; an empty value turns metrics off."""
CLIENT_LISTENER, BROKER_LISTENER, CONTROLLER_LISTENER = "PLAINTEXT", "BROKER", "CONTROLLER"
INTER_BROKER_KEY = "inter.broker.listener.name"
LISTENER_KEYS = {
    "listeners",
    "advertised.listeners",
    "listener.security.protocol.map",
    "controller.listener.names",
    INTER_BROKER_KEY,
    "security.inter.broker.protocol",
}
"""With one of these keys in --config, `up` adds no separate listener for brokers."""


class NodeStatus(TypedDict):
    """A node in `status --json`. Programs read it: its keys must not change."""

    node_id: int
    pid: int | None
    address: str
    roles: list[str]
    alive: bool
    data_dir: str
    metrics: str | None
    broker_address: str | None
    controller: NotRequired[bool]
    """Whether it is the active controller; only for nodes that are controllers."""


@dataclass
class LocalNode:
    """A node of a local cluster, with a port for each of its roles."""

    node_id: int
    port: int | None
    controller_port: int | None
    directory: str
    process: NodeProcess | None = None
    metrics_port: int | None = None
    """None if the port would be above PORT_MAX, or --config sets the listener."""
    broker_port: int | None = None
    """The listener for other brokers; None if they use that of the clients."""

    @property
    def roles(self) -> list[str]:
        ports = {BROKER: self.port, CONTROLLER: self.controller_port}
        return [role for role, port in ports.items() if port is not None]

    @property
    def ports(self) -> list[int]:
        return [port for port in (self.port, self.controller_port, self.broker_port) if port is not None]

    @property
    def metrics(self) -> str:
        """The address of its metrics, events and replicas; empty if there is none."""
        if self.metrics_port is None:
            return ""
        planned = f"{HOST}:{self.metrics_port}"
        # A node that an older version started may have another address.
        return self.written().get(METRICS_KEY, planned) if self.alive else planned

    @property
    def broker_address(self) -> str | None:
        """The address for other brokers, if it is not that of the clients."""
        if self.broker_port is None or (self.alive and not self.serves_brokers_apart):
            return None
        return f"{HOST}:{self.broker_port}"

    @property
    def serves_brokers_apart(self) -> bool:
        """Whether its properties file has a separate listener for brokers; older versions wrote none."""
        return self.written().get(INTER_BROKER_KEY) == BROKER_LISTENER

    def written(self) -> dict[str, str]:
        """The properties in its file, unparsed; none if there is no file."""
        try:
            with open(self.properties_path, encoding="iso-8859-1") as file:
                lines = [line.rstrip("\n").partition("=") for line in file if not line.startswith("#")]
        except OSError:
            return {}
        return {key: value for key, _, value in lines}

    @property
    def address(self) -> str:
        """Its address for clients; for a separate controller, its address for other nodes."""
        return f"{HOST}:{self.ports[0]}"

    @property
    def properties_path(self) -> str:
        return os.path.join(self.directory, "server.properties")

    @property
    def data_dir(self) -> str:
        return os.path.join(self.directory, "data")

    @property
    def log_path(self) -> str:
        return os.path.join(self.directory, "log")

    @property
    def log_bytes(self) -> int:
        return os.path.getsize(self.log_path) if os.path.exists(self.log_path) else 0

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.alive

    def last_lines(self, count: int, start: int = 0) -> list[str]:
        """The last lines of the node's output, from a position in its log on."""
        try:
            with open(self.log_path, "rb") as file:
                file.seek(max(start, os.path.getsize(self.log_path) - 64 * 1024))
                return file.read().decode(errors="replace").splitlines()[-count:]
        except OSError:
            return []

    def status(self) -> NodeStatus:
        return {
            "node_id": self.node_id,
            "pid": None if self.process is None else self.process.pid,
            "address": self.address,
            "roles": self.roles,
            "alive": self.alive,
            "data_dir": self.data_dir,
            "metrics": self.metrics or None,
            "broker_address": self.broker_address,
        }


@dataclass
class LocalCluster:
    """A cluster in a directory of this machine."""

    directory: str
    cluster_id: str
    port: int
    nodes_count: int
    config: dict[str, str] = field(default_factory=dict)
    processes: dict[int, NodeProcess] = field(default_factory=dict)
    controllers_count: int = 0
    """The number of separate controllers; with 0, every node is a controller."""

    @property
    def nodes(self) -> list[LocalNode]:
        are_controllers = self.controllers_count == 0
        brokers = [
            self._node(
                1 + index,
                self.port + index,
                self._controller_port(index) if are_controllers else None,
                self.port + METRICS_PORTS_FROM + index,
                self.port + BROKER_PORTS_FROM + index,
            )
            for index in range(self.nodes_count)
        ]
        controllers = [
            self._node(
                CONTROLLER_IDS_FROM + index,
                None,
                self._controller_port(index),
                self.port + CONTROLLER_METRICS_PORTS_FROM + index,
            )
            for index in range(self.controllers_count)
        ]
        return [*brokers, *controllers]

    def _controller_port(self, index: int) -> int:
        return self.port + CONTROLLER_PORTS_FROM + index

    def _node(
        self,
        node_id: int,
        port: int | None,
        controller_port: int | None,
        metrics_port: int,
        broker_port: int | None = None,
    ) -> LocalNode:
        directory = os.path.join(self.directory, f"node-{node_id}")
        has_metrics = metrics_port <= PORT_MAX and METRICS_KEY not in self.config
        # Either all brokers have the listener or none: the last port decides.
        has_brokers = self.port + BROKER_PORTS_FROM + self.nodes_count - 1 <= PORT_MAX
        if not has_brokers or LISTENER_KEYS & self.config.keys():
            broker_port = None
        return LocalNode(
            node_id,
            port,
            controller_port,
            directory,
            self.processes.get(node_id),
            metrics_port if has_metrics else None,
            broker_port,
        )

    @property
    def brokers(self) -> list[LocalNode]:
        return [node for node in self.nodes if node.port is not None]

    @property
    def controllers(self) -> list[LocalNode]:
        return [node for node in self.nodes if node.controller_port is not None]

    @property
    def stop_order(self) -> tuple[list[LocalNode], list[LocalNode]]:
        """The order to stop nodes in: brokers need the controllers for a controlled shutdown, so separate controllers come last."""
        return self.brokers, [node for node in self.nodes if node.port is None]

    @property
    def running(self) -> list[LocalNode]:
        return [node for node in self.nodes if node.alive]

    def save(self) -> None:
        path = os.path.join(self.directory, STATE_FILE)
        state = {"version": STATE_VERSION} | {k: v for k, v in asdict(self).items() if k != "directory"}
        state["processes"] = {str(node_id): process._asdict() for node_id, process in self.processes.items()}
        with open(f"{path}.tmp", "w", opener=_private) as file:
            json.dump(state, file, indent=2)
        os.replace(f"{path}.tmp", path)

    def write_properties(self) -> None:
        """Write the configuration of each node that does not run; this is repeated at every start."""
        for node in [node for node in self.nodes if not node.alive]:
            os.makedirs(node.directory, 0o700, exist_ok=True)
            lines = ["# Written by `strandline up` at every start; change it with --config key=value."]
            lines += [f"{key}={_escape(value)}" for key, value in self._properties(node).items()]
            with open(
                node.properties_path, "w", encoding="iso-8859-1", errors="backslashreplace", opener=_private
            ) as file:
                file.write("\n".join(lines) + "\n")

    def _properties(self, node: LocalNode) -> dict[str, str]:
        voters = ",".join(f"{voter.node_id}@{HOST}:{voter.controller_port}" for voter in self.controllers)
        ports = {
            CLIENT_LISTENER: node.port,
            BROKER_LISTENER: node.broker_port,
            CONTROLLER_LISTENER: node.controller_port,
        }
        listeners = {name: f"{name}://{HOST}:{port}" for name, port in ports.items() if port is not None}
        advertised = [address for name, address in listeners.items() if name != CONTROLLER_LISTENER]
        clients = {
            "advertised.listeners": ",".join(advertised),
            INTER_BROKER_KEY: CLIENT_LISTENER if node.broker_port is None else BROKER_LISTENER,
            **self._previous_listener(node),
        }
        return {
            "process.roles": ",".join(node.roles),
            "node.id": str(node.node_id),
            "listeners": ",".join(listeners.values()),
            **(clients if node.port is not None else {}),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in ports),
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.voters": voters,
            "log.dirs": node.data_dir,
            METRICS_KEY: node.metrics,
            **self._replication(),
        } | self.config

    def _previous_listener(self, node: LocalNode) -> dict[str, str]:
        """For a rolling upgrade: brokers that an older version started connect to the clients' listener."""
        is_rolling = any(other.alive and not other.serves_brokers_apart for other in self.brokers)
        if node.broker_port is None or not is_rolling:
            return {}
        return {"previous.inter.broker.listener.name": CLIENT_LISTENER}

    def _replication(self) -> dict[str, str]:
        """One replica on each broker, up to three, and all but one of them in sync: the loss of one broker loses no record."""
        factor = min(self.nodes_count, 3)
        min_isr = max(factor - 1, 1)
        return {
            "default.replication.factor": str(factor),
            "min.insync.replicas": str(min_isr),
            "offsets.topic.replication.factor": str(factor),
            "transaction.state.log.replication.factor": str(factor),
            "transaction.state.log.min.isr": str(min_isr),
        }


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")


def find(directory: str) -> LocalCluster | None:
    """The cluster in a directory, if there is one."""
    directory = os.path.abspath(directory)
    path = os.path.join(directory, STATE_FILE)
    try:
        with open(path) as file:
            state = json.load(file)
        if state.pop("version") != STATE_VERSION:
            raise CommandRefused(
                f"{path} was written by another version; remove {directory} or name another with --dir"
            )
        state["processes"] = {int(node_id): NodeProcess(**process) for node_id, process in state["processes"].items()}
        return LocalCluster(directory=directory, **state)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CommandRefused(
            f"{path} cannot be read as a cluster; remove {directory} or name another with --dir"
        ) from None


def require(directory: str) -> LocalCluster:
    cluster = find(directory)
    if cluster is None:
        raise CommandRefused(f"there is no cluster in {directory}; `{command('up', directory)}` starts one")
    return cluster


def command(verb: str, directory: str) -> str:
    """The command line that does this with the cluster in a directory."""
    import shlex

    return f"strandline {verb} --dir {shlex.quote(directory)}"


def check_ours(directory: str) -> None:
    """Refuse a directory that holds anything but a cluster of `up`."""
    if os.path.isfile(os.path.join(directory, STATE_FILE)):
        return
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise CommandRefused(f"{directory} is not a directory; name another with --dir")
    if os.path.isdir(directory) and set(os.listdir(directory)) - {LOCK_FILE}:
        raise CommandRefused(f"{directory} is not empty and holds no cluster of `up`; name another with --dir")


def clear(directory: str) -> None:
    """Delete the nodes of a cluster, then its description."""
    for name in os.listdir(directory) if os.path.isdir(directory) else ():
        if name.startswith("node-"):
            shutil.rmtree(os.path.join(directory, name))
    if os.path.isfile(os.path.join(directory, STATE_FILE)):
        os.unlink(os.path.join(directory, STATE_FILE))


LOCK_FILE = ".lock"


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read: a node's configuration may hold passwords (SEC-H1)."""
    return os.open(path, flags, 0o600)


def lock(directory: str) -> TextIO:
    """Lock the directory against another `up` while the returned file is open."""
    import fcntl

    os.makedirs(directory, 0o700, exist_ok=True)
    file = open(os.path.join(directory, LOCK_FILE), "w", opener=_private)  # noqa: SIM115  (the caller closes it)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise CommandRefused(f"another `strandline up` is busy in {directory}; stop it first") from None
    return file


def new(directory: str, port: int, nodes_count: int, controllers_count: int = 0) -> LocalCluster:
    import base64

    # Sixteen random bytes in Kafka's notation; a leading dash would look like a flag.
    cluster_id = "-"
    while cluster_id.startswith("-"):
        cluster_id = base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()
    return LocalCluster(os.path.abspath(directory), cluster_id, port, nodes_count, controllers_count=controllers_count)
