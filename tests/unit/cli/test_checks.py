from __future__ import annotations

import json

from strandline.cli import checks
from strandline.cli.checks import FAIL, OK, WARN


def test_versions():
    assert checks.python((3, 11, 0)).level == OK
    assert checks.python((3, 10, 9)).level == FAIL
    assert checks.java_version('openjdk version "17.0.15" 2025-04-15', "").level == OK
    assert checks.java_version('java version "1.8.0_292"', "x") == (WARN, "Java", "1.8.0_292", "x")
    assert checks.java("/nowhere").level == WARN


def test_limits():
    assert checks.open_files(1024).level == WARN
    assert checks.open_files(20_000).level == OK


def test_doctor_without_a_cluster_looks_at_the_machine(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = call("doctor", "--json")
    assert ran.code == 0
    assert [row["check"] for row in json.loads(ran.out)] == ["Python", "uvloop", "Java", "open files"]


def test_doctor_with_an_address_where_nobody_is(call):
    ran = call("doctor", "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == 1
    assert "fail\tcluster" in ran.out
