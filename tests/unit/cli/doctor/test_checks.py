# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json
import os
import subprocess

from strandline.cli.doctor import checks
from strandline.cli.doctor.checks import FAIL, OK, WARN
from strandline.columnar import compiled_walk
from strandline.columnar.kernels import standalone


def test_versions():
    assert checks.python((3, 11, 0)).level == OK
    assert checks.python((3, 10, 9)).level == FAIL
    assert checks.java_version('openjdk version "17.0.15" 2025-04-15', "").level == OK
    assert checks.java_version('java version "1.8.0_292"', "x") == (WARN, "Java", "1.8.0_292", "x")
    assert checks.java("/nowhere").level == WARN


def test_limits():
    assert checks.open_files(1024).level == WARN
    assert checks.open_files(20_000).level == OK


def test_the_record_walk_and_its_cost(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = checks.record_walk()
    assert (found.level, "us for each record" in found.found, "Python" in found.found) == (OK, True, True)
    monkeypatch.setattr(compiled_walk, "can_be_made", lambda: False)
    found = checks.record_walk()
    assert (found.level, "strandline[fast]" in found.advice) == (WARN, True)
    subprocess.run(standalone.command(), env=standalone.environment(os.environ), check=True)
    found = checks.record_walk()
    assert (found.level, found.found[:12]) == (OK, "machine code")


def test_doctor_without_a_cluster_looks_at_the_machine(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = call("doctor", "--json")
    assert ran.code == 0
    assert [row["check"] for row in json.loads(ran.out)] == ["Python", "uvloop", "Java", "record walk", "open files"]


def test_doctor_with_an_address_where_no_broker_listens(call):
    ran = call("doctor", "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == 1
    assert "fail\tcluster" in ran.out
