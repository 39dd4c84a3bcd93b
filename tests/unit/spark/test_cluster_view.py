"""What the driver sees of a real node."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.client.core.group.offsets import OffsetAndMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.spark.cluster_view import ClientClusterView, there
from tests.unit.spark.node_beside import Cluster


@pytest.fixture
def view(cluster: Cluster):
    return ClientClusterView(cluster.client)


def test_topics_with_their_ids_and_only_those_that_exist(cluster: Cluster, view) -> None:
    cluster.make("seen", 2)
    found = view.topics(["seen", "unseen"])
    [listed] = [topic for topic in cluster.admin.list_topics() if topic.name == "seen"]
    assert found == {"seen": (listed.topic_id, frozenset({0, 1}))}
    everything = view.topics(None)
    assert everything["seen"] == found["seen"]
    assert "__consumer_offsets" not in everything


def test_topics_are_believed_as_long_as_was_said(cluster: Cluster) -> None:
    clock = [0.0]
    patient = ClientClusterView(cluster.client, metadata_ttl_ms=2000, now=lambda: clock[0])
    assert patient.topics(["comes-later"]) == {}
    cluster.make("comes-later")
    assert patient.topics(["comes-later"]) == {}
    clock[0] = 2.0
    assert "comes-later" in patient.topics(["comes-later"])


def test_offsets_leave_out_what_is_not_there(cluster: Cluster, view) -> None:
    topic = cluster.make("offsets")
    cluster.write(topic, [b"a", b"b", b"c"])
    cluster.admin.delete_records({(topic, 0): 1})
    assert view.earliest([(topic, 0)]) == {(topic, 0): 1}
    assert view.latest([(topic, 0), (topic, 7)]) == {(topic, 0): 3}
    assert view.by_timestamp({(topic, 0): 1002}) == {(topic, 0): 2}
    assert view.by_timestamp({(topic, 0): 9999}) == {(topic, 0): None}
    assert view.latest([]) == {}


def test_offsets_of_a_group(cluster: Cluster, view) -> None:
    topic = cluster.make("grouped", 2)
    cluster.admin.alter_group_offsets("view", {(topic, 0): OffsetAndMetadata(4)})
    assert view.group_offsets("view", [(topic, 0), (topic, 1)]) == {(topic, 0): 4}
    assert view.group_offsets("nobody", [(topic, 0)]) == {}


def test_sizes_and_leaders(cluster: Cluster, view) -> None:
    topic = cluster.make("sizes", 2)
    cluster.write(topic, [bytes(5000)])
    sizes = view.sizes_bytes([(topic, 0), (topic, 1), (topic, 2)])
    assert 5000 < sizes[topic, 0] < 6000
    assert sizes[topic, 1] == 0
    assert (topic, 2) not in sizes
    assert view.leaders([(topic, 0)]) == {(topic, 0): "127.0.0.1"}


def test_topics_whose_timestamps_are_the_brokers(cluster: Cluster, view) -> None:
    cluster.make("created")
    cluster.make("appended", message_timestamp_type="LogAppendTime")
    assert view.log_append_time(["created", "appended", "unseen"]) == {"appended"}


def test_errors_other_than_absence_are_raised() -> None:
    absent, denied = (KafkaError(code) for code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert there({"a": 1, "b": absent}) == {"a": 1}
    with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
        there({"a": 1, "b": denied})
