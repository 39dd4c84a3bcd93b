# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import json

from .serving_nodes import serving_nodes
from .test_replica_table import leader, report


def test_every_replica_and_who_can_not_be_asked(call, tmp_path):
    asked = []

    def replicas(query):
        asked.append(query)
        return {"node_id": 1, "replicas": [leader()]}

    with serving_nodes(
        str(tmp_path), {"/replicas": replicas}, {"/replicas": {"node_id": 2, "replicas": [report(2)]}}, None
    ):
        ran = call("replicas", "describe", "--dir", str(tmp_path), "--topic", "t", "--partition", "0")
        as_json = call("replicas", "describe", "--dir", str(tmp_path), "--json")
    assert asked == [{"topic": "t", "partition": "0"}, {}]
    assert [line.split("\t") for line in ran.out.splitlines()] == [
        [
            "topic",
            "partition",
            "replica",
            "role",
            "log start",
            "watermark",
            "log end",
            "lag",
            "epoch",
            "in sync",
            "caught up",
        ],
        ["t", "0", "1", "leader", "0", "90", "100", "0", "4", "ISR", "now"],
        ["t", "0", "2", "follower", "0", "90", "95", "5", "4", "ISR", "now"],
        ["t", "0", "3", "unreachable", "0", "-", "40", "60", "-", "OSR", "70 s ago"],
    ]
    assert ran.err.startswith("node 3 ")
    shown = json.loads(as_json.out)
    assert shown["partitions"][0]["osr"] == [3]
    assert [one["node_id"] for one in shown["unreachable"]] == [3]


def test_a_cluster_without_partitions_has_nothing_to_show(call, tmp_path):
    with serving_nodes(str(tmp_path), {"/replicas": {"node_id": 1, "replicas": []}}):
        ran = call("replicas", "describe", "--dir", str(tmp_path))
    assert (ran.code, ran.out) == (0, "")
    assert "there are no replicas" in ran.err
