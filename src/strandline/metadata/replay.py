"""From one image and a batch of records to the next image.

Always true: replay never refuses a committed record and decides nothing; what a record means is said here and nowhere else.
Sections that no record touches are shared with the image before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from strandline.ids import Uuid
from strandline.metadata import records as r
from strandline.metadata.image import TOPIC_RESOURCE, BrokerImage, Endpoint, MetadataImage, PartitionImage, TopicImage
from strandline.metadata.sharing import tuples, unfrozen

Section = dict[Any, Any]
"""A part of an image, to be changed. Each has keys and values of its own types."""
_FENCE, _UNFENCE, _BEGIN_CONTROLLED_SHUTDOWN = 1, -1, 1


class _Draft:
    """The sections of the next image, copied when they are first touched."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._touched: dict[str, Any] = {}
        self._partitions: dict[Uuid, list[PartitionImage]] = {}
        """Of topics whose partitions are being changed: a list until the end, so that many changes cost no copies."""

    def section(self, name: str) -> Section:
        if name not in self._touched:
            self._touched[name] = dict(getattr(self._image, name))
        copied: Section = self._touched[name]
        return copied

    def set(self, name: str, value: object) -> None:
        self._touched[name] = value

    def topic(self, topic_id: Uuid) -> TopicImage:
        found: TopicImage = self.section("topics_by_id")[topic_id]
        return found

    def put_topic(self, topic: TopicImage) -> None:
        self.section("topics")[topic.name] = topic
        self.section("topics_by_id")[topic.topic_id] = topic

    def partitions(self, topic_id: Uuid) -> list[PartitionImage]:
        if topic_id not in self._partitions:
            self._partitions[topic_id] = list(self.topic(topic_id).partitions)
        return self._partitions[topic_id]

    def settle(self) -> None:
        """Give the topics their changed partitions."""
        for topic_id, partitions in self._partitions.items():
            self.put_topic(replace(self.topic(topic_id), partitions=tuple(partitions)))
        self._partitions = {}

    def remove_topic(self, topic_id: Uuid) -> TopicImage:
        self._partitions.pop(topic_id, None)
        topic: TopicImage = self.section("topics_by_id").pop(topic_id)
        self.section("topics").pop(topic.name)
        return topic

    def finish(self, end_offset: int, epoch: int) -> MetadataImage:
        self.settle()
        return replace(self._image, end_offset=end_offset, epoch=epoch, **self._touched)


def replay(image: MetadataImage, records: Iterable[r.MetadataRecord], end_offset: int, epoch: int) -> MetadataImage:
    """The image after `records`, which end before `end_offset` and were written in quorum epoch `epoch`."""
    draft = _Draft(image)
    for record in records:
        _apply(draft, record)
    return draft.finish(end_offset, epoch)


class GrowingImage:
    """The image of one decision with many parts, each of which sees what those before it wrote.

    Its sections are copied once, not for each part: `image` is only valid until the next `add`, and must not be kept.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._draft = _Draft(image)
        self.image = image

    def add(self, records: Sequence[r.MetadataRecord]) -> None:
        if records:
            for record in records:
                _apply(self._draft, record)
            self.image = self._draft.finish(self.image.end_offset + len(records), self.image.epoch)


def _apply(draft: _Draft, record: r.MetadataRecord) -> None:
    match record:
        case r.PartitionRecord():
            _put_partition(draft.partitions(record.topic_id), record.partition_id, _from_record(record))
        case r.PartitionChangeRecord():
            partitions = draft.partitions(record.topic_id)
            partitions[record.partition_id] = _changed(partitions[record.partition_id], record)
        case r.TopicRecord():
            draft.put_topic(TopicImage(record.name, record.topic_id))
        case r.RemoveTopicRecord():
            topic = draft.remove_topic(record.topic_id)
            draft.section("configs").pop((TOPIC_RESOURCE, topic.name), None)
        case r.ConfigRecord():
            _set_config(draft, record)
        case r.FeatureLevelRecord():
            if record.feature_level:
                draft.section("features")[record.name] = record.feature_level
            else:
                draft.section("features").pop(record.name, None)
        case r.ProducerIdsRecord():
            draft.set("next_producer_id", record.next_producer_id)
        case r.RegisterBrokerRecord():
            draft.section("brokers")[record.broker_id] = _registered(record)
        case r.UnregisterBrokerRecord():
            draft.section("brokers").pop(record.broker_id, None)
        case r.BrokerRegistrationChangeRecord():
            draft.section("brokers")[record.broker_id] = _registration_changed(
                draft.section("brokers")[record.broker_id], record
            )
        case r.FenceBrokerRecord() | r.UnfenceBrokerRecord():
            brokers = draft.section("brokers")
            brokers[record.id] = replace(brokers[record.id], fenced=isinstance(record, r.FenceBrokerRecord))
        case r.ClearElrRecord():
            _clear_elr(draft, record.topic_name)
        case _:
            _keep(draft, record)


_Partition = unfrozen(PartitionImage)


def _from_record(record: r.PartitionRecord) -> PartitionImage:
    partition = object.__new__(_Partition)
    partition.replicas = tuples[record.replicas]
    partition.isr = tuples[record.isr]
    partition.leader = record.leader
    partition.leader_epoch = record.leader_epoch
    partition.partition_epoch = record.partition_epoch
    partition.removing_replicas = record.removing_replicas
    partition.adding_replicas = record.adding_replicas
    partition.directories = tuples[record.directories]
    partition.leader_recovery_state = record.leader_recovery_state
    partition.elr = record.eligible_leader_replicas or ()
    partition.last_known_elr = record.last_known_elr or ()
    partition.__class__ = PartitionImage
    return partition  # type: ignore[no-any-return]


def _changed(before: PartitionImage, change: r.PartitionChangeRecord) -> PartitionImage:
    """The partition after a change: the partition epoch rises always, the leader epoch when a leader is named."""
    after = object.__new__(_Partition)
    after.replicas = before.replicas if change.replicas is None else tuples[change.replicas]
    after.isr = before.isr if change.isr is None else tuples[change.isr]
    after.removing_replicas = _or(change.removing_replicas, before.removing_replicas)
    after.adding_replicas = _or(change.adding_replicas, before.adding_replicas)
    after.directories = before.directories if change.directories is None else tuples[change.directories]
    after.elr = _or(change.eligible_leader_replicas, before.elr)
    after.last_known_elr = _or(change.last_known_elr, before.last_known_elr)
    recovery = change.leader_recovery_state
    after.leader_recovery_state = recovery if recovery >= 0 else before.leader_recovery_state
    if change.leader == r.NO_LEADER_CHANGE:
        after.leader, after.leader_epoch = before.leader, before.leader_epoch
    else:
        after.leader, after.leader_epoch = change.leader, before.leader_epoch + 1
    after.partition_epoch = before.partition_epoch + 1
    after.__class__ = PartitionImage
    return after  # type: ignore[no-any-return]


def _or(new: tuple[int, ...] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else new


def _put_partition(partitions: list[PartitionImage], index: int, partition: PartitionImage) -> None:
    if index == len(partitions):
        partitions.append(partition)
    else:
        partitions[index] = partition


def _set_config(draft: _Draft, record: r.ConfigRecord) -> None:
    configs = draft.section("configs")
    resource = (record.resource_type, record.resource_name)
    values = dict(configs.get(resource, {}))
    if record.value is None:
        values.pop(record.name, None)
    else:
        values[record.name] = record.value
    if values:
        configs[resource] = values
    else:
        configs.pop(resource, None)


def _registered(record: r.RegisterBrokerRecord) -> BrokerImage:
    return BrokerImage(
        broker_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=record.log_dirs,
        cordoned_log_dirs=record.cordoned_log_dirs or (),
        features=tuple((f.name, f.min_supported_version, f.max_supported_version) for f in record.features),
    )


def _registration_changed(broker: BrokerImage, record: r.BrokerRegistrationChangeRecord) -> BrokerImage:
    begins_shutdown = record.in_controlled_shutdown == _BEGIN_CONTROLLED_SHUTDOWN
    cordoned = record.cordoned_log_dirs
    return replace(
        broker,
        fenced=record.fenced == _FENCE if record.fenced else broker.fenced,
        in_controlled_shutdown=begins_shutdown or broker.in_controlled_shutdown,
        log_dirs=record.log_dirs or broker.log_dirs,
        cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else cordoned,
    )


def _clear_elr(draft: _Draft, name: str) -> None:
    draft.settle()
    for topic in list(draft.section("topics").values()):
        if not name or topic.name == name:
            cleared = tuple(_without_elr(partition) for partition in topic.partitions)
            draft.put_topic(replace(topic, partitions=cleared))


def _without_elr(partition: PartitionImage) -> PartitionImage:
    if not (partition.elr or partition.last_known_elr):
        return partition
    return replace(partition, elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)


def _keep(draft: _Draft, record: r.MetadataRecord) -> None:
    """Records whose part has no view here are kept as they came, or taken out by the record that removes them."""
    others = draft.section("others")
    match record:
        case r.RegisterControllerRecord():
            others[record.KEY, record.controller_id] = record
        case r.ClientQuotaRecord():
            key = (record.KEY, (tuple(sorted((e.entity_type, e.entity_name or "") for e in record.entity)), record.key))
            _put_or_drop(others, key, None if record.remove else record)
        case r.AccessControlEntryRecord():
            others[record.KEY, record.id] = record
        case r.RemoveAccessControlEntryRecord():
            others.pop((r.AccessControlEntryRecord.KEY, record.id), None)
        case r.UserScramCredentialRecord():
            others[record.KEY, (record.name, record.mechanism)] = record
        case r.RemoveUserScramCredentialRecord():
            others.pop((r.UserScramCredentialRecord.KEY, (record.name, record.mechanism)), None)
        case r.DelegationTokenRecord():
            others[record.KEY, record.token_id] = record
        case r.RemoveDelegationTokenRecord():
            others.pop((r.DelegationTokenRecord.KEY, record.token_id), None)
        case r.ZkMigrationStateRecord():
            others[record.KEY, None] = record
        case _:
            # NoOp and the marks of metadata transactions change no image.
            pass


def _put_or_drop(
    others: dict[tuple[int, Hashable], r.MetadataRecord], key: tuple[int, Hashable], record: r.MetadataRecord | None
) -> None:
    if record is None:
        others.pop(key, None)
    else:
        others[key] = record
