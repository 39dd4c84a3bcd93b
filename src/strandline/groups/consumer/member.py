"""A member of a group of the consumer protocol: what it wants, what it has, how far it has come.

Always true: a member never changes; a record makes the next one. It is responsible for `assigned_partitions` and for
`partitions_pending_revocation` alike: no other member is given one of them until it has released it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from strandline.groups.records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    TopicPartitions,
)
from strandline.ids import Uuid

JOIN_GROUP_MEMBER_EPOCH = 0
LEAVE_GROUP_MEMBER_EPOCH = -1
LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2
"""A static member that is away, and may come back as it was while its session lasts."""

PartitionEpochs = Mapping[Uuid, Mapping[int, int]]
"""Topic id -> partition -> the epoch in which it was assigned. No topic is without partitions."""
OwnedPartitions = Mapping[Uuid, frozenset[int]]
"""Topic id -> partitions."""


class ConsumerGroupMemberState(enum.IntEnum):
    STABLE = 0
    """It has what its target says."""
    UNREVOKED_PARTITIONS = 1
    """It has to let go of partitions before it gets to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is in its target's epoch, but some of its partitions are still with others."""
    UNKNOWN = 127
    """Written by a newer version that has more states."""

    @classmethod
    def _missing_(cls, value: object) -> ConsumerGroupMemberState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    member_id: str
    member_epoch: int = JOIN_GROUP_MEMBER_EPOCH
    previous_member_epoch: int = -1
    state: ConsumerGroupMemberState = ConsumerGroupMemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    """Empty: it has none."""
    server_assignor_name: str | None = None
    assigned_partitions: PartitionEpochs = field(default_factory=dict)
    partitions_pending_revocation: PartitionEpochs = field(default_factory=dict)
    classic_member_metadata: ClassicMemberMetadata | None = None
    """None: it speaks the consumer protocol."""

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic_member_metadata is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is ConsumerGroupMemberState.STABLE and self.member_epoch == target_epoch

    def is_responsible_for(self, topic_id: Uuid, partition: int) -> bool:
        return self.assignment_epoch(topic_id, partition) is not None

    def assignment_epoch(self, topic_id: Uuid, partition: int) -> int | None:
        """The epoch in which it was given this partition, if it is responsible for it."""
        for partitions in (self.assigned_partitions, self.partitions_pending_revocation):
            if topic_id in partitions and partition in partitions[topic_id]:
                return partitions[topic_id][partition]
        return None

    def moved_to(
        self,
        member_epoch: int,
        state: ConsumerGroupMemberState,
        assigned: PartitionEpochs,
        pending_revocation: PartitionEpochs,
    ) -> ConsumerGroupMember:
        """The member after a step of its reconciliation."""
        return replace(
            self,
            member_epoch=member_epoch,
            previous_member_epoch=self.member_epoch,
            state=state,
            assigned_partitions=assigned,
            partitions_pending_revocation=pending_revocation,
        )

    # Records

    def metadata_value(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=tuple(sorted(self.subscribed_topic_names)),
            subscribed_topic_regex=self.subscribed_topic_regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.server_assignor_name,
            classic_member_metadata=self.classic_member_metadata,
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerGroupMember:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor_name=value.server_assignor,
            classic_member_metadata=value.classic_member_metadata,
        )

    def assignment_value(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.member_epoch,
            previous_member_epoch=self.previous_member_epoch,
            state=int(self.state),
            assigned_partitions=_written(self.assigned_partitions),
            partitions_pending_revocation=_written(self.partitions_pending_revocation),
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupMember:
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=ConsumerGroupMemberState(value.state),
            assigned_partitions=_read(value.assigned_partitions, value.member_epoch),
            partitions_pending_revocation=_read(value.partitions_pending_revocation, value.member_epoch),
        )

    def without_assignment(self) -> ConsumerGroupMember:
        """As the tombstone of its assignment leaves it, just before its metadata's removes it."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
            previous_member_epoch=LEAVE_GROUP_MEMBER_EPOCH,
            assigned_partitions={},
            partitions_pending_revocation={},
        )


def _written(partitions: PartitionEpochs) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(
            topic_id=topic_id,
            partitions=tuple(sorted(epochs)),
            assignment_epochs=tuple(epochs[partition] for partition in sorted(epochs)),
        )
        for topic_id, epochs in sorted(partitions.items())
    )


def _read(written: tuple[TopicPartitions, ...], member_epoch: int) -> PartitionEpochs:
    """Versions before 4.3 wrote no assignment epochs: the member's stands for them."""
    read: dict[Uuid, Mapping[int, int]] = {}
    for topic in written:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (max(member_epoch, 0),) * len(topic.partitions)
        if topic.partitions:
            read[Uuid(topic.topic_id)] = dict(zip(topic.partitions, epochs, strict=True))
    return read
