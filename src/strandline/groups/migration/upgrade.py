"""Upgrade: a classic group becomes one of the consumer protocol when a member of that protocol joins it.

Its members stay, with what they were last assigned, as members that speak the classic protocol (`classic_members.py`):
their generation is their member epoch, and the coordinator assigns partitions to them from now on. Those who wait for a
rebalance of the classic group are answered REBALANCE_IN_PROGRESS as the tombstone of the classic group is replayed.

A group may be upgraded in the midst of a rebalance. What a member said it owns when it joined, and is not assigned
again, it may still have: it has to join without it before anybody gets it.

Always true: no partition has two owners after it; a group whose assignments only its own assignor understands is left
as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode, KafkaError
from strandline.groups.classic.group import STABLE, ClassicGroup
from strandline.groups.classic.member import ClassicMember
from strandline.groups.consumer import member_fencing
from strandline.groups.consumer.group_records import target_metadata_record, target_record
from strandline.groups.consumer.member import (
    ConsumerGroupMember,
    ConsumerGroupMemberState,
    OwnedPartitions,
    PartitionEpochs,
)
from strandline.groups.consumer.metadata_hash import metadata_hash
from strandline.groups.migration import embedded_protocol
from strandline.groups.migration.policy import policy
from strandline.groups.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

NEVER_ASSIGNED_MS = 0
"""The timestamp of a target that no assignor made: the next one may be computed at once."""


def may_upgrade(shard: GroupShard, group: ClassicGroup) -> None:
    """GROUP_ID_NOT_FOUND if a member of the consumer protocol may not join this group. An empty one is always open."""
    if group.is_empty():
        return
    if not policy(shard.dependencies.config).allows_upgrade:
        raise _refused(group, "online upgrade is disabled")
    if not group.uses_consumer_protocol():
        raise _refused(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > shard.dependencies.config.group_consumer_max_size:
        raise _refused(group, "the group size exceeds the consumer group maximum size")


def upgrade(shard: GroupShard, group: ClassicGroup, at: Moment) -> list[CoordinatorRecord]:
    """The records that make it a group of the consumer protocol; of an empty one nothing remains.
    KafkaError if it may not be.
    """
    may_upgrade(shard, group)
    if group.is_empty():
        return group.tombstones()
    image = shard.dependencies.image
    try:
        members = _members(group, image)
    except MalformedRequest as error:
        raise _refused(group, "the embedded consumer protocol is malformed") from error
    for member in members:
        # Should nothing come of the upgrade, there is no such member, and the timer does nothing.
        member_fencing.begin_session(shard, group.group_id, member, at)
    return group.tombstones() + _records(group, members, image)


def classic_metadata(protocols: Iterable[tuple[str, bytes]], session_timeout_ms: int) -> ClassicMemberMetadata:
    """What a group of the consumer protocol keeps of a member that speaks the classic one."""
    supported = tuple(ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols)
    return ClassicMemberMetadata(session_timeout_ms=session_timeout_ms, supported_protocols=supported)


def _members(group: ClassicGroup, image: MetadataImage) -> list[ConsumerGroupMember]:
    subscriptions = [
        embedded_protocol.subscription_in(member.supported_protocols, image) for member in group.members.values()
    ]
    assignments = [embedded_protocol.assignment(member.assignment, image) for member in group.members.values()]
    if any(assignment.has_user_data for assignment in assignments):
        raise _refused(group, "an unsupported custom assignor is in use")
    taken: set[tuple[Uuid, int]] = set()
    for assignment in assignments:
        mine = _pairs(assignment.partitions)
        if not mine.isdisjoint(taken):
            # An assignor of the client's may do that; a group of the consumer protocol can't.
            raise _refused(group, "a partition is assigned to more than one of its members")
        taken |= mine
    members = []
    for member, subscription, assignment in zip(group.members.values(), subscriptions, assignments, strict=True):
        kept = _pairs(subscription.owned) - taken
        taken |= kept
        members.append(
            _member(group, member, subscription, assignment.partitions, _with_epoch(kept, group.generation_id))
        )
    return members


def _member(
    group: ClassicGroup,
    member: ClassicMember,
    subscription: embedded_protocol.EmbeddedSubscription,
    assigned: embedded_protocol.Partitions,
    pending_revocation: PartitionEpochs,
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member.member_id,
        member_epoch=group.generation_id,
        previous_member_epoch=group.generation_id,
        state=ConsumerGroupMemberState.UNREVOKED_PARTITIONS if pending_revocation else ConsumerGroupMemberState.STABLE,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned_partitions=_with_epoch(_pairs(assigned), group.generation_id),
        partitions_pending_revocation=pending_revocation,
        classic_member_metadata=classic_metadata(member.supported_protocols.items(), member.session_timeout_ms),
    )


def _pairs(partitions: embedded_protocol.Partitions) -> set[tuple[Uuid, int]]:
    return {(topic_id, number) for topic_id, numbers in partitions.items() for number in numbers}


def _with_epoch(pairs: Iterable[tuple[Uuid, int]], epoch: int) -> PartitionEpochs:
    found: dict[Uuid, dict[int, int]] = {}
    for topic_id, number in sorted(pairs):
        found.setdefault(topic_id, {})[number] = epoch
    return found


def _records(group: ClassicGroup, members: list[ConsumerGroupMember], image: MetadataImage) -> list[CoordinatorRecord]:
    group_id, epoch = group.group_id, group.generation_id
    topics = {name for member in members for name in member.subscribed_topic_names}
    # The member that joins may be a static one with its former subscription, which needs no new target; an unfinished
    # rebalance does.
    is_settled = group.state is STABLE and _is_complete(members, topics, image)
    group_epoch = epoch if is_settled else epoch + 1
    group_value = ConsumerGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash(topics, image))
    return [
        *(
            CoordinatorRecord(
                ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), member.metadata_value()
            )
            for member in members
        ),
        CoordinatorRecord(ConsumerGroupMetadataKey(group_id=group_id), group_value),
        *(target_record(group_id, member.member_id, _without_epochs(member)) for member in members),
        target_metadata_record(group_id, epoch, NEVER_ASSIGNED_MS),
        *(
            CoordinatorRecord(
                ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
                member.assignment_value(),
            )
            for member in members
        ),
    ]


def _is_complete(members: list[ConsumerGroupMember], names: Iterable[str], image: MetadataImage) -> bool:
    """Every partition that they want is assigned."""
    assigned = {
        (topic_id, number)
        for member in members
        for topic_id, epochs in member.assigned_partitions.items()
        for number in epochs
    }
    topics = [image.topics[name] for name in names if name in image.topics]
    return all((topic.topic_id, number) in assigned for topic in topics for number in range(len(topic.partitions)))


def _without_epochs(member: ConsumerGroupMember) -> OwnedPartitions:
    return {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned_partitions.items()}


def _refused(group: ClassicGroup, why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    )
