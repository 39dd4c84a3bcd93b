"""Apache Kafka's MirrorMaker 2, which copies topics and their configuration from one cluster to another.

Its jars come from Maven (mirror-pom.xml beside this file) once, into the directory beside the one of Kafka's tools.
Always true: where Java or the jars cannot be had, a test is skipped with the reason; with CI=true it fails instead.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.judges.java import HERE, VERSION, Kafka, fetch, find_java, jars_directory, or_skip

STOP_TIMEOUT_S = 20.0
QUICK = {
    **dict.fromkeys(
        (
            "replication.factor",
            "checkpoints.topic.replication.factor",
            "heartbeats.topic.replication.factor",
            "offset-syncs.topic.replication.factor",
            "offset.storage.replication.factor",
            "status.storage.replication.factor",
            "config.storage.replication.factor",
            "offset.storage.partitions",
            "status.storage.partitions",
            "refresh.topics.interval.seconds",
            "sync.topic.configs.interval.seconds",
            "sync.topic.acls.interval.seconds",
        ),
        "1",
    ),
    "emit.heartbeats.enabled": "false",
    "emit.checkpoints.enabled": "false",
}
"""One replica of everything, and every second a look at what has changed."""


def find_mirror_maker(environment: Mapping[str, str] = os.environ) -> Kafka:
    """Java and the jars, fetched if they are not there yet, or JudgeMissing."""
    java = find_java(environment)
    directory = jars_directory(environment).parent / f"mirror-maker-{VERSION}"
    fetch(HERE / "mirror-pom.xml", directory, f"connect-mirror-{VERSION}.jar", "the jars of MirrorMaker 2")
    return Kafka(java, directory)


def judge() -> Kafka:
    """For tests: MirrorMaker 2, or a skip that says why there is none. In CI that is a failure."""
    return or_skip(find_mirror_maker)


@contextlib.contextmanager
def mirroring(directory: Path, source: str, target: str, topics: str, **extra: str) -> Iterator[Path]:
    """Topics are copied from one bootstrap server to another, under the name `source.TOPIC`; yields its log."""
    properties = {
        "clusters": "source,target",
        "source.bootstrap.servers": source,
        "target.bootstrap.servers": target,
        "source->target.enabled": "true",
        "target->source.enabled": "false",
        "topics": topics,
        **QUICK,
        **extra,
    }
    file, log = directory / "mirror.properties", directory / "mirror.log"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    jvm = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx400m")
    command = judge().command("org.apache.kafka.connect.mirror.MirrorMaker", str(file), jvm=jvm, log_level="info")
    setpriv = shutil.which("setpriv")
    command = [setpriv, "--pdeathsig", "KILL", *command] if setpriv else command
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            yield log
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
