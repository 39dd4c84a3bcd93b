"""Elections that an operator asks for (ElectLeaders), refused where there is nothing to elect (B8)."""

from __future__ import annotations

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import Election, active_brokers
from strandline.controller.partition_change import AS_IT_IS, change
from strandline.errors import ErrorCode, KafkaError
from strandline.metadata.image import (
    MetadataImage,
    PartitionImage,
)
from strandline.metadata.records import NO_LEADER_CHANGE, PartitionChangeRecord


def needs_election(partition: PartitionImage, kind: Election) -> bool:
    return partition.leader != partition.replicas[0] if kind is Election.PREFERRED else not partition.has_leader


def elect(
    image: MetadataImage, topic: str, index: int, kind: Election, policy: ElectionPolicy
) -> PartitionChangeRecord:
    """The election of the preferred leader, or of any replica that the election allows: KafkaError if there is none (B8)."""
    partition = image.partition(topic, index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
    if not needs_election(partition, kind):
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    terms = policy.terms(topic, active_brokers(image), kind)
    record = change(image.topics[topic].topic_id, index, partition, AS_IT_IS, terms)
    if record is None or record.leader in (NO_LEADER_CHANGE, partition.leader):
        if kind is Election.PREFERRED:
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
        )
    return record
