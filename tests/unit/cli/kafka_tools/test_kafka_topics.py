# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="arg-type"

from __future__ import annotations

import click
import pytest

from strandline.cli.kafka_tools.kafka_topics import describe_lines, parse_assignment
from strandline.cli.topics.topic_admin import TopicView
from strandline.client.flow.descriptions import ConfigEntry, PartitionDescription, Reassignment, TopicDescription
from strandline.ids import Uuid

SERVER = ("--bootstrap-server", "127.0.0.1:9092")
NOTHING = dict.fromkeys(
    (
        "topics_with_overrides",
        "under_replicated_partitions",
        "unavailable_partitions",
        "under_min_isr_partitions",
        "at_min_isr_partitions",
    ),
    False,
)


def entry(name: str, value: str, source: int) -> ConfigEntry:
    return ConfigEntry(name, value, source, False, False, 0, None, ())


def partition(index: int, leader: int, isr: tuple[int, ...], elr: tuple[int, ...] | None = ()) -> PartitionDescription:
    return PartitionDescription(index, leader, 0, (1, 2, 3), isr, (), elr, elr)


VIEW = TopicView(
    TopicDescription(
        "peter-test01",
        Uuid(bytes(range(16))),
        False,
        (partition(0, 1, (1, 2, 3)), partition(1, 2, (2, 3)), partition(2, -1, (), (1,)), partition(3, 9, (2,), None)),
    ),
    (entry("min.insync.replicas", "2", 5), entry("segment.bytes", "1073741824", 4), entry("retention.ms", "5", 1)),
)


def described(**options: bool) -> list[str]:
    return describe_lines([VIEW], NOTHING | options, live={1, 2, 3})


def test_describe_prints_kafkas_lines():
    assert described() == [
        "Topic: peter-test01\tTopicId: AAECAwQFBgcICQoLDA0ODw\tPartitionCount: 4\tReplicationFactor: 3\t"
        "Configs: segment.bytes=1073741824,retention.ms=5",
        "\tTopic: peter-test01\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: \tLastKnownElr: ",
        "\tTopic: peter-test01\tPartition: 1\tLeader: 2\tReplicas: 1,2,3\tIsr: 2,3\tElr: \tLastKnownElr: ",
        "\tTopic: peter-test01\tPartition: 2\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: 1\tLastKnownElr: 1",
        "\tTopic: peter-test01\tPartition: 3\tLeader: 9\tReplicas: 1,2,3\tIsr: 2\tElr: N/A\tLastKnownElr: N/A",
    ]


@pytest.mark.parametrize(
    ("report", "partitions"),
    [
        ("under_replicated_partitions", "123"),
        ("unavailable_partitions", "23"),
        ("under_min_isr_partitions", "23"),
        ("at_min_isr_partitions", "1"),
    ],
)
def test_reports_show_only_their_partitions(report, partitions):
    assert "".join(line.split("\t")[2][-1] for line in described(**{report: True})) == partitions


def test_topics_with_overrides_are_shown_without_partitions():
    assert len(described(topics_with_overrides=True)) == 1
    plain = VIEW._replace(configs=())
    assert describe_lines([plain], NOTHING | {"topics_with_overrides": True}, {1}) == []


def test_a_partition_that_is_moved_misses_no_replica_that_is_being_added():
    moving = {0: Reassignment((1, 2, 3), (3,), (1,))}
    topic = VIEW.topic._replace(partitions=(partition(0, 1, (1, 2)), partition(1, 1, (1, 2))))
    view = VIEW._replace(topic=topic, reassignments=moving)
    head, first, second = describe_lines([view], NOTHING, live={1, 2, 3})
    assert "\tReplicationFactor: 2\t" in head
    assert "\tIsr: 1,2\tAdding Replicas: 3\tRemoving Replicas: 1\tElr: " in first
    assert "Adding" not in second
    assert describe_lines([view], NOTHING | {"under_replicated_partitions": True}, live={1, 2, 3}) == [second]


def test_the_verdict_comes_from_the_configuration():
    assert not VIEW.verdict.can_lose
    unclean = VIEW._replace(configs=(*VIEW.configs, entry("unclean.leader.election.enable", "true", 1)))
    assert unclean.verdict.can_lose


def test_assignments():
    assert parse_assignment(None) == {}
    assert parse_assignment("1:2,2:3") == {0: [1, 2], 1: [2, 3]}
    for wrong, reason in (("1:x", "broker ids"), ("1:1", "duplicate entries: 1"), ("1:2,3", "different replication")):
        with pytest.raises(click.UsageError, match=reason):
            parse_assignment(wrong)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ((*SERVER,), "exactly one action"),
        ((*SERVER, "--list", "--create"), "exactly one action"),
        (("--list",), "Missing option '--bootstrap-server'"),
        ((*SERVER, "--create"), "--create needs --topic"),
        ((*SERVER, "--alter", "--topic", "t"), "--alter needs --partitions"),
        ((*SERVER, "--list", "--partitions", "1"), '"--partitions" can\'t be used with option "--list"'),
        ((*SERVER, "--delete", "--topic", "t", "--if-not-exists"), '"--if-not-exists" can\'t be used'),
        (
            (*SERVER, "--create", "--topic", "t", "--partitions", "1", "--replica-assignment", "1"),
            'can\'t be used with option "--replica-assignment"',
        ),
    ],
)
def test_flags_that_do_not_go_together_are_wrong_usage(call, flags, reason):
    ran = call("kafka-topics", *flags)
    assert ran.code == 2
    assert reason in ran.err
