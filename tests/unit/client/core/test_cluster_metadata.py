"""What is believed of the cluster, and what is not."""

# mypy: allow-incomplete-defs, allow-untyped-defs

from __future__ import annotations

import pytest

from strandline.client.core.cluster_metadata import ClusterMetadata, LeaderMetadata
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid

from .broker import TOPIC_ID, metadata


def test_leaders_are_found_by_name_and_id():
    cluster = ClusterMetadata()
    cluster.update(metadata({0: (1, 3), 1: (-1, 4), 2: (9, 1)}))
    assert cluster.leader("t", 0) == LeaderMetadata(1, 3)
    assert cluster.leader("t", 1) is None, "it has none"
    assert cluster.leader("t", 2) is None, "nobody knows its address"
    assert cluster.leader("u", 0) is None
    assert cluster.names[TOPIC_ID] == "t"
    assert cluster.partitions_count("t") == 3


def test_an_older_epoch_is_not_believed():
    cluster = ClusterMetadata()
    cluster.update(metadata({0: (2, 5)}))
    cluster.update(metadata({0: (1, 4)}))
    assert cluster.leader("t", 0) == LeaderMetadata(2, 5)
    cluster.update(metadata({0: (1, 6)}))
    assert cluster.leader("t", 0) == LeaderMetadata(1, 6)


def test_a_topic_made_again_starts_over():
    cluster = ClusterMetadata()
    cluster.update(metadata({0: (2, 5)}))
    cluster.update(metadata({0: (1, 0)}, topic_id=Uuid(b"another-id-16byt")))
    assert cluster.leader("t", 0) == LeaderMetadata(1, 0)
    assert TOPIC_ID not in cluster.names


def test_a_leader_named_in_passing_must_be_newer_and_known():
    cluster = ClusterMetadata()
    cluster.update(metadata({0: (1, 5)}))
    assert not cluster.learn_leader("t", 0, 2, 5)
    assert not cluster.learn_leader("t", 0, 7, 6), "node 7 has no address"
    assert cluster.learn_leader("t", 0, 2, 6)
    assert cluster.leader("t", 0) == LeaderMetadata(2, 6)


def test_a_topic_with_an_error_is_gone_and_the_error_kept():
    cluster = ClusterMetadata()
    cluster.update(metadata({0: (1, 5)}))
    cluster.update(metadata({}, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert "t" not in cluster.topics
    assert cluster.errors["t"] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_refused_answer_changes_nothing():
    cluster = ClusterMetadata()
    cluster.update(metadata({0: (1, 5)}))
    refused = metadata({}, nodes=())
    refused.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    with pytest.raises(KafkaError, match="REBOOTSTRAP_REQUIRED"):
        cluster.update(refused)
    assert cluster.leader("t", 0) == LeaderMetadata(1, 5)


def test_only_another_leader_is_news():
    known = ClusterMetadata()
    known.update(metadata({0: (1, 4), 1: (2, 4)}))
    told: list[str] = []
    known.on_new_leader.append(lambda: told.append("news"))
    known.update(metadata({0: (1, 4), 1: (2, 4)}))
    known.update(metadata({0: (2, 3), 1: (2, 4)}))
    assert not known.learn_leader("t", 0, 2, 4)
    assert told == [], "the same, or older"
    known.update(metadata({0: (2, 5), 1: (1, 5)}))
    assert told == ["news"]
    assert known.learn_leader("t", 0, 1, 6)
    assert told == ["news"] * 2
