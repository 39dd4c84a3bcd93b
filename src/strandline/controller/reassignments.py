"""Reassignments: a partition's way to other replicas.

It grows first (`adding_replicas` join the replicas), waits until those are in sync, and shrinks then (`removing_replicas`
leave); the end comes with whatever change makes it possible (`partition_change.py`).

Always true: no reassignment adds to the ISR (rule B15); cancelled, the replicas are those from before, in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import Election, active_brokers
from strandline.controller.partition_change import PartitionTarget, change
from strandline.controller.placement import default_directory
from strandline.controller.topics import check_assignments
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import MetadataImage, PartitionImage, TopicImage
from strandline.metadata.records import NO_LEADER, PartitionChangeRecord


def alter(
    image: MetadataImage,
    topic: str,
    index: int,
    replicas: Sequence[int] | None,
    policy: ElectionPolicy,
    *,
    allow_replication_factor_change: bool = True,
) -> PartitionChangeRecord | None:
    """Begin a reassignment to `replicas`, or change one that is under way; without replicas, cancel it."""
    partition = image.partition(topic, index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
    if replicas is None:
        return _cancel(image, image.topics[topic], index, policy)
    wanted = tuple(replicas)
    check_assignments(image, [wanted])
    factor = len(partition.replicas) - len(partition.removing_replicas)
    if not allow_replication_factor_change and len(wanted) != factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {factor} to {len(wanted)}.",
        )
    before = _but(partition.replicas, partition.adding_replicas)
    removing = _but(before + partition.adding_replicas, wanted)
    target = PartitionTarget(
        replicas=wanted + removing,
        adding=_but(wanted, before),
        removing=removing,
        directories={replica: default_directory(image, replica) for replica in _but(wanted, partition.replicas)},
    )
    terms = policy.terms(topic, active_brokers(image), Election.ONLINE)
    return change(image.topics[topic].topic_id, index, partition, target, terms)


def _cancel(
    image: MetadataImage, topic: TopicImage, index: int, policy: ElectionPolicy
) -> PartitionChangeRecord | None:
    partition = topic.partitions[index]
    if not is_reassigning(partition):
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    replicas = _but(partition.replicas, partition.adding_replicas)
    isr = _but(partition.isr, partition.adding_replicas)
    target = PartitionTarget(isr=isr, replicas=replicas, adding=(), removing=())
    # Without anyone who has all records among those that stay, there is no way back but by an unclean election.
    holders = partition.isr or partition.elr or partition.last_known_elr
    clean = any(replica in replicas for replica in holders)
    record = change(topic.topic_id, index, partition, target, policy.terms(topic.name, active_brokers(image)))
    if not clean and (not policy.unclean(topic.name) or record is None or record.leader == NO_LEADER):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert the partition assignment of {topic.name}-{index}: it would require an unclean election.",
        )
    return record


def _but(replicas: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica not in others)


def is_reassigning(partition: PartitionImage) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def under_way(topic: TopicImage, indexes: Iterable[int] | None = None) -> Iterator[tuple[int, PartitionImage]]:
    """The partitions that are being reassigned, of the whole topic or among these."""
    for index in range(len(topic.partitions)) if indexes is None else indexes:
        if 0 <= index < len(topic.partitions) and is_reassigning(topic.partitions[index]):
            yield index, topic.partitions[index]
