# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.kafka_tools.kafka_reassign_partitions import list_lines, log_dir_lines, state_lines
from strandline.cli.reassignment.reassignment_admin import PartitionMoveState
from strandline.client.flow.descriptions import Reassignment

SERVER = ("--bootstrap-server", "127.0.0.1:1")


def test_kafkas_lines_about_partitions():
    states = {
        ("t", 0): PartitionMoveState((1, 2), (1, 2), True),
        ("t", 1): PartitionMoveState((3, 1, 2), (3, 1), False),
        ("t", 2): PartitionMoveState((1, 2), (2, 3), True),
        ("u", 0): PartitionMoveState((), (1,), True),
    }
    assert state_lines(states) == [
        "Status of partition reassignment:",
        "Reassignment of partition t-0 is completed.",
        "Reassignment of partition t-1 is still in progress.",
        "There is no active reassignment of partition t-2, but replica set is 1,2 rather than 2,3.",
        "There is no active reassignment of partition u-0, but replica set is  rather than 1.",
    ]


def test_kafkas_lines_about_log_dirs():
    wanted = {("t", 0, 2): "/a", ("u", 0, 1): "/a", ("t", 1, 1): "/a"}
    assert log_dir_lines(wanted, {("t", 0, 2): "/a", ("u", 0, 1): "/b"}) == [
        "Partition t-1 is not found in any live log dir on broker 1. There is likely an offline log directory on the broker.",
        "Partition u-0 on broker 1 is not being moved from log dir /b to /a.",
        "Reassignment of replica t-0-2 completed successfully.",
    ]
    assert log_dir_lines({}, {}) == []


def test_kafkas_lines_of_the_list():
    assert list_lines({}) == ["No partition reassignments found."]
    under_way = {
        ("t", 1): Reassignment((1, 2), (), (2,)),
        ("t", 0): Reassignment((3, 1, 2), (3,), (2,)),
    }
    assert list_lines(under_way) == [
        "Current partition reassignments:",
        "t-0: replicas: 3,1,2. adding: 3. removing: 2.",
        "t-1: replicas: 1,2. removing: 2.",
    ]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (SERVER, "exactly one action: --generate, --execute, --verify, --cancel, --list"),
        ((*SERVER, "--list", "--verify"), "exactly one action"),
        (("--list",), "Missing option '--bootstrap-server'"),
        ((*SERVER, "--execute"), 'Missing required argument "[reassignment-json-file]"'),
        ((*SERVER, "--generate", "--broker-list", "1"), 'Missing required argument "[topics-to-move-json-file]"'),
        ((*SERVER, "--list", "--additional"), 'Option "[additional]" can\'t be used with action "[list]"'),
        (
            (*SERVER, "--verify", "--reassignment-json-file", "f", "--throttle", "5"),
            'Option "[throttle]" can\'t be used with action "[verify]"',
        ),
        (
            ("--bootstrap-controller", "127.0.0.1:1", "--verify", "--reassignment-json-file", "f"),
            'Option "[bootstrap-controller]" can\'t be used with action "[verify]"',
        ),
        ((*SERVER, "--bootstrap-controller", "127.0.0.1:2", "--list"), "not both"),
    ],
)
def test_flags_that_do_not_go_together_are_wrong_usage(call, flags, reason):
    ran = call("kafka-reassign-partitions", *flags)
    assert ran.code == 2
    assert reason in ran.err
