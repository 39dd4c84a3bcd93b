"""What the files of this folder share: one Spark, three nodes of ours, one node of Apache Kafka, and a topic of records on each.

Always true: each is started when the first test asks for it, and is gone when the folder is left. Tests make topics of their own;
one that loses a node has it back in sync before it ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.system.spark.support import (
    CLUSTERS,
    Kafka,
    apache_cluster,
    make_numbered_topic,
    spark_session,
    strandline_cluster,
)


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="package")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with strandline_cluster(tmp_path_factory.mktemp("ours") / "cluster") as started:
        yield started


@pytest.fixture(scope="package")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with apache_cluster(tmp_path_factory.mktemp("apache") / "cluster") as started:
        yield started


@pytest.fixture(scope="package", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Kafka:
    """Ours, then Apache Kafka's."""
    found = request.getfixturevalue("ours" if request.param == "strandline" else "apache")
    assert isinstance(found, Kafka)
    return found


@pytest.fixture(scope="package")
def topic(cluster: Kafka) -> str:
    return make_numbered_topic(cluster)
