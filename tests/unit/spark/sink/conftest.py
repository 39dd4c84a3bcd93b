"""One node for all tests of a file, and a writer's task against it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..node_beside import Cluster, cluster_beside


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_beside(tmp_path_factory.mktemp("node")) as cluster:
        yield cluster
