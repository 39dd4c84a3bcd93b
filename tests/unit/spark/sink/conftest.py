"""One node for all tests of a file, and a writer's task against it."""

from __future__ import annotations

import pytest

from ..node_beside import cluster_beside


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with cluster_beside(tmp_path_factory.mktemp("node")) as cluster:
        yield cluster
