"""Partitions moved between brokers: Kafka's own tools against a cluster of ours, and ours beside them."""

# mypy: disable-error-code="assignment, attr-defined"

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.client.blocking import Admin, Client
from tests.judges.java import Kafka, Run, judge
from tests.system.local import COMMAND, Cluster, strandline, up
from tests.system.server import eventually

REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
TOPICS = "org.apache.kafka.tools.TopicCommand"
NODES = 4
REPORTS = (
    "--under-replicated-partitions",
    "--unavailable-partitions",
    "--under-min-isr-partitions",
    "--at-min-isr-partitions",
)
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
MOVE_TIMEOUT_S = 60

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return judge()


@pytest.fixture(scope="module")
def cluster(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with up(tmp_path_factory.mktemp("reassign") / "cluster", NODES) as started:
        yield started


def create(cluster: Cluster, name: str, *replicas: str) -> None:
    """A topic with these replicas, such as 1:2 for its first partition."""
    strandline("kafka-topics", *cluster.server, "--create", "--topic", name, "--replica-assignment", ",".join(replicas))
    led = ["kafka-topics", *cluster.server, "--describe", "--topic", name, "--unavailable-partitions"]
    eventually(lambda: strandline(*led) == "", f"leaders of {name}")


def write(path: Path, **partitions: list[list[int]]) -> str:
    """A plan with these replicas for the partitions of each topic; an underscore in a name stands for a dash."""
    entries = [
        {"topic": topic.replace("_", "-"), "partition": index, "replicas": replicas}
        for topic, lists in partitions.items()
        for index, replicas in enumerate(lists)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def plan_of(line: str) -> dict[tuple[str, int], list[int]]:
    document = json.loads(line)
    assert document["version"] == 1
    return {(each["topic"], each["partition"]): each["replicas"] for each in document["partitions"]}


def both(kafka: Kafka, cluster: Cluster, *arguments: str) -> tuple[str, str]:
    """The output of Kafka's tool and of ours."""
    theirs = kafka.run(REASSIGN, *cluster.server, *arguments).check().out
    return theirs, strandline("kafka-reassign-partitions", *cluster.server, *arguments)


def test_nothing_is_under_way(kafka: Kafka, cluster: Cluster) -> None:
    theirs, ours = both(kafka, cluster, "--list")
    assert ours == theirs == "No partition reassignments found.\n"
    through = (*cluster.controller, "--list")
    assert strandline("kafka-reassign-partitions", *through) == kafka.run(REASSIGN, *through).check().out == ours


def test_a_proposal(kafka: Kafka, cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, "proposed", "1:2", "1:2", "1:2")
    topics = tmp_path / "topics.json"
    topics.write_text('{"version": 1, "topics": [{"topic": "proposed"}]}')
    wanted = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "2,3,4")
    theirs, ours = both(kafka, cluster, *wanted)
    assert ours.splitlines()[:4] == theirs.splitlines()[:4]
    for text in (theirs, ours):
        proposed = plan_of(text.splitlines()[4])
        assert set(proposed) == {("proposed", index) for index in range(3)}
        assert all(set(replicas) < {2, 3, 4} and len(set(replicas)) == 2 for replicas in proposed.values())
    assert sum(2 in replicas for replicas in proposed.values()) == 2, "what is in its place stays"


def test_plans_that_cannot_be(kafka: Kafka, cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, "wrong", "1:2")
    plans = {
        "nothing": write(tmp_path / "a"),
        "no-replicas": write(tmp_path / "b", wrong=[[]]),
        "twice": write(tmp_path / "c", wrong=[[1, 1]]),
        "no-broker": write(tmp_path / "d", wrong=[[1, 9]]),
        "no-partition": write(tmp_path / "e", wrong=[[1], [2]]),
    }
    runs = [Run(REASSIGN, (*cluster.server, "--execute", "--reassignment-json-file", plan)) for plan in plans.values()]
    for plan, told in zip(plans.values(), kafka.run_all(runs), strict=True):
        command = ("kafka-reassign-partitions", *cluster.server, "--execute", "--reassignment-json-file", plan)
        ours = strandline(*command, code=1).splitlines()
        assert told.code == 1
        assert len(ours) == 1
        reason = told.out.splitlines()[0].removeprefix("Error: ").rpartition("Exception: ")[2]
        assert ours == [f"Error: {reason}"]


def test_a_move_that_waits_for_a_dead_broker(kafka: Kafka, cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, "waiting", "1:2", "2:3", "3:4")
    plan = write(tmp_path / "plan", waiting=[[4, 2]])
    cluster.kill(4)
    fenced = ["kafka-topics", *cluster.server, "--describe", "--topic", "waiting", "--under-replicated-partitions"]
    eventually(lambda: strandline(*fenced).count("\n") == 1, "broker 4 has left the ISR", 30)
    with Client(cluster.bootstrap) as client:
        assert Admin(client).alter_partition_reassignments({("waiting", 0): [4, 2]}) == {("waiting", 0): None}

    listed, ours = both(kafka, cluster, "--list")
    assert ours == listed
    assert "waiting-0: replicas: 4,2,1. adding: 4. removing: 1.\n" in listed
    verified, ours = both(kafka, cluster, "--verify", "--reassignment-json-file", plan)
    assert ours == verified
    assert "Reassignment of partition waiting-0 is still in progress.\n" in verified
    execute = ("--execute", "--reassignment-json-file", plan)
    refused = kafka.run(REASSIGN, *cluster.server, *execute)
    assert refused.code == 1
    assert strandline("kafka-reassign-partitions", *cluster.server, *execute, code=1) == refused.out
    rows = json.loads(strandline("reassign", "list", *cluster.server, "--json"))
    assert [(row["topic"], row["adding"], row["waits_for"]) for row in rows] == [("waiting", [4], [4])]

    describe = (*cluster.server, "--describe", "--topic", "waiting")
    described = [Run(TOPICS, describe), *(Run(TOPICS, (*describe, report)) for report in REPORTS)]
    for run, told in zip(described, kafka.run_all(described), strict=True):
        assert strandline("kafka-topics", *run.arguments) == told.check().out
    assert "Adding Replicas: 4\tRemoving Replicas: 1" in kafka.run(TOPICS, *described[0].arguments).check().out
    only = json.loads(strandline("topics", "describe", "waiting", "--under-replicated", "--json", *cluster.server))
    assert [partition["partition"] for topic in only for partition in topic["partitions"]] == [0, 2]

    cancel = ("--cancel", "--reassignment-json-file", plan, "--preserve-throttles")
    told = kafka.run(REASSIGN, *cluster.server, *cancel).check().out
    assert told.startswith("Successfully cancelled partition reassignment for: waiting-0\n")
    theirs, ours = both(kafka, cluster, *cancel)
    assert ours == theirs
    # The preferred leader may have changed: as in Kafka, the target had come first.
    assert sorted(assignment(cluster, "waiting")[0]) == [1, 2]
    cluster.restart(4)
    cluster.await_brokers()


def assignment(cluster: Cluster, topic: str) -> list[list[int]]:
    (described,) = json.loads(strandline("topics", "describe", topic, "--json", *cluster.server))
    return [partition["replicas"] for partition in described["partitions"]]


def throttles(cluster: Cluster, topic: str) -> dict[str, Any]:
    """What is set on the topic and on broker 1."""
    describe = ("kafka-configs", *cluster.server, "--describe")
    resources = (("topics", topic), ("brokers", "1"))
    described = [strandline(*describe, "--entity-type", kind, "--entity-name", name) for kind, name in resources]
    words = [word.partition("=") for text in described for word in text.split() if "throttled" in word]
    return {key: value for key, _, value in words if key.endswith((".rate", ".replicas"))}


def test_kafkas_tool_moves_a_topic_and_back(kafka: Kafka, cluster: Cluster, tmp_path: Path) -> None:
    """Rule B15."""
    create(cluster, "moved", "1:2", "2:1")
    values = "".join(f"value-{number}\n" for number in range(500))
    strandline("produce", "moved", *cluster.server, stdin=values)
    plan = write(tmp_path / "plan", moved=[[3, 4], [4, 3]])
    execute = ("--execute", "--reassignment-json-file", plan, "--throttle", "10000000")
    begun = kafka.run(REASSIGN, *cluster.server, *execute).check().out.splitlines()
    assert begun[-2:] == [
        "The inter-broker throttle limit was set to 10000000 B/s",
        "Successfully started partition reassignments for moved-0,moved-1",
    ]
    assert throttles(cluster, "moved") == {
        "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
        "follower.replication.throttled.replicas": "0:3,0:4,1:3,1:4",
        **dict.fromkeys(RATES, "10000000"),
    }
    verify = (*cluster.server, "--verify", "--reassignment-json-file", plan)

    def is_done() -> bool:
        return kafka.run(REASSIGN, *verify).check().out.count(" is completed.") == 2

    eventually(is_done, "both partitions have moved", MOVE_TIMEOUT_S)
    assert kafka.run(REASSIGN, *verify).check().out == strandline("kafka-reassign-partitions", *verify)
    assert throttles(cluster, "moved") == {}
    assert assignment(cluster, "moved") == [[3, 4], [4, 3]]
    read = strandline("consume", "moved", "--from-beginning", "--max-messages", "500", *cluster.server)
    assert sorted(read.splitlines()) == sorted(values.splitlines())
    rollback = tmp_path / "rollback.json"
    rollback.write_text(begun[2])
    strandline("kafka-reassign-partitions", *cluster.server, "--execute", "--reassignment-json-file", str(rollback))
    strandline("reassign", "verify", str(rollback), "--wait", *cluster.server)
    assert assignment(cluster, "moved") == [[1, 2], [2, 1]]


def test_our_tool_moves_a_topic_and_shows_how_far_it_is(cluster: Cluster, tmp_path: Path) -> None:
    create(cluster, "ours", "1:2")
    strandline("produce", "ours", *cluster.server, stdin="".join(f"value-{number}\n" for number in range(500)))
    plan = tmp_path / "plan.json"
    plan.write_text(strandline("reassign", "generate", "--brokers", "3,4", "--topic", "ours", *cluster.server))
    command = [*COMMAND, "reassign", "execute", str(plan), "--throttle", "10MB/s", *cluster.server]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOVE_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    assert plan_of(done.stdout) == {("ours", 0): [1, 2]}
    assert "ours-0: ended (1 of 1)" in done.stderr
    assert "in place: 1 of 1 partition" in done.stderr
    assert throttles(cluster, "ours") == {}
    assert sorted(assignment(cluster, "ours")[0]) == [3, 4]
    wider = strandline("reassign", "generate", "--topic", "ours", "--replication-factor", "3", *cluster.server)
    assert {*assignment(cluster, "ours")[0]} < {*plan_of(wider)["ours", 0]}


def test_the_preferred_leader_leads_again(kafka: Kafka, cluster: Cluster) -> None:
    create(cluster, "preferred", "4:1")
    cluster.kill(4)
    led = ["kafka-topics", *cluster.server, "--describe", "--topic", "preferred"]
    eventually(lambda: "Leader: 1\t" in strandline(*led), "broker 1 leads", 30)
    cluster.restart(4)
    eventually(lambda: re.search(r"Isr: (1,4|4,1)\t", strandline(*led)), "broker 4 is in sync again", 60)
    elect = ("--election-type", "preferred", "--topic", "preferred", "--partition", "0")
    told = kafka.run(ELECTION, *cluster.server, *elect).check().out
    assert told == "Successfully completed leader election (PREFERRED) for partitions preferred-0\n"
    assert "Leader: 4\t" in strandline(*led)
