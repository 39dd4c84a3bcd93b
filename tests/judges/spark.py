"""Spark's own Kafka connector, which runs in Spark's JVM.

Its jars come from Maven (spark-pom.xml beside this file) once, into the directory beside the one of Kafka's tools.
Always true: where Java or the jars cannot be had, a test is skipped with the reason; with CI=true it fails instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.judges.java import HERE, fetch, find_java, jars_directory, or_skip

VERSION = "4.2.0"
"""Of Spark and of the connector, which fit each other."""


@dataclass(frozen=True, slots=True)
class Connector:
    """A Java for Spark and the connector's jars."""

    java: str
    jars: tuple[Path, ...]

    @property
    def java_home(self) -> str:
        """What PySpark looks for in JAVA_HOME."""
        return str(Path(self.java).resolve().parents[1])

    @property
    def spark_jars(self) -> str:
        """For Spark's setting `spark.jars`."""
        return ",".join(map(str, self.jars))


def find_connector(environment: Mapping[str, str] = os.environ) -> Connector:
    """Java and the jars, fetched if they are not there yet, or JudgeMissing."""
    java = find_java(environment)
    directory = jars_directory(environment).parent / f"spark-kafka-{VERSION}"
    fetch(
        HERE / "spark-pom.xml",
        directory,
        f"spark-sql-kafka-0-10_2.13-{VERSION}.jar",
        "the jars of Spark's Kafka connector",
    )
    return Connector(java, tuple(sorted(directory.glob("*.jar"))))


def judge() -> Connector:
    """For tests: the connector, or a skip that says why there is none. In CI that is a failure."""
    return or_skip(find_connector)
