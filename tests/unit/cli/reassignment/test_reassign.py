# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json

import pytest

from strandline.cli.reassignment.reassign import summary

AT = ("-b", "127.0.0.1:1")


def test_what_a_plan_asks_for():
    current = {("t", 0): (1, 2), ("t", 1): (2, 3), ("t", 2): (3, 1)}
    assert summary(current, {}) == "nothing to move: 3 partitions are where they should be"
    changed = {("t", 0): (2, 1), ("t", 1): (2, 4)}
    assert summary(current, changed) == "2 of 3 partitions change: 1 replica to copy, 1 preferred leader to change"


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}))
    return str(path)


def test_a_plan_is_read_before_anything_is_asked(call, plan, tmp_path):
    ran = call("reassign", "execute", plan, *AT)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "strandline: Partition replica lists may not contain duplicate entries: t-0 contains multiple entries for 1\n"
    )
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for command in ("execute", "verify", "cancel"):
        ran = call("reassign", command, str(broken), *AT)
        assert ran.code == 1
        assert ran.err.startswith(f"strandline: {broken}: not JSON: ")


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("execute",), 2, "Missing argument 'FILE'"),
        (("execute", "no-such-file"), 2, "does not exist"),
        (("cancel",), 2, "name the FILE of a plan, or give --all"),
        (("generate", "--brokers", "1,x"), 1, "'1,x' is not a list of broker ids"),
        (("generate", "--brokers", "1,1"), 1, "duplicate entries: [1]"),
        (("generate", "--replication-factor", "0"), 2, "--replication-factor"),
    ],
)
def test_wrong_usage(call, arguments, code, reason):
    ran = call("reassign", *arguments, *AT)
    assert ran.code == code
    assert reason in ran.err


def test_a_throttle_that_is_no_rate(call, plan):
    ran = call("reassign", "execute", plan, "--throttle", "fast", *AT)
    assert ran.code == 1
    assert "'fast' is not a rate" in ran.err


def test_a_file_and_all_at_once(call, plan):
    assert "or give --all" in call("reassign", "cancel", plan, "--all", *AT).err
