# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

from strandline.cli.kafka_tools.kafka_cluster import endpoint_lines
from strandline.client.core.cluster_metadata import BrokerMetadata
from strandline.client.flow.descriptions import ClusterDescription

DESCRIBED = ClusterDescription(
    "id", 1, (BrokerMetadata(1, "one.example", 9092, "rack-1"), BrokerMetadata(2, "two", 9093)), frozenset({2})
)


def test_endpoints_in_kafkas_columns():
    assert endpoint_lines(DESCRIBED, False) == [
        "ID         HOST        PORT       RACK   STATE      ENDPOINT_TYPE  ",
        "1          one.example 9092       rack-1 unfenced   broker         ",
        "2          two         9093       null   fenced     broker         ",
    ]
    assert endpoint_lines(DESCRIBED._replace(brokers=DESCRIBED.brokers[1:]), True) == [
        "ID         HOST PORT       RACK       ENDPOINT_TYPE  ",
        "2          two 9093       null       controller     ",
    ]


def test_flags_that_do_not_go_together(call):
    ran = call("kafka-cluster", "list-endpoints", "-C", "127.0.0.1:1", "--include-fenced-brokers")
    assert ran.code == 1
    assert "only supported with --bootstrap-server" in ran.err
    assert call("kafka-cluster", "cluster-id").code == 2
    assert call("kafka-cluster", "unregister", "-b", "127.0.0.1:1").code == 2
