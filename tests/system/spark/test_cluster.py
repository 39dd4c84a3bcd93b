"""One program on this machine alone and on a standalone Spark cluster whose executors have nothing of ours installed."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline.spark.interpreter import VERSION
from strandline.spark.java import JavaMissing, find
from strandline.spark.packing import CACHE
from tests.soak import soak_only
from tests.system.local import COMMAND, Cluster, strandline, up
from tests.system.spark.standalone import BARE_PATH, QUICK_JAVA, Standalone, standalone

PROGRAM = Path(__file__).with_name("program.py")
RECORDS = 200
PACK_TIMEOUT_S = 300
PROGRAM_TIMEOUT_S = 240
WANTED = sorted(f"RECORD {number}" for number in range(RECORDS))

pytestmark = [pytest.mark.system, pytest.mark.timeout(PACK_TIMEOUT_S + PROGRAM_TIMEOUT_S)]


@pytest.fixture(scope="module", autouse=True)
def java() -> None:
    try:
        find()
    except JavaMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node with records in the topic `from`, in four partitions."""
    with up(tmp_path_factory.mktemp("cluster"), 1, 0) as cluster:
        strandline("topics", "create", "from", "--partitions", "4", *cluster.server)
        lines = "".join(f"{number}:record {number}\n" for number in range(RECORDS))
        strandline("produce", "from", "--key-separator", ":", *cluster.server, stdin=lines)
        yield cluster


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, str]]:
    """The environment, the pure part, and the versions that the latter needs."""
    directory = tmp_path_factory.mktemp("packed")
    environment, pure = directory / "environment.tar.gz", directory / "strandline.zip"
    command = [*COMMAND, "spark", "pack", str(environment), "--pure", str(pure), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PACK_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return environment, pure, json.loads(done.stdout)[1]["executors_need"]


def submit(kafka: Cluster, directory: Path, topic: str, *arguments: str) -> dict[str, Any]:
    """What the program tells, started the way the documentation says, without an activated environment."""
    strandline("topics", "create", topic, "--partitions", "2", *kafka.server)
    environ = {
        "PATH": BARE_PATH,
        "HOME": str(directory),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": QUICK_JAVA,
    }
    environ["JAVA_HOME"] = str(find().path.resolve().parent.parent)
    settings = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=768m"]
    settings += ["--conf", f"spark.executor.extraJavaOptions={QUICK_JAVA}"]
    program = [str(PROGRAM), kafka.bootstrap, "from", topic, str(directory)]
    done = subprocess.run(
        [*COMMAND, "spark", "submit", *settings, *arguments, *program],
        cwd=directory,
        env=environ,
        capture_output=True,
        text=True,
        timeout=PROGRAM_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    told: dict[str, Any] = json.loads(done.stdout.split("TOLD ")[1])
    return told


def test_on_this_machine(kafka: Cluster, tmp_path: Path) -> None:
    told = submit(kafka, tmp_path, "to-local", "--master", "local[2]")
    assert told["values"] == WANTED
    assert {executor["python"] for executor in told["executors"]} == {sys.executable}


def test_on_executors_that_have_nothing(
    kafka: Cluster, spark: Standalone, packed: tuple[Path, Path, dict[str, str]], tmp_path: Path
) -> None:
    environment, _, _ = packed
    told = submit(kafka, tmp_path, "to-packed", "--master", spark.url, "--archives", f"{environment}#environment")
    assert told["master"] == spark.url
    assert told["values"] == WANTED
    assert len(told["executors"]) == 2
    for executor in told["executors"]:
        unpacked = Path(executor["directory"], "environment")
        assert unpacked.is_relative_to(spark.directory)
        for name in ("python", "prefix", "strandline", "pyarrow", "numba"):
            assert Path(executor[name]).is_relative_to(unpacked), executor
        assert "site-packages" not in _without_spark(executor["python path"])
        # The kernels came compiled: nothing was added to them, and nobody had to wait.
        assert {path.name for path in (unpacked / CACHE / "strandline").iterdir()} == _kernels(environment)
        assert executor["said"] == []


@soak_only
def test_where_the_native_packages_are_installed(
    kafka: Cluster, spark: Standalone, packed: tuple[Path, Path, dict[str, str]], tmp_path: Path
) -> None:
    """A Python of the executors' own, with them and without Strandline or anything that is Python alone."""
    _, pure, needed = packed
    python = _python_with(tmp_path / "native", needed)
    path = f"spark.executorEnv.PATH={python}:{BARE_PATH}"
    arguments = ["--master", spark.url, "--py-files", str(pure), "--conf", path]
    told = submit(kafka, tmp_path, "to-pure", *arguments)
    assert told["values"] == WANTED
    for executor in told["executors"]:
        assert Path(executor["python"]).parent == python
        assert Path(executor["strandline"]).parts[-3:] == ("strandline.zip", "strandline", "__init__.py")
        assert Path(executor["numba"]).is_relative_to(python.parent)


def _kernels(environment: Path) -> set[str]:
    with tarfile.open(environment) as archive:
        names = {Path(name).name for name in archive.getnames() if name.endswith(".kernels")}
    assert names
    return names


def _without_spark(python_path: str) -> str:
    """Spark's own zips lie in the PySpark package of this machine."""
    return ":".join(part for part in python_path.split(":") if "/pyspark/" not in part)


def _python_with(directory: Path, needed: dict[str, str]) -> Path:
    """The `bin` of a virtual environment that has these packages of ours, and no others."""
    from strandline.spark.package_closure import closure

    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", str(directory)], check=True)
    site_packages = directory / "lib" / f"python{VERSION}" / "site-packages"
    for package in closure():
        if package.name in needed:
            for file in package.files:
                target = site_packages / file.target
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(file.source)
    return directory / "bin"
