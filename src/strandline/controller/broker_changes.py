"""What becomes of partitions when brokers come and go, and log dirs fail.

Each function returns what follows from one event that the image does not show yet: a broker that is being fenced may not lead
any more though the image still has it unfenced, and the other way round. The caller adds its own record of the event. Who is
elected, from the ISR, the ELR or uncleanly, is decided in `leader_election.py`.

Always true: one look at every partition, and a record only for those that change; a replica that can't serve is in no ISR
afterwards, except, while ELR is off, as the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping

from strandline.controller.election_policy import ElectionPolicy
from strandline.controller.leader_election import active_brokers
from strandline.controller.partition_change import AS_IT_IS, PartitionTarget, addressed, change, likeness
from strandline.ids import Uuid
from strandline.metadata.image import (
    MetadataImage,
    PartitionImage,
)
from strandline.metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord

# Brokers and log dirs that go


def broker_fenced(image: MetadataImage, broker_id: int, policy: ElectionPolicy) -> list[PartitionChangeRecord]:
    """It leaves every ISR, and whatever it leads (rule B13)."""
    return _leaves(image, broker_id, policy, lambda partition: broker_id in partition.isr)


def broker_shutting_down(image: MetadataImage, broker_id: int, policy: ElectionPolicy) -> list[PartitionChangeRecord]:
    """The same, while it can still serve: leaders move first (B14)."""
    return broker_fenced(image, broker_id, policy)


def broker_uncleanly_restarted(
    image: MetadataImage, broker_id: int, policy: ElectionPolicy
) -> list[PartitionChangeRecord]:
    """It may have lost what was not synced: it is not eligible either (B10). Without ELR there is no such set to leave."""
    if not policy.elr_enabled:
        return broker_fenced(image, broker_id, policy)
    return broker_unregistered(image, broker_id, policy)


def broker_unregistered(image: MetadataImage, broker_id: int, policy: ElectionPolicy) -> list[PartitionChangeRecord]:
    """It leaves every ISR and ELR."""
    return _leaves(
        image, broker_id, policy, lambda partition: broker_id in partition.isr or broker_id in partition.elr, lost=True
    )


def dirs_offline(
    image: MetadataImage, broker_id: int, directories: Collection[Uuid], policy: ElectionPolicy
) -> list[PartitionChangeRecord]:
    """It leaves the ISRs of the partitions that it has in these log dirs."""

    def concerned(partition: PartitionImage) -> bool:
        if broker_id not in partition.isr or not partition.directories:
            return False
        return partition.directories[partition.replicas.index(broker_id)] in directories

    return _leaves(image, broker_id, policy, concerned)


def _leaves(
    image: MetadataImage,
    broker_id: int,
    policy: ElectionPolicy,
    concerned: Callable[[PartitionImage], bool],
    *,
    lost: bool = False,
) -> list[PartitionChangeRecord]:
    def target(partition: PartitionImage) -> PartitionTarget:
        isr = tuple(replica for replica in partition.isr if replica != broker_id)
        return PartitionTarget(isr=isr, lost=(broker_id,) if lost else ())

    return _changes(image, policy, active_brokers(image, but=broker_id), concerned, target)


# Partitions without a leader


def broker_unfenced(image: MetadataImage, broker_id: int, policy: ElectionPolicy) -> list[PartitionChangeRecord]:
    """The broker may lead the partitions that have no leader."""
    active = active_brokers(image)
    if not image.brokers[broker_id].in_controlled_shutdown:
        active[broker_id] = image.brokers[broker_id].log_dirs
    return _changes(image, policy, active, _is_leaderless, _as_it_is)


def unclean_elections(image: MetadataImage, policy: ElectionPolicy) -> list[PartitionChangeRecord]:
    """Partitions without a leader whose topic allows it get any active replica (B9). Looked at periodically, because the topic's
    configuration may change."""
    records = _changes(image, policy, active_brokers(image), _is_leaderless, _as_it_is)
    return [record for record in records if record.leader != NO_LEADER_CHANGE]


def _is_leaderless(partition: PartitionImage) -> bool:
    return partition.leader == NO_LEADER


def _as_it_is(partition: PartitionImage) -> PartitionTarget:
    return AS_IT_IS


def _changes(
    image: MetadataImage,
    policy: ElectionPolicy,
    active: Mapping[int, tuple[Uuid, ...]],
    concerned: Callable[[PartitionImage], bool],
    target: Callable[[PartitionImage], PartitionTarget],
) -> list[PartitionChangeRecord]:
    records = []
    known: dict[Hashable, PartitionChangeRecord | None] = {}
    for topic in image.topics.values():
        terms = None
        for index, partition in enumerate(topic.partitions):
            if concerned(partition):
                terms = terms or policy.terms(topic.name, active)
                alike = (terms.min_isr, terms.election, likeness(partition))
                if alike not in known:
                    known[alike] = change(topic.topic_id, index, partition, target(partition), terms)
                record = known[alike]
                if record is not None:
                    records.append(addressed(record, topic.topic_id, index))
    return records
