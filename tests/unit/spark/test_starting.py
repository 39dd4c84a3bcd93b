from __future__ import annotations

import io
import pathlib
import subprocess
import sys
import tarfile

import pytest

import strandline.spark
from strandline.spark import packing
from strandline.spark.java import JavaMissing
from strandline.spark.starting import session, settings


def test_names_are_loaded_when_they_are_asked_for() -> None:
    program = (
        "import sys, strandline.spark as spark; before = set(sys.modules); names = dir(spark); spark.session; "
        "heavy = {'pyspark', 'numba', 'pyarrow', 'numpy'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules); "
        "assert 'strandline.spark.starting' not in before; assert {'session', 'offsets_behind_latest'} <= set(names)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_name_is_itself_whatever_was_imported_before() -> None:
    from strandline.spark import offsets_behind_latest as behind
    from strandline.spark import session as started
    from strandline.spark.behind import offsets_behind_latest

    assert started is session
    assert behind is offsets_behind_latest


def test_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'sesion'"):
        strandline.spark.sesion  # noqa: B018


def test_without_java_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/there/is/none")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    with pytest.raises(JavaMissing, match="JAVA_HOME is /there/is/none"):
        session()


def test_local_unless_something_else_is_said() -> None:
    assert settings({}, {}).config["spark.master"] == "local[*]"
    assert settings({}, {}, master="local[2]").config["spark.master"] == "local[2]"
    assert "spark.master" not in settings({"spark.master": "spark://m:7077"}, {}).config


def test_what_is_known_already_is_not_set_again() -> None:
    known = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "9", "spark.ui.showConsoleProgress": "true"}
    config = settings(known, {}).config
    assert not config.keys() & known.keys()


def test_the_session_wins_over_what_is_known() -> None:
    config = settings(
        {"spark.master": "local[2]"}, {}, config={"spark.ui.enabled": False, "spark.master": "local"}
    ).config
    assert config["spark.master"] == "local"
    assert config["spark.ui.enabled"] == "false"
    assert config["spark.sql.shuffle.partitions"] == "1"


def test_with_a_packed_environment(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "e.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo(packing.ENVIRONMENT_MARKER), io.BytesIO())
    launch = settings(
        {}, {"PATH": "/bin"}, master="spark://m:7077", config={"spark.archives": "a.zip"}, environment=path
    )
    assert launch.config["spark.archives"] == f"a.zip,{path}#environment"
    assert launch.config["spark.executorEnv.PATH"].startswith("./environment/bin:")
    assert "/" not in launch.environ["PYSPARK_PYTHON"]
