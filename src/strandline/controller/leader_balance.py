"""Leadership goes back to the preferred replicas, by itself, now and then (auto.leader.rebalance.enable).

Every partition counts: as in Kafka's quorum controller there is no share of partitions below which a broker is left alone.

Always true: only a preferred replica that is in sync and active is elected; a step is bounded, and says whether to go on.
"""

from __future__ import annotations

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import Election, active_brokers
from strandline.controller.partition_change import AS_IT_IS, change
from strandline.metadata.image import MetadataImage
from strandline.metadata.records import PartitionChangeRecord

ELECTIONS_PER_STEP_MAX = 1_000


def balance(
    image: MetadataImage, policy: ElectionPolicy, most: int = ELECTIONS_PER_STEP_MAX
) -> tuple[list[PartitionChangeRecord], bool]:
    """At most so many elections of preferred leaders, and whether there may be more to do at once."""
    active = active_brokers(image)
    records = []
    for topic in image.topics.values():
        terms = None
        for index, partition in enumerate(topic.partitions):
            preferred = partition.replicas[0]
            if preferred == partition.leader or preferred not in partition.isr or preferred not in active:
                continue
            terms = terms or policy.terms(topic.name, active, Election.PREFERRED)
            record = change(topic.topic_id, index, partition, AS_IT_IS, terms)
            if record is not None and record.leader == preferred:
                records.append(record)
                if len(records) == most:
                    return records, True
    return records, False
