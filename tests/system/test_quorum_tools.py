"""Kafka's own tools against a quorum of ours, and ours beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.judges.java import Kafka, judge
from tests.system.local import Cluster, strandline, up

QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
TOPICS = "org.apache.kafka.tools.TopicCommand"
ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def kafka() -> Kafka:
    return judge()


@pytest.fixture(scope="module", params=["combined", "separate"])
def cluster(
    request: pytest.FixtureRequest, kafka: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("quorum") / "cluster"
    with up(directory, 3) if request.param == "combined" else up(directory, 2, 3) as started:
        yield started


def facts(status: str) -> dict[str, str]:
    return dict(re.split(r":\s+", line, maxsplit=1) for line in status.splitlines())


def test_the_status_of_the_quorum(kafka: Kafka, cluster: Cluster) -> None:
    voters = {101, 102, 103} if cluster.controllers else {1, 2, 3}
    for door in (cluster.server, cluster.controller):
        theirs = facts(kafka.run(QUORUM, *door, "describe", "--status").check().out)
        ours = facts(strandline("kafka-metadata-quorum", *door, "describe", "--status"))
        assert ours.keys() == theirs.keys()
        for name in ("ClusterId", "LeaderId", "LeaderEpoch", "CurrentVoters"):
            assert ours[name] == theirs[name]
        assert int(theirs["LeaderId"]) == cluster.active()
        assert set(map(int, re.findall(r'"id": (\d+)', theirs["CurrentVoters"]))) == voters
        assert int(theirs["HighWatermark"]) <= int(ours["HighWatermark"])
        assert int(theirs["MaxFollowerLag"]) < 100
        observers = set(map(int, re.findall(r'"id": (\d+)', theirs["CurrentObservers"])))
        assert observers == ({1, 2} if cluster.controllers else set())


def test_replication_of_the_quorum(kafka: Kafka, cluster: Cluster) -> None:
    def shape(table: str) -> list[tuple[str, str, str]]:
        rows = [line.split("\t") for line in table.splitlines()]
        assert all(len(row) == 8 for row in rows)
        return [(row[0].strip(), row[1].strip(), row[6].strip()) for row in rows]

    for flags in ((), ("--human-readable",)):
        theirs = kafka.run(QUORUM, *cluster.server, "describe", "--replication", *flags).check()
        ours = strandline("kafka-metadata-quorum", *cluster.server, "describe", "--replication", *flags)
        assert sorted(shape(ours)) == sorted(shape(theirs.out))
        assert [status for _, _, status in shape(ours)].count("Leader") == 1


def test_features_are_described_and_validated(kafka: Kafka, cluster: Cluster) -> None:
    def without_epoch(lines: str) -> list[str]:
        assert all(re.search(r"Epoch: \d+$", line) for line in lines.splitlines())
        return [line.rpartition("Epoch: ")[0] for line in lines.splitlines()]

    for door in (cluster.server, cluster.controller):
        theirs = kafka.run(FEATURES, *door, "describe").check()
        assert without_epoch(strandline("kafka-features", *door, "describe")) == without_epoch(theirs.out)
    assert "metadata.version" in theirs.out
    for change in (
        ("upgrade", "--feature", "metadata.version=30", "--dry-run"),
        ("downgrade", "--feature", "metadata.version=29", "--dry-run"),
        ("upgrade", "--feature", "metadata.version=99", "--dry-run"),
        ("disable", "--feature", "eligible.leader.replicas.version", "--dry-run"),
    ):
        told = kafka.run(FEATURES, *cluster.server, *change)
        ours = strandline("kafka-features", *cluster.server, *change, code=told.code)
        assert ours.splitlines()[:1] == told.out.splitlines()[:1]


def test_the_cluster_and_its_endpoints(kafka: Kafka, cluster: Cluster) -> None:
    for door in (cluster.server, cluster.controller):
        for command in (("cluster-id",), ("list-endpoints",)):
            theirs = kafka.run(CLUSTER, *command, *door).check()
            ours = strandline("kafka-cluster", *command, *door)
            assert sorted(ours.splitlines()) == sorted(theirs.out.splitlines())
    fenced = ("list-endpoints", "--include-fenced-brokers", *cluster.server)
    theirs = kafka.run(CLUSTER, *fenced).check()
    assert sorted(strandline("kafka-cluster", *fenced).splitlines()) == sorted(theirs.out.splitlines())
    assert kafka.run(CLUSTER, "unregister", "--id", "99", *cluster.server).code == 1
    strandline("kafka-cluster", "unregister", "--id", "99", *cluster.server, code=1)


def test_topics_through_any_broker(kafka: Kafka, cluster: Cluster) -> None:
    for index in range(cluster.nodes):
        server = ("--bootstrap-server", f"127.0.0.1:{cluster.port + index}")
        name = f"through-{index + 1}"
        kafka.run(TOPICS, *server, "--create", "--topic", name, "--partitions", "3").check()
    described = kafka.run(TOPICS, *cluster.server, "--describe", "--topic", "through-.*").check()
    ours = strandline("kafka-topics", *cluster.server, "--describe", "--topic", "through-.*")
    assert sorted(ours.splitlines()) == sorted(described.out.splitlines())
    assert len(re.findall(r"Leader: \d+", ours)) == 3 * cluster.nodes
    kafka.run(TOPICS, *cluster.server, "--delete", "--topic", "through-1").check()
    assert "through-1" not in strandline("kafka-topics", *cluster.server, "--list").split()


def test_elections(kafka: Kafka, cluster: Cluster) -> None:
    strandline("topics", "create", "elected", "--partitions", "2", *cluster.server)
    preferred = ("--election-type", "preferred")
    theirs = kafka.run(ELECTION, *cluster.server, *preferred, "--topic", "elected", "--partition", "0").check()
    ours = strandline("kafka-leader-election", *cluster.server, *preferred, "--topic", "elected", "--partition", "0")
    assert ours == theirs.out == "Valid replica already elected for partitions elected-0\n"
    assert strandline("kafka-leader-election", *cluster.server, *preferred, "--all-topic-partitions") == ""
    assert kafka.run(ELECTION, *cluster.server, *preferred, "--all-topic-partitions").check().out == ""
