"""Apache Kafka's command line tools, run against our brokers.

The jars come from Maven (pom.xml beside this file) once, into `$STRANDLINE_JUDGES` or `~/.cache/strandline-judges/kafka-4.3.1`.
Always true: where Java or the jars cannot be had, a test is skipped with the reason; with CI=true it fails instead, so that
no judge goes missing unseen.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

VERSION = "4.3.1"
HERE = Path(__file__).parent
FETCH_TIMEOUT_S = 600
TOOL_TIMEOUT_S = 90

# Tools live for a second: the first compiler and a small heap start fastest.
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")

_TRAINING = ("org.apache.kafka.tools.TopicCommand", "--list", "--bootstrap-server", "127.0.0.1:1")
"""A run that loads what most tools load."""
_TRAINING_CONFIG = "default.api.timeout.ms=1000\nrequest.timeout.ms=1000\n"

T = TypeVar("T")


class JudgeMissing(Exception):
    """Java or Kafka's jars are not here and cannot be fetched; the sentence says which and why."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool left behind."""

    code: int
    out: str
    err: str

    def check(self) -> Result:
        """Itself, if the tool was content."""
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a tool's main class."""

    tool: str
    arguments: Sequence[str] = ()
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class Kafka:
    """A Java and the jars of one Kafka."""

    java: str
    jars: Path
    archive: Path | None = None
    """Of classes that are parsed and checked already (class data sharing): half of what a tool's start takes is saved."""

    @property
    def classpath(self) -> str:
        return f"{self.jars}/*"

    def command(self, tool: str, *arguments: str, jvm: Sequence[str] = _JVM, log_level: str = "off") -> list[str]:
        """The command line that runs a main class of Kafka."""
        level = f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}"
        is_tool = jvm is _JVM and self.archive is not None  # a broker beside ours starts as it always does
        shared = () if not is_tool else (f"-XX:SharedArchiveFile={self.archive}", "-Xlog:disable")
        return [self.java, *jvm, *shared, level, "-cp", self.classpath, tool, *arguments]

    def run(self, tool: str, *arguments: str, stdin: str = "", timeout_s: float = TOOL_TIMEOUT_S) -> Result:
        """One tool in a JVM of its own."""
        done = subprocess.run(
            self.command(tool, *arguments), input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def run_all(self, runs: Sequence[Run], *, timeout_s: float = TOOL_TIMEOUT_S) -> list[Result]:
        """Several tools, one after another in one JVM, which saves a second each."""
        lines = "".join(" ".join(map(_encode, (run.stdin, run.tool, *run.arguments))) + "\n" for run in runs)
        done = subprocess.run(
            self.own_command("Batch"), input=lines, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        results = []
        for line in done.stdout.splitlines():
            code, out, err = line.split(" ")
            results.append(Result(int(code), _decode(out), _decode(err)))
        assert len(results) == len(runs), f"the JVM ended after {len(results)} of {len(runs)} runs\n{done.stderr}"
        return results

    def own_command(self, name: str, *arguments: str, log_level: str = "off") -> list[str]:
        """The command line that runs a class of ours: NAME.java beside this file, compiled once for each state of its source."""
        command = self.command(name, *arguments, log_level=log_level)
        command[command.index("-cp") + 1] = f"{self.classpath}{os.pathsep}{self._compiled(HERE / f'{name}.java')}"
        return command

    def _compiled(self, source: Path) -> Path:
        digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
        classes = self.jars.parent / f"{source.stem.lower()}-{digest}"
        if not (classes / f"{source.stem}.class").exists():
            compiler = shutil.which("javac") or str(Path(self.java).with_name("javac"))
            subprocess.run(
                [compiler, "-cp", self.classpath, "-d", str(classes), str(source)], check=True, capture_output=True
            )
        return classes


def find_java(environment: Mapping[str, str] = os.environ) -> str:
    """The java to use: of JAVA_HOME, else of the path."""
    home = environment.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        raise JudgeMissing("Java is not installed (a JDK of 17 or newer is needed)")
    return java


def jars_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the jars are, or will be."""
    given = environment.get("STRANDLINE_JUDGES")
    return Path(given) if given else Path.home() / ".cache" / "strandline-judges" / f"kafka-{VERSION}"


def find_jars(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory of Kafka's jars, fetched with Maven if it is not there yet."""
    jars = jars_directory(environment)
    fetch(HERE / "pom.xml", jars, f"kafka-tools-{VERSION}.jar", "Kafka's jars")
    return jars


def fetch(pom: Path, jars: Path, proof: str, what: str) -> None:
    """The jars that a pom names, with Maven, unless the file that proves them to be there is."""
    if (jars / proof).exists():
        return
    maven = shutil.which("mvn")
    if maven is None:
        raise JudgeMissing(f"{what} are not in {jars}, and Maven is not installed to fetch them")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="fetching-") as temporary:
        fetched = Path(temporary) / "jars"
        copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
        command = [maven, "-q", "-B", "-f", str(pom), copy, f"-DoutputDirectory={fetched}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise JudgeMissing(f"Maven did not fetch {what} within {FETCH_TIMEOUT_S} s") from None
        if done.returncode != 0:
            raise JudgeMissing(f"Maven could not fetch {what}: {(done.stdout + done.stderr).strip()[-500:]}")
        _put_in_place(fetched, jars, proof)


def find_kafka(environment: Mapping[str, str] = os.environ) -> Kafka:
    """Java and the jars, or JudgeMissing."""
    java, jars = find_java(environment), find_jars(environment)
    return Kafka(java, jars, _archive(java, jars))


@functools.cache
def _archive(java: str, jars: Path) -> Path | None:
    """The archive of this Java for these jars, made if it is not there yet; None if it can't be."""
    home = Path(java).resolve()
    made_for = hashlib.sha256(f"{home} {home.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    archive = jars.parent / f"{jars.name}-{made_for}.jsa"
    if archive.exists():
        return archive
    if not os.access(jars.parent, os.W_OK):
        return None
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix="training-") as temporary:
        made, config = Path(temporary, "made.jsa"), Path(temporary, "config")
        config.write_text(_TRAINING_CONFIG)
        command = Kafka(java, jars).command(*_TRAINING, "--command-config", str(config))
        command.insert(1, f"-XX:ArchiveClassesAtExit={made}")
        try:
            subprocess.run(command, capture_output=True, timeout=TOOL_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return None
        if not made.exists():
            return None
        made.rename(archive)
    return archive


def judge() -> Kafka:
    """For tests: Kafka, or a skip that says why there is none. In CI that is a failure."""
    return or_skip(find_kafka)


def or_skip(find: Callable[[], T]) -> T:
    try:
        return find()
    except JudgeMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def _put_in_place(fetched: Path, jars: Path, proof: str) -> None:
    """Whole or not at all; another process may have been first, which is as good."""
    try:
        fetched.rename(jars)
    except OSError:
        if not (jars / proof).exists():
            raise


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode() or "-"


def _decode(word: str) -> str:
    return "" if word == "-" else base64.b64decode(word).decode(errors="replace")
