"""Kafka Streams, which copies a topic exactly once: Streams.java beside this file.

Its jars come from Maven (streams-pom.xml beside this file) once, into the directory beside the one of Kafka's tools.
Always true: where Java or the jars cannot be had, a test is skipped with the reason; with CI=true it fails instead.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.judges.java import HERE, VERSION, Kafka, fetch, find_java, jars_directory, or_skip

STOP_TIMEOUT_S = 60.0


def find_streams(environment: Mapping[str, str] = os.environ) -> Kafka:
    """Java and the jars, fetched if they are not there yet, or JudgeMissing."""
    java = find_java(environment)
    directory = jars_directory(environment).parent / f"streams-{VERSION}"
    fetch(HERE / "streams-pom.xml", directory, f"kafka-streams-{VERSION}.jar", "the jars of Kafka Streams")
    return Kafka(java, directory)


def judge() -> Kafka:
    """For tests: Kafka Streams, or a skip that says why there is none. In CI that is a failure."""
    return or_skip(find_streams)


@contextlib.contextmanager
def copying(
    directory: Path, bootstrap: str, name: str, source: str, sink: str, properties: Mapping[str, str | int]
) -> Iterator[Path]:
    """An application of this name copies one topic to the other; yields its log. When this is left, it closes in order."""
    log = directory / f"{name}.log"
    more = [f"{key}={value}" for key, value in properties.items()]
    words = [bootstrap, name, source, sink, str(directory / f"{name}-state"), *more]
    command = judge().own_command("Streams", *words, log_level="warn")
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=output)
        try:
            yield log
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
