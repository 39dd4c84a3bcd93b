# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.cli.local import local_cluster
from strandline.cli.monitoring.endpoints import MonitoringEndpoint, NodeUnreachable, endpoint_of, get, get_all

from .serving_nodes import serving_nodes


@pytest.mark.parametrize(
    ("listener", "place"),
    [
        ("127.0.0.1:9404", MonitoringEndpoint(1, "broker-1", 9404)),
        (":9404", MonitoringEndpoint(1, "broker-1", 9404)),
        ("0.0.0.0:9404", MonitoringEndpoint(1, "broker-1", 9404)),
        ("[::]:9404", MonitoringEndpoint(1, "broker-1", 9404)),
        ("metrics.example:9404", MonitoringEndpoint(1, "metrics.example", 9404)),
    ],
)
def test_where_a_broker_can_be_looked_at(listener, place):
    assert endpoint_of(1, "broker-1", listener) == place


@pytest.mark.parametrize("listener", ["", "127.0.0.1:0"])
def test_a_broker_without_metrics_is_named_with_advice(listener):
    assert "set metrics.listener" in endpoint_of(1, "broker-1", listener).problem
    with pytest.raises(NodeUnreachable, match=r"metrics\.listener"):
        get(endpoint_of(1, "broker-1", listener), "/events")


def test_those_who_answer_are_heard_and_the_others_named(tmp_path):
    with serving_nodes(str(tmp_path), {"/x": {"a": 1}}, None, {"/y": 2}):
        nodes = local_cluster.require(str(tmp_path)).nodes
        where = [MonitoringEndpoint(node.node_id, local_cluster.HOST, node.metrics_port or 0) for node in nodes]
        answers, problems = get_all([*where, MonitoringEndpoint(9, problem="is fenced")], "/x")
    assert answers == {1: {"a": 1}}
    assert problems[9] == "is fenced"
    assert "does not answer" in problems[2]
    assert "answers 404" in problems[3]


def test_one_cluster_is_named_once(call, tmp_path):
    ran = call("timeline", "-b", "127.0.0.1:1", "--dir", str(tmp_path))
    assert ran.code == 2
    assert "not both" in ran.err
