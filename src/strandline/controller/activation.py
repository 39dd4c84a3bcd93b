"""What a controller writes first when it becomes active.

Always true: the first records of a cluster are its bootstrap records, metadata.version among them, all in one decision; a log
that has them gets nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.metadata import records as r
from strandline.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, KRAFT_VERSION, METADATA_VERSION
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, MetadataImage


def activation_records(
    image: MetadataImage, bootstrap: Sequence[r.MetadataRecord], *, min_insync_replicas: int
) -> list[r.MetadataRecord]:
    """The records with which a newly active controller begins. `bootstrap`: what the cluster was formatted with."""
    if METADATA_VERSION in image.features:
        return []
    levels = {record.name: record.feature_level for record in bootstrap if isinstance(record, r.FeatureLevelRecord)}
    assert METADATA_VERSION in levels, "a cluster is formatted with a metadata.version"
    # kraft.version belongs to the quorum and is in its control records; a second place could contradict it.
    records = [
        record
        for record in bootstrap
        if not (isinstance(record, r.FeatureLevelRecord) and record.name == KRAFT_VERSION)
    ]
    if levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION):
        records += min_isr_for_elr(image, min_insync_replicas)
    return records


def min_isr_for_elr(image: MetadataImage, min_insync_replicas: int) -> list[r.MetadataRecord]:
    """Make min.insync.replicas one value for all brokers. The ELR follows from it, and must not depend on the file of the
    controller that happens to be active."""
    name = "min.insync.replicas"
    records: list[r.MetadataRecord] = []
    if name not in image.config(BROKER_RESOURCE, CLUSTER_DEFAULT):
        records.append(_config(CLUSTER_DEFAULT, name, str(min_insync_replicas)))
    records += [
        _config(resource, name, None)
        for (resource_type, resource), values in image.configs.items()
        if resource_type == BROKER_RESOURCE and resource != CLUSTER_DEFAULT and name in values
    ]
    return records


def _config(broker: str, name: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=name, value=value)
