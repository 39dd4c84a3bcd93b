"""Decisions about brokers: who they are, and what they lead when they come back.

Always true: a registration's broker epoch is the offset of its record, so it is never given twice; a broker that starts again
leads in a new leader epoch, because what it writes now must never be taken for what it may have lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import Endpoint, MetadataImage, PartitionImage

UNFENCE = -1


class Registration(NamedTuple):
    """What a broker says of itself when it starts."""

    broker_id: int
    incarnation_id: Uuid
    endpoints: Sequence[Endpoint]
    features: Sequence[tuple[str, int, int]]
    log_dirs: Sequence[Uuid]
    rack: str | None = None


def register_alone(image: MetadataImage, wanted: Registration) -> tuple[list[r.MetadataRecord], int]:
    """Register the only broker there is, unfenced at once; the records and its broker epoch."""
    epoch = image.end_offset
    registration = r.RegisterBrokerRecord(
        broker_id=wanted.broker_id,
        incarnation_id=wanted.incarnation_id,
        broker_epoch=epoch,
        end_points=tuple(
            r.BrokerEndpoint(name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol)
            for e in wanted.endpoints
        ),
        features=tuple(
            r.BrokerFeature(name=name, min_supported_version=least, max_supported_version=most)
            for name, least, most in wanted.features
        ),
        rack=wanted.rack,
        fenced=True,
        log_dirs=tuple(wanted.log_dirs),
    )
    unfence = r.BrokerRegistrationChangeRecord(broker_id=wanted.broker_id, broker_epoch=epoch, fenced=UNFENCE)
    elections = [
        _elect(topic.topic_id, index, partition, wanted.broker_id)
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if wanted.broker_id in (partition.isr or partition.elr)
    ]
    return [registration, unfence, *elections], epoch


def _elect(topic_id: Uuid, index: int, partition: PartitionImage, broker_id: int) -> r.PartitionChangeRecord:
    """The record by which a broker leads a partition; from the ELR it becomes the whole ISR (rule B7)."""
    if partition.isr:
        return r.PartitionChangeRecord(partition_id=index, topic_id=topic_id, leader=broker_id)
    return r.PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        leader=broker_id,
        isr=(broker_id,),
        eligible_leader_replicas=(),
        last_known_elr=(),
    )
