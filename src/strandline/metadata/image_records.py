"""The records that make an image again: what a snapshot consists of.

Always true: replaying them on an empty image gives the same image. They come in Kafka's order, metadata.version first, since
it says how to read the rest. What the image's metadata.version has no record or field for is left out: lowering the
metadata.version gives it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from strandline.metadata import records as r
from strandline.metadata.features import METADATA_VERSION
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import METADATA_VERSION_4_3, MetadataRecord
from strandline.metadata.sharing import unfrozen

_AFTER_BROKERS = (r.RegisterControllerRecord,)
_AFTER_CONFIGS = (r.ClientQuotaRecord,)
_AFTER_PRODUCER_IDS = (r.AccessControlEntryRecord, r.UserScramCredentialRecord, r.DelegationTokenRecord)
_LAST = (r.ZkMigrationStateRecord,)


def metadata_version_of(image: MetadataImage) -> int:
    """The level at which this image's records are written; the newest, for an image without any."""
    return image.features.get(METADATA_VERSION, METADATA_VERSION_4_3)


def records_of(image: MetadataImage) -> Iterator[MetadataRecord]:
    yield from _features(image)
    for _, broker in sorted(image.brokers.items()):
        yield _broker(broker)
    yield from _others(image, _AFTER_BROKERS)
    for topic in image.topics_by_id.values():
        yield from _topic(topic)
    for (resource_type, resource_name), values in image.configs.items():
        for name, value in values.items():
            yield r.ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=name, value=value)
    yield from _others(image, _AFTER_CONFIGS)
    if image.next_producer_id:
        yield r.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id)
    yield from _others(image, _AFTER_PRODUCER_IDS)
    yield from _others(image, _LAST)


def _features(image: MetadataImage) -> Iterator[MetadataRecord]:
    names = sorted(image.features, key=lambda name: (name != METADATA_VERSION, name))
    return (r.FeatureLevelRecord(name=name, feature_level=image.features[name]) for name in names)


def _broker(broker: BrokerImage) -> MetadataRecord:
    return r.RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=tuple(
            r.BrokerEndpoint(
                name=each.listener, host=each.host, port=each.port, security_protocol=each.security_protocol
            )
            for each in broker.endpoints
        ),
        features=tuple(
            r.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, low, high in broker.features
        ),
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs or None,
    )


def _topic(topic: TopicImage) -> Iterator[MetadataRecord]:
    yield r.TopicRecord(name=topic.name, topic_id=topic.topic_id)
    for index, partition in enumerate(topic.partitions):
        yield _partition(topic, index, partition)


_Partition = unfrozen(r.PartitionRecord)


def _partition(topic: TopicImage, index: int, partition: PartitionImage) -> MetadataRecord:
    record = object.__new__(_Partition)
    record.partition_id = index
    record.topic_id = topic.topic_id
    record.replicas = partition.replicas
    record.isr = partition.isr
    record.removing_replicas = partition.removing_replicas
    record.adding_replicas = partition.adding_replicas
    record.leader = partition.leader
    record.leader_recovery_state = partition.leader_recovery_state
    record.leader_epoch = partition.leader_epoch
    record.partition_epoch = partition.partition_epoch
    record.directories = partition.directories
    record.eligible_leader_replicas = partition.elr or None
    record.last_known_elr = partition.last_known_elr or None
    record.__class__ = r.PartitionRecord
    return record  # type: ignore[no-any-return]


def _others(image: MetadataImage, classes: Iterable[type[MetadataRecord]]) -> Iterator[MetadataRecord]:
    """Records that the image keeps as they came, if its metadata.version has them."""
    level = metadata_version_of(image)
    for cls in classes:
        if cls.LEVELS[0] <= level:
            yield from (record for (key, _), record in image.others.items() if key == cls.KEY)
