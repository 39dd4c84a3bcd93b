# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import itertools
import json
import os
import sys
from types import SimpleNamespace

import pytest

from strandline.cli.main import strandline
from strandline.cli.spark import spark


@pytest.fixture
def became(monkeypatch, tmp_path):
    """What the process would have become."""
    became = SimpleNamespace(program=None, arguments=None, environ=None)

    def execve(program, arguments, environ):
        became.program, became.arguments, became.environ = program, arguments, environ
        raise SystemExit(0)

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("MASTER", "SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return became


@pytest.fixture
def java(monkeypatch, tmp_path):
    program = tmp_path / "jvm" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    (tmp_path / "jvm" / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jvm"))


def settings(arguments: list[str]) -> dict[str, str]:
    pairs = itertools.pairwise(arguments)
    return dict(value.split("=", 1) for name, value in pairs if name == "--conf")


def test_it_is_one_of_the_commands():
    assert "spark" in strandline.list_commands(None)  # type: ignore[arg-type]


@pytest.mark.usefixtures("java")
def test_submit(call, became):
    with pytest.raises(SystemExit):
        call("spark", "submit", "--master", "spark://m:7077", "program.py", "--master", "x")
    assert became.program.name == "spark-submit"
    assert became.arguments[-4:] == ["spark://m:7077", "program.py", "--master", "x"]
    assert settings(became.arguments)["spark.sql.python.filterPushdown.enabled"] == "true"
    assert became.environ["PYSPARK_PYTHON"] == sys.executable
    assert became.environ["SPARK_HOME"] == str(became.program.parent.parent)


@pytest.mark.usefixtures("java")
def test_options_of_spark_itself(call, became):
    with pytest.raises(SystemExit):
        call("spark", "submit", "--", "--version")
    assert became.arguments[-1] == "--version"


@pytest.mark.usefixtures("java")
def test_a_file_of_defaults_is_heeded(call, became, tmp_path):
    (tmp_path / "p.conf").write_text("spark.master spark://m:7077\nspark.sql.python.filterPushdown.enabled false\n")
    with pytest.raises(SystemExit):
        call("spark", "shell", "--properties-file", str(tmp_path / "p.conf"))
    assert became.program.name == "pyspark"
    assert (
        not {"spark.sql.python.filterPushdown.enabled", "spark.sql.shuffle.partitions"}
        & settings(became.arguments).keys()
    )


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("submit",), 2, "name the program to run"),
        (("submit", "--master"), 2, "--master needs a value"),
        (("pack",), 2, "name the file to write"),
        (("pack", "e.zip"), 2, "must end in .tar.gz"),
        (("pack", "--pure", "e.tar.gz"), 2, "must end in .zip"),
    ],
)
@pytest.mark.usefixtures("java")
def test_wrong_usage(call, arguments, code, words):
    ran = call("spark", *arguments)
    assert ran.code == code
    assert words in ran.err


def test_no_java(call, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/there/is/none")
    ran = call("spark", "shell")
    assert ran.code == 1
    assert ran.err.startswith("strandline: Spark needs Java 17 or newer")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.usefixtures("java")
def test_no_spark_where_the_user_says(call, monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    ran = call("spark", "shell")
    assert ran.code == 1
    assert ran.err.startswith(f"strandline: there is no {tmp_path}/bin/pyspark")


@pytest.mark.parametrize("arguments", [("shell",), ("submit", "p.py"), ("pack", "e.tar.gz")])
def test_without_the_extra(call, monkeypatch, arguments):
    monkeypatch.setattr(spark, "_is_installed", lambda module: False)
    ran = call("spark", *arguments)
    assert ran.code == 1
    assert "pip install 'strandline[spark]'" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_the_pure_part(call, tmp_path):
    ran = call("spark", "pack", "--pure", str(tmp_path / "s.zip"), "--json")
    assert ran.code == 0
    [packed] = json.loads(ran.out)
    assert packed["size_bytes"] == (tmp_path / "s.zip").stat().st_size
    assert "strandline" in packed["packages"]
    assert {"numpy", "pyarrow", "kio"} <= packed["executors_need"].keys()
    assert ran.err == "packing: writing\n"
