"""The first records of an active controller."""

from __future__ import annotations

from dataclasses import replace

from strandline.controller.activation import activation_records
from strandline.metadata import records as r
from strandline.metadata.features import bootstrap_features, bootstrap_records
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, MetadataImage

from .conftest import after

BOOTSTRAP = bootstrap_records(bootstrap_features())
OLD = bootstrap_records({"metadata.version": 20})
RUNNING = replace(MetadataImage(), features={"metadata.version": 30})


def activated(image: MetadataImage, bootstrap: list[r.FeatureLevelRecord]) -> list[r.MetadataRecord]:
    return activation_records(image, bootstrap, min_insync_replicas=2)


def test_a_new_cluster_begins_with_its_bootstrap_records() -> None:
    records = activated(MetadataImage(), BOOTSTRAP)
    assert records[: len(BOOTSTRAP)] == BOOTSTRAP
    image = after(MetadataImage(), records)
    assert image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "transaction.version": 2,
    }
    assert image.config(BROKER_RESOURCE, CLUSTER_DEFAULT) == {"min.insync.replicas": "2"}, "as ELR needs it"


def test_without_elr_min_insync_replicas_is_left_to_each_node() -> None:
    assert activated(MetadataImage(), OLD) == OLD


def test_kraft_version_is_never_in_the_metadata() -> None:
    kraft_version = r.FeatureLevelRecord(name="kraft.version", feature_level=1)
    assert activated(MetadataImage(), [*OLD, kraft_version]) == OLD


def test_a_running_cluster_needs_nothing() -> None:
    assert activated(RUNNING, BOOTSTRAP) == []
