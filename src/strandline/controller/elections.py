"""What becomes of partitions when brokers come and go, and elections that are asked for.

Each function returns what follows from one event that the image does not show yet: a broker that is being fenced may not lead
any more though the image still has it unfenced, and the other way round. The caller adds its own record of the event. Who is
elected, from the ISR, the ELR or uncleanly, is decided in `partition_change.py`.

Always true: one look at every partition, and a record only for those that change; a replica that can't serve is in no ISR
afterwards, except, while ELR is off, as the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field

from strandline.config.layers import Layers
from strandline.config.topic import TOPIC
from strandline.config.types import Value
from strandline.controller.partition_change import (
    AS_IT_IS,
    Election,
    PartitionTarget,
    Terms,
    active_brokers,
    addressed,
    change,
    likeness,
)
from strandline.controller.topics import MIN_ISR
from strandline.errors import ErrorCode, KafkaError
from strandline.ids import Uuid
from strandline.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    MetadataImage,
    PartitionImage,
)
from strandline.metadata.records import NO_LEADER, NO_LEADER_CHANGE, PartitionChangeRecord

UNCLEAN_ELECTION = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True)
class ElectionPolicy:
    """What the configuration says about elections."""

    default_min_isr: int = 1
    default_unclean: bool = False
    elr_enabled: bool = False
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    """Overrides, of which those of topics are looked at."""

    def min_isr(self, topic: str) -> int:
        text = self._override(topic, MIN_ISR)
        return self.default_min_isr if text is None else _number(TOPIC[MIN_ISR].parse(text))

    def unclean(self, topic: str) -> bool:
        text = self._override(topic, UNCLEAN_ELECTION)
        return self.default_unclean if text is None else bool(TOPIC[UNCLEAN_ELECTION].parse(text))

    def _override(self, topic: str, name: str) -> str | None:
        overrides = self.configs.get((TOPIC_RESOURCE, topic))
        return None if overrides is None else overrides.get(name)

    def terms(self, topic: str, active: Mapping[int, tuple[Uuid, ...]], election: Election | None = None) -> Terms:
        """What a change of the topic's partitions has to respect. Unless said otherwise, the topic says which election."""
        if election is None:
            election = Election.UNCLEAN if self.unclean(topic) else Election.ONLINE
        return Terms(active, self.min_isr(topic), self.elr_enabled, election)


def policy_of(image: MetadataImage, layers: Layers) -> ElectionPolicy:
    """The policy by this image, on top of a node's own layers. The cluster's dynamic defaults are the image's."""
    layers = Layers(layers.static, image.config(BROKER_RESOURCE, CLUSTER_DEFAULT), layers.dynamic_broker)
    return ElectionPolicy(
        default_min_isr=_number(layers.topic_default(TOPIC[MIN_ISR])),
        default_unclean=bool(layers.topic_default(TOPIC[UNCLEAN_ELECTION])),
        elr_enabled=image.features.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0,
        configs=image.configs,
    )


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value


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


# Elections that are asked for


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
