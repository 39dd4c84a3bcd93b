"""How PySpark is started: which Python its workers run, and which settings it gets.

Spark starts a data source that it has found by itself with the Python named in the *driver's* environment, on the driver and on
every executor alike, and with none of the `--py-files`. So one name must lead to the right Python in both places. Without a packed
environment that is this interpreter (`worker_python.py`); with one it is a bare name, such as `python3.11`, looked up in a `PATH`
that begins with this interpreter's directory here and with the unpacked environment's there.

Always true: what the user has set, in a configuration or in the environment, is never changed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from strandline.spark.interpreter import VERSION
from strandline.spark.packing import PURE_MARKER, is_environment
from strandline.spark.worker_python import worker_python

PYTHON, DRIVER_PYTHON = "spark.pyspark.python", "spark.pyspark.driver.python"
PYTHON_VARIABLE, DRIVER_PYTHON_VARIABLE = "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"
ARCHIVES, PY_FILES, MASTER, DEPLOY_MODE = (
    "spark.archives",
    "spark.submit.pyFiles",
    "spark.master",
    "spark.submit.deployMode",
)
FILTER_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
CONSOLE_PROGRESS = "spark.ui.showConsoleProgress"
DRIVER_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
EXECUTOR_PATH, EXECUTOR_PYTHON_PATH = "spark.executorEnv.PATH", "spark.executorEnv.PYTHONPATH"
ENVIRONMENT_NAME = "environment"
"""What an unpacked environment is called in an executor's directory, unless the user gives it another name."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LOCAL_ADDRESS = "127.0.0.1"
_LOCAL = re.compile(r"local(?:-cluster)?(?:\[(\*|\d+)(?:,.*)?\])?$")


class SparkLaunch(NamedTuple):
    """What has to be added so that Spark starts as it should."""

    config: dict[str, str]
    environ: dict[str, str]


def prepare(config: Mapping[str, str], environ: Mapping[str, str], interpreter: str = sys.executable) -> SparkLaunch:
    """For a driver that runs `interpreter`, with what the user has configured and exported so far."""
    added = _workers(config, environ, interpreter)
    defaults = {FILTER_PUSHDOWN: "true"}
    cores = local_cores(config.get(MASTER, ""))
    if cores is not None:
        # A driver without executors on other hosts need not be reachable from outside.
        defaults |= {
            SHUFFLE_PARTITIONS: str(cores),
            "spark.driver.host": LOCAL_ADDRESS,
            "spark.driver.bindAddress": LOCAL_ADDRESS,
        }
    for name, value in defaults.items():
        if name not in config:
            added.config[name] = value
    java_options = config.get(DRIVER_JAVA_OPTIONS, "")
    if "log4j" not in java_options:
        added.config[DRIVER_JAVA_OPTIONS] = f"{java_options} -Dlog4j2.configurationFile={_logging().as_uri()}".strip()
    return added


def local_cores(master: str) -> int | None:
    """How many tasks a local master runs at once; None for a cluster."""
    match = _LOCAL.match(master)
    if match is None:
        return None
    written = match.group(1)
    if written == "*":
        return os.cpu_count() or 1
    return int(written or 1)


def named_archive(path: str | os.PathLike[str]) -> str:
    """A packed environment as `--archives` takes it."""
    return f"{os.fspath(path)}#{ENVIRONMENT_NAME}"


def spark_home(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's Spark, or the one inside the PySpark package."""
    if environ.get("SPARK_HOME"):
        return Path(environ["SPARK_HOME"])
    from importlib.util import find_spec

    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
    return Path(spec.origin).parent


def defaults_of(file: Path) -> dict[str, str]:
    """What a properties file such as conf/spark-defaults.conf sets; nothing if it is not there."""
    import javaproperties

    try:
        with file.open(encoding="utf-8") as opened:
            written: dict[str, str] = javaproperties.load(opened)
    except FileNotFoundError:
        return {}
    return {name: value.strip() for name, value in written.items() if name.startswith("spark.")}


def defaults_file(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("SPARK_CONF_DIR") or spark_home(environ) / "conf", "spark-defaults.conf")


def _workers(config: Mapping[str, str], environ: Mapping[str, str], interpreter: str) -> SparkLaunch:
    added = SparkLaunch({}, {})
    pure = [path for path in _listed(config.get(PY_FILES, "")) if _is_pure(_local_path(path))]
    if pure:
        # A data source that Spark has found by itself is started without the --py-files.
        shown = [f"./{os.path.basename(path)}" for path in pure]
        added.config[EXECUTOR_PYTHON_PATH] = ":".join([*shown, *filter(None, [config.get(EXECUTOR_PYTHON_PATH)])])
    chosen = config.get(PYTHON) or environ.get(PYTHON_VARIABLE)
    chosen_for_driver = config.get(DRIVER_PYTHON) or environ.get(DRIVER_PYTHON_VARIABLE)
    unpacked = _unpacked_environment(config)
    if chosen or chosen_for_driver:
        # PySpark reads the environment alone, spark-submit the configuration first: both get the same.
        if chosen and PYTHON_VARIABLE not in environ:
            added.environ[PYTHON_VARIABLE] = chosen
        if chosen_for_driver and DRIVER_PYTHON_VARIABLE not in environ:
            added.environ[DRIVER_PYTHON_VARIABLE] = chosen_for_driver
    elif local_cores(config.get(MASTER, "")) is not None:
        python = worker_python(interpreter) if _is_pyspark_of(interpreter, environ) else interpreter
        added.environ[PYTHON_VARIABLE] = added.environ[DRIVER_PYTHON_VARIABLE] = python
    elif not (unpacked or pure):
        added.environ[PYTHON_VARIABLE] = added.environ[DRIVER_PYTHON_VARIABLE] = interpreter
    elif unpacked and config.get(DEPLOY_MODE) == "cluster":
        # The driver, too, finds the environment unpacked in its directory.
        added.config[PYTHON] = added.environ[PYTHON_VARIABLE] = f"./{unpacked}/bin/python"
    else:
        directory, name = _directory_and_name(interpreter)
        added.environ["PATH"] = f"{directory}{os.pathsep}{environ.get('PATH', os.defpath)}"
        added.environ[PYTHON_VARIABLE] = added.environ[DRIVER_PYTHON_VARIABLE] = name
        if unpacked:
            added.config[EXECUTOR_PATH] = f"./{unpacked}/bin:{config.get(EXECUTOR_PATH, SYSTEM_PATH)}"
    return added


def _is_pyspark_of(interpreter: str, environ: Mapping[str, str]) -> bool:
    """Does Spark come from the PySpark that this interpreter has installed, so that both are the same?"""
    return interpreter == sys.executable and spark_home(environ) == spark_home({})


def _directory_and_name(interpreter: str) -> tuple[str, str]:
    """The name with the version, if it exists: another Python is unlikely to have it too."""
    directory, name = os.path.split(interpreter)
    versioned = f"python{VERSION}"
    return directory, versioned if os.path.exists(os.path.join(directory, versioned)) else name


def _unpacked_environment(config: Mapping[str, str]) -> str | None:
    """The directory in which executors will find the first packed environment among the archives."""
    for archive in _listed(config.get(ARCHIVES, "")):
        path, _, name = archive.partition("#")
        if is_environment(_local_path(path)):
            return name or os.path.basename(path)
    return None


def _is_pure(path: Path) -> bool:
    import zipfile

    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return PURE_MARKER in archive.namelist()


def _local_path(written: str) -> Path:
    return Path(written.removeprefix("file://").removeprefix("file:"))


def _listed(value: str) -> Iterable[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def _logging() -> Path:
    return Path(__file__).with_name("log4j2.properties")
