# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from strandline.spark import launching, packing
from strandline.spark.interpreter import VERSION
from strandline.spark.launching import prepare

CLUSTER = "spark://spark-master:7077"
NAME = f"python{VERSION}"


@pytest.fixture
def interpreter(tmp_path: Path) -> str:
    """A virtual environment's Python, which nobody has activated."""
    directory = tmp_path / "venv" / "bin"
    directory.mkdir(parents=True)
    for name in ("python", NAME):
        (directory / name).touch()
    return str(directory / "python")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """The beginning of what `pack` makes."""
    path = tmp_path / "strandline.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo(packing.ENVIRONMENT_MARKER), io.BytesIO())
    return path


def test_workers_run_the_drivers_python(interpreter: str) -> None:
    launch = prepare({"spark.master": "local[2]"}, {"PATH": "/usr/bin"}, interpreter)
    assert launch.environ == {"PYSPARK_PYTHON": interpreter, "PYSPARK_DRIVER_PYTHON": interpreter}


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_a_python_that_the_user_exported_stays(interpreter: str, name: str) -> None:
    assert prepare({"spark.master": "local"}, {name: "/opt/python"}, interpreter).environ == {}


def test_a_python_that_the_user_configured_is_exported_too(interpreter: str) -> None:
    """PySpark's own context reads the environment alone."""
    config = {"spark.master": "local", "spark.pyspark.python": "/opt/a", "spark.pyspark.driver.python": "/opt/b"}
    launch = prepare(config, {}, interpreter)
    assert launch.environ == {"PYSPARK_PYTHON": "/opt/a", "PYSPARK_DRIVER_PYTHON": "/opt/b"}


def test_with_an_environment_one_name_leads_to_both_pythons(interpreter: str, environment: Path) -> None:
    config = {"spark.master": CLUSTER, "spark.archives": f"other.zip,{environment}#mine"}
    launch = prepare(config, {"PATH": "/usr/bin"}, interpreter)
    assert launch.environ == {
        "PATH": f"{os.path.dirname(interpreter)}:/usr/bin",
        "PYSPARK_PYTHON": NAME,
        "PYSPARK_DRIVER_PYTHON": NAME,
    }
    assert launch.config["spark.executorEnv.PATH"] == f"./mine/bin:{launching.SYSTEM_PATH}"


def test_an_environment_is_unpacked_under_its_own_name_if_it_gets_no_other(interpreter: str, environment: Path) -> None:
    launch = prepare({"spark.master": CLUSTER, "spark.archives": f"file:{environment}"}, {}, interpreter)
    assert launch.config["spark.executorEnv.PATH"].startswith("./strandline.tar.gz/bin:")


def test_a_path_that_the_user_gave_executors_comes_after_the_environment(interpreter: str, environment: Path) -> None:
    config = {"spark.master": CLUSTER, "spark.archives": f"{environment}#e", "spark.executorEnv.PATH": "/opt/bin"}
    assert prepare(config, {}, interpreter).config["spark.executorEnv.PATH"] == "./e/bin:/opt/bin"


def test_an_interpreter_without_a_versioned_name(tmp_path: Path, environment: Path) -> None:
    config = {"spark.master": CLUSTER, "spark.archives": f"{environment}#e"}
    launch = prepare(config, {}, str(tmp_path / "python-of-mine"))
    assert launch.environ["PYSPARK_PYTHON"] == "python-of-mine"


def test_a_driver_in_the_cluster_runs_the_environment_as_well(interpreter: str, environment: Path) -> None:
    config = {"spark.master": "yarn", "spark.submit.deployMode": "cluster", "spark.archives": f"{environment}#e"}
    launch = prepare(config, {}, interpreter)
    assert launch.environ == {"PYSPARK_PYTHON": "./e/bin/python"}
    assert launch.config["spark.pyspark.python"] == "./e/bin/python"


def test_archives_that_are_something_else(interpreter: str, tmp_path: Path) -> None:
    (tmp_path / "data.tar.gz").write_bytes(b"no archive")
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("something"), io.BytesIO())
    archives = f"{tmp_path}/data.tar.gz,{tmp_path}/other.tar.gz,{tmp_path}/missing.tar.gz,hdfs://there/x.tar.gz#x"
    launch = prepare({"spark.master": CLUSTER, "spark.archives": archives}, {}, interpreter)
    assert launch.environ["PYSPARK_PYTHON"] == interpreter
    assert "spark.executorEnv.PATH" not in launch.config


def test_executors_are_shown_the_pure_part(interpreter: str, tmp_path: Path) -> None:
    """Spark leaves the --py-files out for a source that it has found by itself."""
    pure, other = tmp_path / "strandline.zip", tmp_path / "other.zip"
    for path, name in ((pure, packing.PURE_MARKER), (other, "module.py")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "")
    config = {"spark.master": CLUSTER, "spark.submit.pyFiles": f"{other},{pure},{tmp_path}/app.py"}
    assert prepare(config, {}, interpreter).config["spark.executorEnv.PYTHONPATH"] == "./strandline.zip"
    config["spark.executorEnv.PYTHONPATH"] = "/opt/lib"
    assert prepare(config, {}, interpreter).config["spark.executorEnv.PYTHONPATH"] == "./strandline.zip:/opt/lib"


def test_with_the_pure_part_executors_use_their_own_python(interpreter: str, tmp_path: Path) -> None:
    pure = tmp_path / "strandline.zip"
    with zipfile.ZipFile(pure, "w") as archive:
        archive.writestr(packing.PURE_MARKER, "")
    launch = prepare({"spark.master": CLUSTER, "spark.submit.pyFiles": str(pure)}, {"PATH": "/bin"}, interpreter)
    assert launch.environ["PYSPARK_PYTHON"] == launch.environ["PYSPARK_DRIVER_PYTHON"] == NAME
    assert launch.environ["PATH"].startswith(os.path.dirname(interpreter))
    assert "spark.executorEnv.PATH" not in launch.config


def test_settings_of_a_local_master(interpreter: str) -> None:
    config = prepare({"spark.master": "local[3]"}, {}, interpreter).config
    assert config["spark.sql.python.filterPushdown.enabled"] == "true"
    assert config["spark.sql.shuffle.partitions"] == "3"
    assert config["spark.driver.host"] == config["spark.driver.bindAddress"] == "127.0.0.1"


def test_settings_for_a_cluster(interpreter: str) -> None:
    config = prepare({"spark.master": CLUSTER}, {}, interpreter).config
    assert config["spark.sql.python.filterPushdown.enabled"] == "true"
    assert "spark.sql.shuffle.partitions" not in config
    assert "spark.driver.host" not in config


def test_what_the_user_has_set_stays(interpreter: str) -> None:
    user = {
        "spark.master": "local",
        "spark.sql.python.filterPushdown.enabled": "false",
        "spark.sql.shuffle.partitions": "7",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "::1",
        "spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=mine",
    }
    assert prepare(user, {}, interpreter).config == {}


def test_logs_are_quiet_whatever_else_java_is_told(interpreter: str) -> None:
    user = {"spark.master": "local", "spark.driver.extraJavaOptions": "-Xss4m"}
    options = prepare(user, {}, interpreter).config["spark.driver.extraJavaOptions"].split()
    assert options[0] == "-Xss4m"
    assert Path(options[1].removeprefix("-Dlog4j2.configurationFile=file://")).is_file()


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[2]", 2), ("local[4,3]", 4), ("local[*]", os.cpu_count()), (CLUSTER, None), ("yarn", None)],
)
def test_local_masters(master: str, cores) -> None:
    assert launching.local_cores(master) == cores


def test_spark_defaults(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text("# as an administrator writes it\nspark.master   spark://m:7077\nspark.app.name=x \nother 1\n")
    assert launching.defaults_of(file) == {"spark.master": "spark://m:7077", "spark.app.name": "x"}
    assert launching.defaults_of(tmp_path / "missing") == {}
    assert launching.defaults_file({"SPARK_CONF_DIR": str(tmp_path)}) == file


def test_spark_home(tmp_path: Path) -> None:
    assert launching.spark_home({"SPARK_HOME": str(tmp_path)}) == tmp_path
    assert (launching.spark_home({}) / "bin" / "spark-submit").is_file()
