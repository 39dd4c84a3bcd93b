"""The script that takes Spark's zip files of PySpark off the path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from strandline.spark.worker_python import worker_python

ZIPS = "/opt/my spark/python/lib/pyspark.zip:/opt/my spark/python/lib/py4j-0.10.9.9-src.zip"
JAR = "/opt/my spark/jars/spark-core_2.13-4.2.0.jar"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    return tmp_path / "my cache"


def started(python: str, path: str) -> list[str]:
    """What Python finds in its environment, and its arguments."""
    program = "import os, sys; print(os.environ['PYTHONPATH'], sys.executable, *sys.argv[1:], sep='\\n')"
    done = subprocess.run(
        [python, "-c", program, "two words"], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (ZIPS, ""),
        (f"{ZIPS}:/a:/b c", "/a:/b c"),
        (f"/a:{ZIPS}:/b", "/a:/b"),
        (f"/a:/b*:{ZIPS}", "/a:/b*"),
        (f"{ZIPS}:{JAR}:/a:{ZIPS}:{JAR}", "/a"),
        ("/a:/b", "/a:/b"),
        ("", ""),
    ],
    ids=["nothing else", "before others", "between", "after others", "as Spark writes it", "no zip", "empty"],
)
def test_the_zip_files_and_nothing_else_come_off_the_path(cache: Path, given: str, left: str) -> None:
    assert started(worker_python(sys.executable), given) == [left, sys.executable, "two words"]


def test_a_script_is_written_once_and_again_when_it_was_changed(cache: Path) -> None:
    script = Path(worker_python(sys.executable))
    written = script.stat().st_mtime_ns
    assert Path(worker_python(sys.executable)).stat().st_mtime_ns == written
    script.write_text("#!/bin/sh\nexit 1\n")
    assert started(worker_python(sys.executable), "/a") == ["/a", sys.executable, "two words"]
    assert [path.name for path in script.parent.iterdir()] == [script.name]


def test_without_a_directory_to_write_to_it_is_the_interpreter_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")
    assert worker_python(sys.executable) == sys.executable
