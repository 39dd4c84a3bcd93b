"""A quorum whose voters change while it runs (KIP-853), formatted by our tool and changed by Kafka's."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.clusters import free_run_of_ports

from strandline.cli.local import probe
from tests.judges.java import judge
from tests.system.local import COMMAND, END_TIMEOUT_S, strandline
from tests.system.server import eventually

QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"

pytestmark = pytest.mark.java


class Nodes:
    """Combined nodes 1 to 4: the first three vote from the beginning, the fourth is to join."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_run_of_ports(4)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def properties(self, node_id: int) -> Path:
        return self.directory / f"node-{node_id}.properties"

    def client(self, node_id: int) -> str:
        return f"127.0.0.1:{self.port + node_id - 1}"

    def controller(self, node_id: int) -> str:
        return f"127.0.0.1:{self.port + 1000 + node_id - 1}"

    def format(self) -> None:
        cluster_id = strandline("storage", "random-uuid").strip()
        ids = {node_id: strandline("storage", "random-uuid").strip() for node_id in (1, 2, 3)}
        voters = ",".join(f"{node_id}@{self.controller(node_id)}:{ids[node_id]}" for node_id in ids)
        servers = ",".join(self.controller(node_id) for node_id in ids)
        for node_id in (1, 2, 3, 4):
            listeners = f"PLAINTEXT://{self.client(node_id)},CONTROLLER://{self.controller(node_id)}"
            self.properties(node_id).write_text(
                f"process.roles=broker,controller\nnode.id={node_id}\nlisteners={listeners}\n"
                f"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers={servers}\n"
                f"log.dirs={self.directory}/data-{node_id}\n"
            )
            quorum = ("--initial-controllers", voters) if node_id in ids else ("--no-initial-controllers",)
            strandline("storage", "format", "-t", cluster_id, "-c", str(self.properties(node_id)), *quorum)

    def start(self, node_id: int) -> None:
        with (self.directory / f"log-{node_id}").open("ab") as log:
            command = [*COMMAND, "server", str(self.properties(node_id))]
            self.processes[node_id] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def await_all(self, *node_ids: int) -> None:
        for node_id in node_ids:

            def knows_all(port: int = self.port + node_id - 1) -> bool:
                answer = probe.ask("127.0.0.1", port)
                return answer is not None and answer.brokers.keys() >= set(node_ids)

            eventually(knows_all, f"node {node_id} knows all brokers", 30)

    def members(self, node_id: int) -> dict[int, str]:
        """What each node is in the quorum, as this one tells."""
        table = strandline(
            "kafka-metadata-quorum", "--bootstrap-server", self.client(node_id), "describe", "--replication"
        )
        rows = [re.split(r"\s+", line.strip()) for line in table.splitlines()[1:]]
        return {int(row[0]): row[-1] for row in rows}

    def close(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(END_TIMEOUT_S)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    nodes = Nodes(tmp_path)
    nodes.format()
    try:
        for node_id in (1, 2, 3, 4):
            nodes.start(node_id)
        nodes.await_all(1, 2, 3, 4)
        yield nodes
    finally:
        nodes.close()


def test_a_controller_joins_and_the_leader_goes_for_good(nodes: Nodes) -> None:
    kafka = judge()
    door = ("--bootstrap-server", ",".join(nodes.client(node_id) for node_id in (1, 2, 3, 4)))
    assert nodes.members(1)[4] == "Observer"
    kafka.run(QUORUM, *door, "--command-config", str(nodes.properties(4)), "add-controller").check()
    before = nodes.members(1)
    assert before[4] in ("Follower", "Leader")
    strandline("topics", "create", "before", *door)

    leader = next(node_id for node_id, status in before.items() if status == "Leader")
    meta = (nodes.directory / f"data-{leader}" / "meta.properties").read_text()
    [directory_id] = re.findall(r"directory\.id=(\S+)", meta)
    arguments = ("--controller-id", str(leader), "--controller-directory-id", directory_id)
    kafka.run(QUORUM, *door, "remove-controller", *arguments).check()
    other = next(node_id for node_id in (1, 2, 3, 4) if node_id != leader)
    left = eventually(
        lambda: (now := nodes.members(other)).get(leader) == "Observer" and "Leader" in now.values() and now,
        "the others have a leader, and the one that was removed follows",
        20,
    )
    assert sorted(node_id for node_id, status in left.items() if status != "Observer") == sorted(
        {1, 2, 3, 4} - {leader}
    )

    gone = next(node_id for node_id, status in left.items() if status == "Leader")
    nodes.processes[gone].kill()
    nodes.processes.pop(gone).wait(END_TIMEOUT_S)
    living = ",".join(nodes.client(node_id) for node_id in (1, 2, 3, 4) if node_id != gone)
    strandline("topics", "create", "after", "--bootstrap-server", living)
    listed = strandline("kafka-topics", "--list", "--bootstrap-server", living)
    assert listed.split() == ["after", "before"]
