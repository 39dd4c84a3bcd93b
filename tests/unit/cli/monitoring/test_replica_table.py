"""Replicas side by side, from what each node says."""

# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="index, list-item, typeddict-unknown-key"

from __future__ import annotations

from typing import Any

import pytest

from strandline.cli.monitoring.replica_table import age, columns, tables


def report(replica: int, **values: Any) -> dict[str, Any]:
    return {
        "topic": "t",
        "partition": 0,
        "replica": replica,
        "role": "follower",
        "offline": False,
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 7,
        "replicas": [1, 2, 3],
        "isr": [1, 2],
        "elr": [],
        "log_start_offset": 0,
        "high_watermark": 90,
        "log_end_offset": 95,
        "lag": 5,
        "log_dir": f"/data{replica}",
    } | values


def leader(**values: Any) -> dict[str, Any]:
    followers = [
        {"replica": 2, "log_start_offset": 0, "log_end_offset": 95, "lag": 5, "caught_up_ms_ago": 10},
        {"replica": 3, "log_start_offset": 0, "log_end_offset": 40, "lag": 60, "caught_up_ms_ago": 70_000},
    ]
    return report(1, role="leader", log_end_offset=100, lag=0, followers=followers, **values)


def answers(*replicas: dict[str, Any]) -> dict[int, Any]:
    return {one["replica"]: {"node_id": one["replica"], "replicas": [one]} for one in replicas}


def test_every_replica_has_a_row_and_its_leaders_lag():
    [table] = tables(answers(leader(), report(2), report(3, log_end_offset=42, lag=0)))
    assert (table.topic, table.partition, table.leader, table.isr, table.osr) == ("t", 0, 1, [1, 2], [3])
    assert [(row.replica, row.role, row.log_end_offset, row.lag, row.in_sync) for row in table.replicas] == [
        (1, "leader", 100, 0, True),
        (2, "follower", 95, 5, True),
        (3, "follower", 42, 60, False),
    ]


def test_a_node_that_does_not_answer_is_shown_as_its_leader_sees_it():
    [table] = tables(answers(leader(), report(2)))
    row = table.replicas[2]
    assert (row.role, row.log_end_offset, row.high_watermark, row.lag) == ("unreachable", 40, None, 60)
    assert list(columns([row])) == [(3, "unreachable", 0, None, 40, 60, None, "OSR", "70 s ago")]


def test_without_the_leader_the_followers_say_what_they_know():
    [table] = tables(answers(report(2), report(3, lag=None)))
    assert [(row.replica, row.role, row.lag) for row in table.replicas] == [
        (1, "unreachable", None),
        (2, "follower", 5),
        (3, "follower", None),
    ]


def test_the_newest_epochs_count():
    deposed = leader(leader_epoch=3, isr=[1, 2, 3])
    [table] = tables(
        answers(deposed, report(2, role="leader", leader=2, followers=[], isr=[2, 3]), report(3, leader=2))
    )
    assert (table.leader, table.isr, table.osr) == (2, [2, 3], [1])


def test_a_replica_on_a_failed_log_dir_is_offline():
    [table] = tables(answers(leader(), report(2, offline=True)))
    assert table.replicas[1].role == "offline"


def test_partitions_are_in_order_and_json_is_plain():
    found = tables({1: {"node_id": 1, "replicas": [leader(partition=10), leader(partition=9), leader(topic="a")]}})
    assert [(table.topic, table.partition) for table in found] == [("a", 0), ("t", 9), ("t", 10)]
    assert found[0].as_json()["replicas"][0]["replica"] == 1


@pytest.mark.parametrize(
    ("ms", "words"), [(0, "now"), (599, "now"), (700, "700 ms ago"), (5000, "5 s ago"), (120_000, "2 min ago")]
)
def test_ages(ms, words):
    assert age(ms) == words
