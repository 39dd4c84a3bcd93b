"""Several nodes as real processes: started, killed, resumed, and what they remember."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from strandline.client.blocking import Admin, Client, ClientConfig
from strandline.client.flow.descriptions import NewTopic
from strandline.errors import ErrorCode, KafkaError
from tests.system.local import COMMAND, Cluster, strandline, up
from tests.system.server import eventually

ROUNDS = 10
MEMORY_MB_MAX = 80


def test_three_nodes_are_started_killed_and_resumed(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 3) as cluster:
        rows = cluster.status()
        assert [(row["node_id"], row["roles"], row["alive"]) for row in rows] == [
            (node_id, ["broker", "controller"], True) for node_id in (1, 2, 3)
        ]
        assert [row["controller"] for row in rows].count(True) == 1
        strandline("topics", "create", "kept", "--partitions", "6", *cluster.server)
        before = topics(cluster)
        assert {leader for _, leaders in before.values() for leader in leaders} == {1, 2, 3}
        for node_id in (1, 2, 3):
            cluster.kill(node_id)
        assert [row["alive"] for row in cluster.status()] == [False] * 3
        cluster.up()
        assert topics(cluster).keys() == before.keys()
        assert {name: topic_id for name, (topic_id, _) in topics(cluster).items()} == {
            name: topic_id for name, (topic_id, _) in before.items()
        }


def test_one_node_of_three_is_killed_and_the_others_go_on(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 3) as cluster:
        standby = next(node_id for node_id in (1, 2, 3) if node_id != cluster.active())
        strandline("topics", "create", "spread", "--partitions", "6", *cluster.server)
        strandline("topics", "create", "single", "--partitions", "6", "--replication-factor", "1", *cluster.server)
        alone = [leader == standby for leader in topics(cluster)["single"][1]]
        cluster.kill(standby)
        others = f"127.0.0.1:{cluster.port + cluster.active() - 1}"

        def others_lead() -> bool:
            found = topics(cluster)
            led = {name: [is_led(leader) and leader != standby for leader in found[name][1]] for name in found}
            return all(led["spread"]) and led["single"] == [not was_alone for was_alone in alone]

        eventually(others_lead, "the others lead what they have a replica of, and nobody the rest", 10)
        for partition in range(6):
            strandline("produce", "spread", "--partition", str(partition), "-b", others, stdin="still served\n")
        strandline("topics", "create", "during", "-b", others)
        cluster.restart(standby)
        cluster.await_brokers()
        assert "during" in strandline("topics", "list", "-b", f"127.0.0.1:{cluster.port + standby - 1}")


def test_up_again_starts_the_nodes_that_died_beside_those_that_run(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 3) as cluster:
        before = {row["node_id"]: row["pid"] for row in cluster.status()}
        cluster.kill(2)
        cluster.up()
        after = {row["node_id"]: row["pid"] for row in cluster.status() if row["alive"]}
        assert after.keys() == {1, 2, 3}
        assert {node_id for node_id, pid in after.items() if before[node_id] == pid} == {1, 3}
        said = strandline("up", "--dir", str(cluster.directory), "--detach", code=1)
        assert "already running" in said


def test_separate_roles_and_more_brokers(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 2, 3) as cluster:
        rows = cluster.status()
        assert [(row["node_id"], row["roles"]) for row in rows] == [
            (1, ["broker"]),
            (2, ["broker"]),
            (101, ["controller"]),
            (102, ["controller"]),
            (103, ["controller"]),
        ]
        assert [row.get("controller") for row in rows].count(True) == 1
        assert all("controller" not in row for row in rows[:2])
        strandline("topics", "create", "kept", "--partitions", "4", *cluster.server)
        stopped = cluster.down().splitlines()
        assert [line.split()[1] for line in stopped] == ["1", "2", "101", "102", "103"]
        assert all("stopped cleanly" in line for line in stopped)

        cluster.up("--nodes", "3")
        cluster.nodes = 3
        described = json.loads(strandline("cluster", "describe", "--json", *cluster.server))
        assert [(row["node_id"], row["state"]) for row in described["brokers"]] == [
            (node_id, "unfenced") for node_id in (1, 2, 3)
        ]
        assert "kept" in topics(cluster)
        refused = strandline("up", "--dir", str(cluster.directory), "--controllers", "1", code=1)
        assert "already running" in refused


def test_a_broker_that_is_gone_for_good_is_forgotten(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 2, 1) as cluster:
        first = ("-b", f"127.0.0.1:{cluster.port}")
        refused = strandline("cluster", "unregister", "9", *first, code=1)
        assert "BROKER_ID_NOT_REGISTERED" in refused
        cluster.kill(2)
        strandline("cluster", "unregister", "2", *first)
        described = json.loads(strandline("cluster", "describe", "--json", *first))
        assert [row["node_id"] for row in described["brokers"]] == [1]


def test_stopping_all_and_starting_again_loses_nothing(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 3) as cluster:
        with Client(cluster.bootstrap) as client:
            wanted = [NewTopic(f"topic-{n}", 2, configs={"retention.ms": str(1000 + n)}) for n in range(30)]
            made = Admin(client).create_topics(wanted)
            assert not [answer for answer in made.values() if isinstance(answer, KafkaError)]
        records = "".join(f"{number}\n" for number in range(500))
        strandline("produce", "topic-7", *cluster.server, stdin=records)
        before = without_leaders(cluster)
        assert cluster.down().count("stopped cleanly") == 3
        cluster.up()
        eventually(lambda: without_leaders(cluster) == before, "all is as it was, with all in sync", 30)
        read = strandline("consume", "topic-7", "--from-beginning", "--max-messages", "500", *cluster.server)
        assert sorted(read.split()) == sorted(records.split())


def test_ctrl_c_stops_all_nodes_cleanly(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "cluster", 2, 1)
    arguments = [
        "up",
        "--nodes",
        "2",
        "--controllers",
        "1",
        "--dir",
        str(cluster.directory),
        "--port",
        str(cluster.port),
    ]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while "Stop it with" not in said:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            said += line
        assert "101\t" in said
        assert "\tcontroller\t" in said
        process.send_signal(signal.SIGINT)
        assert "stopped cleanly in" in process.communicate(timeout=60)[1]
        assert process.returncode == 0
        assert not any(row["alive"] for row in cluster.status())
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(60)
        cluster.close()


def test_a_node_takes_little_memory(tmp_path: Path) -> None:
    with up(tmp_path / "cluster", 3) as cluster:
        for row in cluster.status():
            fields = Path(f"/proc/{row['pid']}/status").read_text().splitlines()
            resident = next(int(line.split()[1]) for line in fields if line.startswith("VmRSS:")) / 1024
            assert resident <= MEMORY_MB_MAX, f"node {row['node_id']} takes {resident:.0f} MB"


def test_killing_the_active_controller_stops_nobody_from_creating_topics(tmp_path: Path, record_property) -> None:
    """A topic is asked for at the moment the active controller dies; it is there in the end, and so are all before it."""
    stalls: list[float] = []
    with up(tmp_path / "cluster", 3) as cluster:
        for number in range(ROUNDS):
            active = cluster.active()
            survivors = ",".join(f"127.0.0.1:{cluster.port + n - 1}" for n in (1, 2, 3) if n != active)
            with Client(survivors, config=ClientConfig(default_api_timeout_ms=60_000)) as client:
                admin = Admin(client)
                admin.list_topics()
                victim = cluster.pid(active)
                killer = threading.Thread(target=os.kill, args=(victim, signal.SIGKILL))
                began = time.monotonic()
                killer.start()
                made = admin.create_topics([NewTopic(f"round-{number}", 1, 1)])[f"round-{number}"]
                stalls.append(time.monotonic() - began)
                killer.join()
            # The reply may have died with the controller; then the second attempt found the topic made.
            assert not isinstance(made, KafkaError) or made.code is ErrorCode.TOPIC_ALREADY_EXISTS, made
            cluster.forget(active)
            cluster.restart(active)
            cluster.await_brokers()
        assert {f"round-{number}" for number in range(ROUNDS)} <= topics(cluster).keys()
    median_ms = statistics.median(stalls) * 1000
    record_property("median_ms", median_ms)
    print(
        f"CreateTopics while the active controller is killed: median {median_ms:.0f} ms, max {max(stalls) * 1000:.0f} ms"
    )


def topics(cluster: Cluster) -> dict[str, tuple[str, list[int]]]:
    """Each topic's id, and the leaders of its partitions."""
    described = json.loads(strandline("topics", "describe", "--json", *cluster.server))
    return {
        topic["name"]: (topic["topic_id"], [partition["leader"] for partition in topic["partitions"]])
        for topic in described
    }


def without_leaders(cluster: Cluster) -> list[dict[str, Any]]:
    """What is known of the topics, but for who leads: that is whoever came first."""
    described: list[dict[str, Any]] = json.loads(strandline("topics", "describe", "--json", *cluster.server))
    for topic in described:
        for partition in topic["partitions"]:
            partition["isr"].sort()
            del partition["leader"], partition["leader_epoch"]
    return described


def is_led(leader: int | None) -> bool:
    return leader is not None and leader >= 0
