"""Decisions about topics: create, delete, add partitions.

Always true: names are unique, also when '.' and '_' are taken for one; a partition's replicas are registered brokers, each
once; its first leader is the first replica that is active; leader epoch and partition epoch begin at 0.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strandline.config.alter import check_topic
from strandline.config.errors import ConfigError
from strandline.config.layers import Layers
from strandline.controller.placement import default_directory, place, takes_replicas
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.log.names import CLUSTER_METADATA_TOPIC, collision_key, topic_name_problem
from strandline.metadata import records as r
from strandline.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from strandline.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage, TopicImage

PARTITIONS_PER_REQUEST_MAX = 10_000
MIN_ISR = "min.insync.replicas"
TRANSACTION_STATE = "__transaction_state"


class RequestedTopic(NamedTuple):
    """A topic as asked for. -1 stands for the broker's default; `assignments` replaces both numbers."""

    name: str
    partition_count: int
    replication_factor: int
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


class TopicDefaults(NamedTuple):
    """What a topic gets when its creator does not say."""

    partition_count: int
    replication_factor: int
    layers: Layers


class TakenNames:
    """By which of the existing topics each name is taken, '.' and '_' being one. Made once for many new topics."""

    def __init__(self, image: MetadataImage) -> None:
        self._by_key = {collision_key(name): name for name in image.topics}

    def by(self, name: str) -> str | None:
        return self._by_key.get(collision_key(name))

    def take(self, name: str) -> None:
        self._by_key[collision_key(name)] = name


def create(
    image: MetadataImage,
    wanted: RequestedTopic,
    defaults: TopicDefaults,
    randomness: random.Random,
    taken: TakenNames | None = None,
) -> list[r.MetadataRecord]:
    """The records of a new topic; KafkaError if it can't be. `taken` holds the names of the image's topics."""
    taken = taken or TakenNames(image)
    _check_name(image, wanted.name, taken)
    try:
        check_topic(wanted.configs, defaults.layers)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, error.message) from None
    replicas = _assigned(image, wanted) if wanted.assignments else _placed(image, wanted, defaults, randomness)
    topic_id = Uuid.draw(randomness)
    records: list[r.MetadataRecord] = [r.TopicRecord(name=wanted.name, topic_id=topic_id)]
    records += [
        r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=wanted.name, name=name, value=value)
        for name, value in wanted.configs.items()
    ]
    records += [_partition(image, topic_id, index, chosen) for index, chosen in enumerate(replicas)]
    taken.take(wanted.name)
    return records


def _check_name(image: MetadataImage, name: str, taken: TakenNames) -> None:
    if problem := topic_name_problem(name):
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")
    if name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if (other := taken.by(name)) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _placed(
    image: MetadataImage, wanted: RequestedTopic, defaults: TopicDefaults, randomness: random.Random
) -> list[tuple[int, ...]]:
    if wanted.partition_count < -1 or wanted.partition_count == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if wanted.replication_factor < -1 or wanted.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    count = defaults.partition_count if wanted.partition_count == -1 else wanted.partition_count
    factor = defaults.replication_factor if wanted.replication_factor == -1 else wanted.replication_factor
    if count > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"Excessively large number of partitions per request: {count}.")
    return place(image.brokers.values(), count, factor, randomness)


def _assigned(image: MetadataImage, wanted: RequestedTopic) -> list[tuple[int, ...]]:
    if wanted.replication_factor != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if wanted.partition_count != -1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    if sorted(wanted.assignments) != list(range(len(wanted.assignments))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    return check_assignments(image, [tuple(wanted.assignments[i]) for i in range(len(wanted.assignments))])


def check_assignments(
    image: MetadataImage, assignments: list[tuple[int, ...]], replication_factor: int | None = None
) -> list[tuple[int, ...]]:
    """The assignments, if they are ones that can be: INVALID_REPLICA_ASSIGNMENT if not."""
    for replicas in assignments:
        if not replicas:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes an empty replica list."
            )
        if len(set(replicas)) != len(replicas):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes the same broker twice.",
            )
        for broker_id in replicas:
            if broker_id not in image.brokers:
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes broker {broker_id}, but no such broker is registered.",
                )
            if not takes_replicas(image.brokers[broker_id]):
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"The manual partition assignment includes broker {broker_id}, whose log dirs are all cordoned.",
                )
        if len(replicas) != (replication_factor or len(assignments[0])):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The manual partition assignment includes partitions with different numbers of replicas.",
            )
    return assignments


def _partition(image: MetadataImage, topic_id: Uuid, index: int, replicas: tuple[int, ...]) -> r.PartitionRecord:
    isr = tuple(broker_id for broker_id in replicas if image.brokers[broker_id].active)
    if not isr:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in controlled "
            "shutdown.",
        )
    return r.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(default_directory(image, broker_id) for broker_id in replicas),
    )


def delete(image: MetadataImage, topic: TopicImage | None, *, enabled: bool) -> list[r.MetadataRecord]:
    """The record that removes a topic and all it had."""
    if not enabled:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return [r.RemoveTopicRecord(topic_id=topic.topic_id)]


def add_partitions(
    image: MetadataImage, name: str, count: int, assignments: Sequence[Sequence[int]] | None, randomness: random.Random
) -> list[r.MetadataRecord]:
    """The records that grow a topic to `count` partitions."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    if name == TRANSACTION_STATE:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"Where the coordinator of a transactional id is depends on how many partitions {name} has: it keeps them.",
        )
    present = len(topic.partitions)
    if count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {name} currently has {present} partition(s); {count} would not be an increase.",
        )
    added = count - present
    if added > PARTITIONS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"Excessively large number of partitions per request: {added}.")
    # A partition that is being reassigned has those that go and those that come at once; it will have the latter.
    pattern = topic.partitions[0]
    factor = len(pattern.replicas) - len(pattern.removing_replicas)
    if assignments is None:
        replicas = place(image.brokers.values(), added, factor, randomness, first=present)
    else:
        if len(assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only {len(assignments)} assignment(s) were specified.",
            )
        replicas = check_assignments(image, [tuple(chosen) for chosen in assignments], factor)
    return [_partition(image, topic.topic_id, present + i, chosen) for i, chosen in enumerate(replicas)]


def min_isr_changed(image: MetadataImage, changes: Sequence[r.MetadataRecord]) -> list[r.MetadataRecord]:
    """The records that must follow these changes of configuration: the ELR was found by the old min.insync.replicas.

    While ELR is on there is one min.insync.replicas for all brokers, which can't be taken away: INVALID_CONFIG.
    """
    if not image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION):
        return []
    records: list[r.MetadataRecord] = []
    for change in changes:
        if not isinstance(change, r.ConfigRecord) or change.name != MIN_ISR:
            continue
        if change.resource_type == BROKER_RESOURCE and (change.resource_name or change.value is None):
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{MIN_ISR} can't be altered for one broker, nor removed for all, while ELR is enabled.",
            )
        name = change.resource_name if change.resource_type == TOPIC_RESOURCE else ""
        records.append(r.ClearElrRecord(topic_name=name))
        concerned = [image.topics[name]] if name else image.topics.values()
        # Without a leader nothing was committed by the new rule yet: the replicas that were eligible still hold everything.
        records += [
            r.PartitionChangeRecord(
                topic_id=topic.topic_id,
                partition_id=index,
                eligible_leader_replicas=partition.elr,
                last_known_elr=partition.last_known_elr,
            )
            for topic in concerned
            for index, partition in enumerate(topic.partitions)
            if not partition.isr and (partition.elr or partition.last_known_elr)
        ]
    return records
