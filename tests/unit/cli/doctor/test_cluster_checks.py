"""What doctor finds in a cluster, and what it says to do."""

# mypy: allow-incomplete-defs, allow-untyped-calls, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.doctor import cluster_checks as checks
from strandline.cli.doctor.checks import FAIL, OK, WARN
from strandline.cli.topics.topic_admin import TopicView
from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.flow.descriptions import (
    ClusterDescription,
    ConfigEntry,
    LogDirDescription,
    PartitionDescription,
    QuorumInfo,
    QuorumReplicaState,
    TopicDescription,
)
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import ZERO_UUID

NOW = 1_000_000


def view(*partitions: PartitionDescription, min_isr: str = "2") -> TopicView:
    config = ConfigEntry("min.insync.replicas", min_isr, 5, False, False, 0, None, ())
    return TopicView(TopicDescription("t", ZERO_UUID, False, partitions), (config,))


def part(index: int = 0, leader: int = 1, isr=(1, 2, 3), elr=(), last=(), replicas=(1, 2, 3)) -> PartitionDescription:
    return PartitionDescription(index, leader, 0, replicas, isr, (), elr, last)


# Settings


def test_settings_without_effect_are_named_with_their_topics():
    def topic(name: str, **configs: str) -> TopicView:
        entries = [
            ConfigEntry(key.replace("_", "."), value, 1, False, False, 0, None, ()) for key, value in configs.items()
        ]
        default = ConfigEntry("local.retention.ms", "7", 5, False, False, 0, None, ())
        return TopicView(TopicDescription(name, ZERO_UUID, False, ()), (*entries, default))

    found = list(
        checks.settings(
            [
                topic("a", preallocate="true", retention_ms="5"),
                topic("b", preallocate="true"),
                topic("c", preallocate="false", remote_storage_enable="true", no_such_key="x"),
            ]
        )
    )
    assert levels(found) == [WARN, WARN]
    assert found[0].found.startswith("a, b: preallocate=true has no effect: ")
    assert found[0].advice == "`strandline configs unset --topic a preallocate`"
    assert found[1].found.startswith("c: remote.storage.enable=true is not supported")


# The quorum


def voter(node_id: int, end: int = 100, fetched: int = NOW, caught_up: int = NOW) -> QuorumReplicaState:
    return QuorumReplicaState(node_id, ZERO_UUID, end, fetched, caught_up)


def quorum(*others: QuorumReplicaState, leader: int = 1) -> QuorumInfo:
    return QuorumInfo(leader, 7, 100, (voter(1), *others), (), {})


def levels(findings):
    return [finding.level for finding in findings]


def test_a_quorum_that_is_well():
    [finding] = checks.voters(quorum(voter(2), voter(3, end=99)))
    assert (finding.level, finding.found) == (OK, "controller 1 is active in epoch 7; 3 of 3 voters are caught up")
    assert levels(checks.voters(quorum())) == [OK], "one voter is all that a small cluster has"


@pytest.mark.parametrize(
    ("ill", "said"),
    [
        (voter(3, end=-1, fetched=-1, caught_up=-1), "has not contacted"),
        (
            voter(3, end=90, fetched=NOW - 60_000, caught_up=NOW - 60_000),
            "last fetched 60 s ago, and is 10 records behind",
        ),
        (voter(3, end=90, caught_up=NOW - 60_000), "is 10 records behind"),
    ],
)
def test_a_voter_that_is_not_well_is_named(ill, said):
    first, second = checks.voters(quorum(voter(2), ill))
    assert (first.level, second.level) == (FAIL, WARN)
    assert "2 of 3" in first.found
    assert "one more fails" in first.advice
    assert second.found.startswith("voter 3 ")
    assert said in second.found


def test_how_many_voters_may_still_be_lost():
    dead = voter(5, end=1, fetched=1, caught_up=1)
    [first, _] = checks.voters(quorum(voter(2), voter(3), voter(4), dead))
    assert (first.level, first.advice) == (WARN, "start the others: only 1 more may fail")


def test_a_quorum_without_a_leader():
    [finding] = checks.voters(quorum(voter(2), leader=-1))
    assert finding.level == FAIL


# Brokers


def test_brokers_that_are_dead_fenced_or_both_are_named():
    known = tuple(BrokerMetadata(node_id, "h", 9090 + node_id, None) for node_id in (1, 2, 3, 4))
    found = list(checks.brokers(ClusterDescription("c", 1, known, frozenset({2, 3})), {3, 4}))
    assert [(finding.level, finding.found.partition(" is ")[0]) for finding in found] == [
        (OK, "1 (h:9091)"),
        (FAIL, "2 (h:9092)"),
        (FAIL, "3 (h:9093)"),
        (FAIL, "4 (h:9094)"),
    ]
    assert "it runs" in found[1].found
    assert "does not answer" in found[2].found
    assert "not fenced" in found[3].found
    assert all(finding.advice for finding in found[1:])


def test_an_address_without_a_listener_does_not_answer():
    assert not checks._answers("127.0.0.1", 1)


# Disks


def test_disks():
    assert checks.disk("/data", 100, 5).level == WARN
    assert checks.disk("/data", 100, 50).level == OK
    assert checks.disk("/data", -1, -1).level == WARN


class Dirs:
    """Brokers that tell of their log dirs, or do not."""

    def describe_log_dirs(self, node_ids):
        [node_id] = node_ids
        if node_id == 2:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no answer")
        return {
            node_id: [
                LogDirDescription("/a", None, 100, 50, {}),
                LogDirDescription("/b", ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, {}),
            ]
        }


def test_an_offline_log_dir_is_named_and_a_silent_broker_hides_no_other():
    live = [BrokerMetadata(node_id, "h", 9090 + node_id, None) for node_id in (2, 1)]
    found = list(checks.disks(Dirs(), live))  # type: ignore[arg-type]
    assert levels(found) == [WARN, OK, FAIL]
    assert found[2].found == "node 1, /b is offline: KAFKA_STORAGE_ERROR"


# Partitions


def test_partitions_from_well_to_worse():
    assert list(checks.partitions(view(part()))) == []
    [warn] = checks.partitions(view(part(isr=(1, 2))))
    assert (warn.level, warn.found) == (WARN, "t-0: under-replicated: 3 out of sync")
    [under] = checks.partitions(view(part(isr=(1,))))
    assert (under.level, under.found) == (FAIL, "t-0: under min ISR: in sync is 1, and min.insync.replicas=2")
    assert "broker 2, 3" in under.advice
    [offline] = checks.partitions(view(part(leader=-1, isr=(1,))))
    assert (offline.level, offline.found) == (FAIL, "t-0: no leader, nothing can be read or written")


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (part(leader=-1, isr=(3,)), "start broker 3, which has all"),
        (part(leader=-1, isr=(), elr=(2,)), "start broker 2, which has all"),
        (part(leader=-1, isr=(), last=(1,)), "start broker 1, which has all"),
        (part(leader=-1, isr=(), elr=None, last=None), "start the brokers that have a replica, 1, 2, 3"),
    ],
)
def test_who_may_lead_again(partition, said):
    [finding] = checks.partitions(view(partition))
    assert finding.advice.startswith(said)
    assert "--unclean" in finding.advice


def test_a_leader_that_does_not_answer_is_none():
    [finding] = checks.partitions(view(part(leader=2)), {2})
    assert (finding.level, finding.found) == (FAIL, "t-0: led by broker 2, which does not answer")
    assert list(checks.partitions(view(part(leader=1)), {2})) == []


def test_partitions_with_the_same_trouble_are_one_finding():
    found = list(checks.partitions(view(part(0, isr=(1, 2)), part(1, isr=(1, 2)), part(2, isr=(1, 3)), part(3))))
    assert [finding.found.partition(": ")[0] for finding in found] == ["t-0, t-1", "t-2"]


def test_many_partitions_with_the_same_trouble_are_one_phrase():
    [all_of_them] = checks.partitions(view(*(part(index, isr=(1,)) for index in range(50))))
    assert all_of_them.found.startswith("t-0..49: ")
    [some] = checks.partitions(view(*(part(index, isr=(1,)) for index in (0, 1, 2, 5, 6, 9))))
    assert some.found.startswith("t-0..2, t-5, t-6, t-9: ")


def test_one_replica_is_enough_where_there_is_but_one():
    """min.insync.replicas counts as no more than there are replicas."""
    assert list(checks.partitions(view(part(isr=(1,), replicas=(1,))))) == []


def test_each_topic_gets_its_rule():
    found = list(checks.topics([view(part()), view(part(), min_isr="1")]))
    assert [(finding.check, finding.level) for finding in found] == [
        ("partitions", OK),
        ("durability", OK),
        ("durability", WARN),
    ]
    assert [finding.check for finding in checks.topics([view(part(isr=(1,)))])] == ["partitions", "durability"]
    assert list(checks.topics([])) == []


# All of it


class WithoutController:
    def describe_quorum(self):
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "nobody leads")

    def describe_cluster(self, *, include_fenced_brokers):
        return ClusterDescription("c", -1, (BrokerMetadata(1, "127.0.0.1", 1, None),), frozenset())

    def list_topics(self, *, include_internal):
        return []


def test_without_an_active_controller_the_rest_is_still_looked_at():
    found = list(checks.cluster(WithoutController()))  # type: ignore[arg-type]
    assert [(finding.level, finding.check) for finding in found] == [(FAIL, "quorum"), (FAIL, "brokers")]
    assert "nobody leads" in found[0].found
