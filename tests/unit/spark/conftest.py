"""One node for all tests that talk to one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .node_beside import Cluster, cluster_beside


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_beside(tmp_path_factory.mktemp("node") / "data") as beside:
        yield beside
