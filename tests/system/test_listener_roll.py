"""A cluster whose brokers shared the clients' listener is restarted node by node under load, and ends with one of their own.

The nodes that are not restarted yet are configured as the version before wrote their files: they look for every leader on the
clients' listener, and can be found there only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.cli.local import local_cluster
from strandline.cli.local.processes import identify
from tests.system.copies import assert_equal_on_disk, ends
from tests.system.load import all_in_sync, load, make_topic
from tests.system.local import Cluster, strandline
from tests.system.server import eventually

NODES = (1, 2, 3)
PARTITIONS = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
TOPIC = "rolled"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three nodes that run with one listener for clients and brokers."""
    made = Cluster(tmp_path / "cluster", len(NODES), 0)
    made.up("--nodes", str(len(NODES)))
    made.down()
    for node_id in NODES:
        path = made.directory / f"node-{node_id}" / "server.properties"
        path.write_text(_as_before(path.read_text()))
        made.restart(node_id)
    try:
        made.await_brokers()
        known = local_cluster.require(str(made.directory))
        known.processes = {node_id: identify(made.pid(node_id)) for node_id in NODES}
        known.save()
        yield made
    finally:
        made.close()


def _as_before(text: str) -> str:
    """What the version before wrote."""
    lines = []
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key in ("listeners", "advertised.listeners", "listener.security.protocol.map"):
            value = ",".join(part for part in value.split(",") if not part.startswith("BROKER:"))
            line = f"{key}={value}"
        elif key == "inter.broker.listener.name":
            line = f"{key}=PLAINTEXT"
        lines.append(line)
    return "\n".join(lines) + "\n"


def told(cluster: Cluster) -> list[tuple[str, str]]:
    """What doctor says of the listeners."""
    findings = json.loads(strandline("doctor", "--dir", str(cluster.directory), "--json"))
    return [(each["level"], each["found"]) for each in findings if each["check"] == "listeners"]


def addresses(cluster: Cluster) -> list[str | None]:
    return [row["broker_address"] for row in cluster.status()]


def restart_by_up(cluster: Cluster, node_id: int) -> None:
    cluster.stop(node_id)
    eventually(lambda: not cluster.status()[node_id - 1]["alive"], f"node {node_id} is gone", 30)
    cluster.up()


def test_sec_t7_a_cluster_of_the_version_before_is_restarted_node_by_node(cluster: Cluster) -> None:
    assert addresses(cluster) == [None] * 3
    assert told(cluster) == [
        ("warn", "broker 1, 2, 3: PLAINTEXT serves both clients and brokers: any client can act as a broker there")
    ]
    topic = make_topic(cluster, TOPIC, PARTITIONS, min_insync_replicas="2")
    with load(cluster, topic) as running:
        for node_id in NODES:
            restart_by_up(cluster, node_id)
            all_in_sync(cluster, topic)
            running.more()
        of_their_own = [f"127.0.0.1:{cluster.port + 3000 + index}" for index in range(3)]
        assert addresses(cluster) == of_their_own
        assert told(cluster) == [
            (
                "warn",
                "broker 1, 2: PLAINTEXT still serves brokers besides BROKER: any client can act as a broker there",
            ),
            ("ok", "broker 3: brokers have a separate listener, BROKER"),
        ]
        for node_id in (1, 2):
            restart_by_up(cluster, node_id)
            all_in_sync(cluster, topic)
        running.more()
        running.check()
    assert told(cluster) == [("ok", "broker 1, 2, 3: brokers have a separate listener, BROKER")]
    assert_equal_on_disk(cluster, TOPIC, len(PARTITIONS), ends(running.acknowledged))
