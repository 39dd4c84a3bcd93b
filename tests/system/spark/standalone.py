"""A standalone Spark cluster for tests: a master and workers as processes, from the jars of the PySpark package.

Always true: they listen on 127.0.0.1 alone; their executors see no Python package of this machine's environment (an empty home,
no PYTHONPATH, a PATH without the virtual environment); when `standalone` is left, every process of the cluster is gone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.clusters import free_run_of_ports

from strandline.spark.java import find
from strandline.spark.launching import spark_home
from tests.system.server import eventually

START_TIMEOUT_S = 60
END_TIMEOUT_S = 20
LOCAL = "127.0.0.1"
BARE_PATH = "/usr/bin:/bin"
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""What is small is over before a better compiler has paid off."""


class Standalone(NamedTuple):
    url: str
    directory: Path


@contextlib.contextmanager
def standalone(directory: Path, workers: int = 2, cores: int = 1) -> Iterator[Standalone]:
    port = free_run_of_ports(2)
    url = f"spark://{LOCAL}:{port}"
    with contextlib.ExitStack() as running:
        master = ["--host", LOCAL, "--port", str(port), "--webui-port", str(port + 1)]
        log = running.enter_context(_process(directory, "master", "master.Master", *master))
        eventually(lambda: "New state: ALIVE" in log.read_text(), "a Spark master", START_TIMEOUT_S)
        logs = []
        for number in range(workers):
            work = directory / f"worker-{number}"
            work.mkdir()
            worker = [
                "--host",
                LOCAL,
                "--webui-port",
                "0",
                "--cores",
                str(cores),
                "--memory",
                "1g",
                "--work-dir",
                str(work),
            ]
            logs.append(running.enter_context(_process(directory, f"worker-{number}", "worker.Worker", *worker, url)))
        registered = "Successfully registered with master"
        eventually(lambda: all(registered in log.read_text() for log in logs), "two workers", START_TIMEOUT_S)
        yield Standalone(url, directory)


@contextlib.contextmanager
def _process(directory: Path, name: str, main_class: str, *arguments: str) -> Iterator[Path]:
    home = spark_home({})
    log = directory / f"{name}.log"
    environ = {
        "PATH": BARE_PATH,
        "HOME": str(directory),
        "JAVA_HOME": str(find().path.resolve().parent.parent),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOCAL,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
    }
    with log.open("wb") as written:
        # A session of its own, so that executors and Python workers which it leaves behind can be ended with it.
        process = subprocess.Popen(
            [home / "bin" / "spark-class", f"org.apache.spark.deploy.{main_class}", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            env=environ,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(END_TIMEOUT_S)
