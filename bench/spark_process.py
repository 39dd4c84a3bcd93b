"""A Spark host as the benchmark sees it: started, asked, ended.

Always true: when `spark_process` is left, in whatever way, the host and its JVM are gone; an answer is waited for no longer than
STEP_S_MAX and some.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.spark_host import STEP_S_MAX
from bench.spark_queries import Query, Timed

ROOT = Path(__file__).resolve().parents[1]
END_S_MAX = 30.0
MARGIN_S = 20.0
TAIL_LINES = 25


class SparkFailed(Exception):
    """A query failed, or Spark did; says what it printed."""


class SparkProcess:
    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log
        self.session_s = float(self._answer()["session_s"])
        """From the call of session() until it returned."""

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, query: Query) -> Timed:
        return Timed(**self._ask(query, check=False))

    def check(self, query: Query) -> None:
        self._ask(query, check=True)

    def _ask(self, query: Query, check: bool) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            print(json.dumps({"query": query._asdict(), "check": check}), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise self._failed("Spark has ended") from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            if not waiting.select(STEP_S_MAX + MARGIN_S):
                raise self._failed(f"no answer within {STEP_S_MAX + MARGIN_S:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise self._failed("Spark has ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise self._failed(answer["error"])
        return answer

    def _failed(self, why: str) -> SparkFailed:
        tail = self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return SparkFailed("\n".join([why, *tail]))


@contextlib.contextmanager
def spark_process(
    settings: Mapping[str, str], directory: Path, environ: Mapping[str, str] | None = None
) -> Iterator[SparkProcess]:
    """A fresh Spark; what it prints goes to a file in `directory`, where its own files are as well."""
    local = directory / "local"
    local.mkdir(parents=True, exist_ok=True)
    log = directory / "spark.out"
    # Workers are Pythons of their own and find the ceiling's module here.
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    inherited = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SPARK_LOCAL_DIRS": str(local), **(environ or {})}
    # A first query starts five Pythons; as anywhere else, none of them compiles modules that another one has compiled.
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    chosen = {**settings, "spark.sql.warehouse.dir": str(directory / "warehouse")}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.spark_host", json.dumps(chosen)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            cwd=ROOT,
            env=inherited,
            start_new_session=True,
        )
    try:
        yield SparkProcess(process, log)
    finally:
        _end(process)
        shutil.rmtree(local, ignore_errors=True)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
        process.communicate(timeout=END_S_MAX)
    # The JVM is of the host's process group; its Python daemons end when their input does.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(END_S_MAX)
