"""The policy of elections by image and configuration."""

# mypy: disable-error-code="attr-defined"

from __future__ import annotations

from strandline.config.layers import Layers
from strandline.controller.election_policy import policy_of
from strandline.metadata import records as r
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    MetadataImage,
)

from .conftest import after


def config(kind: int, name: str, key: str, value: str) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def test_the_policy_is_the_topics_then_the_clusters_then_the_files() -> None:
    layers = Layers({"min.insync.replicas": "2"})
    image = MetadataImage()
    assert policy_of(image, layers).min_isr("t") == 2
    image = after(image, [config(BROKER_RESOURCE, CLUSTER_DEFAULT, "min.insync.replicas", "3")])
    image = after(image, [config(BROKER_RESOURCE, CLUSTER_DEFAULT, "unclean.leader.election.enable", "true")])
    image = after(image, [config(TOPIC_RESOURCE, "t", "min.insync.replicas", "4")])
    image = after(image, [config(TOPIC_RESOURCE, "t", "unclean.leader.election.enable", "false")])
    found = policy_of(image, layers)
    assert (found.min_isr("t"), found.min_isr("u")) == (4, 3)
    assert (found.unclean("t"), found.unclean("u")) == (False, True)
    assert not found.elr_enabled
    feature = r.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    assert policy_of(after(image, [feature]), layers).elr_enabled
