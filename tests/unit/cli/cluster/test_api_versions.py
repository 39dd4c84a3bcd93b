# mypy: allow-incomplete-defs, allow-untyped-defs, disable-error-code="list-item"

from __future__ import annotations

from typing import NamedTuple

import pytest

from strandline.cli.cluster.api_versions import api_lines, usable


class Served(NamedTuple):
    api_key: int
    min_version: int
    max_version: int


def test_an_api_that_a_broker_does_not_serve_is_listed_as_unsupported():
    lines = api_lines([Served(18, 0, 4), Served(0, 0, 13), Served(500, 1, 2), Served(56, 3, 3)])
    assert lines[:2] == ["Produce(0): 0 to 13 [usable: 13]", "Fetch(1): UNSUPPORTED"]
    assert "ApiVersions(18): 0 to 4 [usable: 4]" in lines
    assert "JoinGroup(11): UNSUPPORTED" in lines
    assert lines[-1] == "UNKNOWN(500): 1 to 2"


def test_apis_between_nodes_are_listed_only_if_they_are_served():
    assert not any(line.startswith("AlterPartition(") for line in api_lines([]))
    assert any(line.startswith("AlterPartition(56): 3 [usable: 3]") for line in api_lines([Served(56, 3, 3)]))


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        (range(5), " [usable: 4]"),
        (range(900, 902), " [unusable: node too new]"),
    ],
)
def test_who_is_behind(theirs, said):
    assert usable(18, theirs) == said


def test_a_broker_that_is_too_old():
    assert usable(1, range(2)) == " [unusable: node too old]"
