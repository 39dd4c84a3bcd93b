from __future__ import annotations

import json

from strandline.cli import checks
from strandline.cli.checks import FAIL, OK, WARN
from strandline.cli.topic_admin import TopicView
from strandline.client.flow.described import ConfigEntry, PartitionDescription, TopicDescription
from strandline.ids import ZERO_UUID


def view(leader: int, isr: tuple[int, ...], min_isr: str = "2") -> TopicView:
    partition = PartitionDescription(0, leader, 0, (1, 2, 3), isr, (), (), ())
    config = ConfigEntry("min.insync.replicas", min_isr, 5, False, False, 0, None, ())
    return TopicView(TopicDescription("t", ZERO_UUID, False, (partition,)), (config,))


def test_versions():
    assert checks.python((3, 11, 0)).level == OK
    assert checks.python((3, 10, 9)).level == FAIL
    assert checks.java_version('openjdk version "17.0.15" 2025-04-15', "").level == OK
    assert checks.java_version('java version "1.8.0_292"', "x") == (WARN, "Java", "1.8.0_292", "x")
    assert checks.java("/nowhere").level == WARN


def test_limits():
    assert checks.open_files(1024).level == WARN
    assert checks.open_files(20_000).level == OK
    assert checks.disk("/data", 100, 5).level == WARN
    assert checks.disk("/data", 100, 50).level == OK


def test_partitions_from_well_to_worse():
    assert list(checks.partitions(view(1, (1, 2, 3)))) == []
    assert [f.level for f in checks.partitions(view(1, (1, 2)))] == [WARN]
    assert [f.level for f in checks.partitions(view(1, (1,)))] == [FAIL]
    assert [f.found for f in checks.partitions(view(-1, (1,)))] == ["t-0 has no leader"]


def test_each_topic_gets_its_rule():
    assert [f.level for f in checks.topics([view(1, (1, 2, 3)), view(1, (1, 2, 3), "1")])] == [OK, WARN]


def test_doctor_without_a_cluster_looks_at_the_machine(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = call("doctor", "--json")
    assert ran.code == 0
    assert [row["check"] for row in json.loads(ran.out)] == ["Python", "uvloop", "Java", "open files"]


def test_doctor_with_an_address_where_nobody_is(call):
    ran = call("doctor", "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == 1
    assert "fail\tcluster" in ran.out
