"""`status` says when there is no active controller."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json
import os

import pytest

from strandline.cli.local import local_cluster
from strandline.cli.local.processes import identify


@pytest.fixture
def cluster(tmp_path):
    """Three nodes of which so many live, as this very process: none of them listens."""

    def make(alive: int) -> str:
        made = local_cluster.new(str(tmp_path), 1, 3)
        made.processes = dict.fromkeys(range(1, alive + 1), identify(os.getpid()))
        made.save()
        return made.directory

    return make


@pytest.mark.parametrize(("alive", "said"), [(1, "1 of 3 controllers run, and more than half must"), (2, "2 of 3")])
def test_no_active_controller_is_noted_on_stderr(call, cluster, alive, said):
    directory = cluster(alive)
    for flags in ((), ("--json",)):
        ran = call("status", "--dir", directory, *flags)
        assert ran.code == 0
        assert "there is no active controller" in ran.err
        assert said in ran.err
    assert [row["controller"] for row in json.loads(ran.out)] == [False] * 3


def test_a_cluster_that_is_down_has_no_controller_to_miss(call, cluster):
    assert call("status", "--dir", cluster(0)).err == ""
