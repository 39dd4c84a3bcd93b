"""A Spark session that reads and writes topics: PySpark with the right settings.

Always true: workers run the driver's Python, whether or not its virtual environment is activated; a setting that the user has made
(here, in spark-defaults.conf, for spark-submit or in the environment) stays as it is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from strandline.spark import java, launching

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER_BY_DEFAULT = "local[*]"
_WARM = (
    "import sys; from strandline.columnar.warming import compile_once; "
    "compile_once(lambda line: print(line, file=sys.stderr, flush=True))"
)


def session(
    app_name: str = "strandline",
    *,
    master: str | None = None,
    config: Mapping[str, object] | None = None,
    environment: str | os.PathLike[str] | None = None,
    warm: bool = True,
) -> SparkSession:
    """Start Spark, or give the session that is running already.

    master: local[*] unless spark-submit or spark-defaults.conf says otherwise.
    config: Spark's own names and values; they win over everything set here.
    environment: what `strandline spark pack` has made, for executors that have no Python packages.
    warm: compile the kernels while Spark starts, if that was never done on this machine (local masters).
    """
    known = _known_already()
    launch = settings(known, os.environ, master=master, config=config, environment=environment)
    warming = None
    if not _is_submitted():
        java.find()
        if warm and launching.local_cores((known | launch.config)[launching.MASTER]) is not None:
            warming = subprocess.Popen([sys.executable, "-c", _WARM], stdin=subprocess.DEVNULL)
    os.environ.update(launch.environ)
    try:
        return _start(app_name, launch.config)
    finally:
        if warming is not None:
            warming.wait()


def settings(
    known: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    master: str | None = None,
    config: Mapping[str, object] | None = None,
    environment: str | os.PathLike[str] | None = None,
) -> launching.SparkLaunch:
    """What a session adds to that which is known already."""
    wanted = {name: _written(value) for name, value in (config or {}).items()}
    if environment is not None:
        archives = filter(None, [{**known, **wanted}.get(launching.ARCHIVES), launching.named_archive(environment)])
        wanted[launching.ARCHIVES] = ",".join(archives)
    if master is not None:
        wanted[launching.MASTER] = master
    if launching.MASTER not in {**known, **wanted}:
        wanted[launching.MASTER] = MASTER_BY_DEFAULT
    if launching.CONSOLE_PROGRESS not in {**known, **wanted}:
        wanted[launching.CONSOLE_PROGRESS] = _written(sys.stderr.isatty())
    launch = launching.prepare(dict(known) | wanted, environ)
    return launching.SparkLaunch(wanted | launch.config, launch.environ)


def _start(app_name: str, config: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.Builder().appName(app_name)
    for name, value in config.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _is_submitted() -> bool:
    """Does spark-submit run this program, with a JVM that is up and configured?"""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _known_already() -> dict[str, str]:
    """What is configured without our doing."""
    if not _is_submitted():
        return launching.defaults_of(launching.defaults_file(os.environ))
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _written(value: object) -> str:
    """A value as Spark writes it: Python's True is Spark's true."""
    return str(value).lower() if isinstance(value, bool) else str(value)
