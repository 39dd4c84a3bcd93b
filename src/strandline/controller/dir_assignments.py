"""In which log dir a broker has put its replicas.

Always true: a broker speaks of its own replicas only; one in a log dir that is offline neither leads nor is in sync; one whose
former log dir is gone began anew, and is not eligible to lead by what it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from strandline.controller.brokers import check_epoch
from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import active_brokers
from strandline.controller.partition_change import PartitionTarget, change
from strandline.controller.placement import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from strandline.errors import ErrorCode
from strandline.ids import Uuid
from strandline.metadata.image import BrokerImage, MetadataImage, PartitionImage
from strandline.metadata.records import MetadataRecord


class ReplicaDirAssignment(NamedTuple):
    directory: Uuid
    topic_id: Uuid
    partition_index: int


def assign(
    image: MetadataImage,
    broker_id: int,
    broker_epoch: int,
    assigned: Sequence[ReplicaDirAssignment],
    policy: ElectionPolicy,
) -> tuple[list[MetadataRecord], list[ErrorCode]]:
    """The records for all that can be, and the answer to each."""
    broker = check_epoch(image, broker_id, broker_epoch)
    active, active_without = active_brokers(image), active_brokers(image, but=broker_id)
    records: list[MetadataRecord] = []
    codes = []
    for one in assigned:
        code = _refusal(image, broker_id, one)
        codes.append(code)
        if code:
            continue
        topic = image.topics_by_id[one.topic_id]
        partition = topic.partitions[one.partition_index]
        online = _is_online(one.directory, broker)
        target = PartitionTarget(
            isr=None if online else tuple(replica for replica in partition.isr if replica != broker_id),
            directories={broker_id: one.directory},
            lost=() if _is_online(_former(partition, broker_id), broker) else (broker_id,),
        )
        terms = policy.terms(topic.name, active if online else active_without)
        record = change(one.topic_id, one.partition_index, partition, target, terms)
        if record is not None:
            records.append(record)
    return records, codes


def _refusal(image: MetadataImage, broker_id: int, assigned: ReplicaDirAssignment) -> ErrorCode:
    topic = image.topics_by_id.get(assigned.topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= assigned.partition_index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in topic.partitions[assigned.partition_index].replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def _former(partition: PartitionImage, broker_id: int) -> Uuid:
    if not partition.directories:
        return UNASSIGNED_DIRECTORY
    return partition.directories[partition.replicas.index(broker_id)]


def _is_online(directory: Uuid, broker: BrokerImage) -> bool:
    unknown = directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY) or not broker.log_dirs
    return unknown or directory in broker.log_dirs
