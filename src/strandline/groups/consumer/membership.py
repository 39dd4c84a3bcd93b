"""Which member a request is from: a new one, one that is known, or a static one that takes the place of its former
self.

Always true: a member other than a joining one is known by its id and is in its epoch, or in the one before, whose
answer may have been lost; an instance id has one member at a time.
"""

from __future__ import annotations

from dataclasses import replace

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_draft import GroupDraft
from strandline.groups.consumer.group_records import assignment_record, member_record, member_tombstones, target_record
from strandline.groups.consumer.member import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroupMember,
    OwnedPartitions,
    PartitionEpochs,
)


def check_size(group: ConsumerGroup, member_id: str, instance_id: str | None, members_max: int) -> None:
    """GROUP_MAX_SIZE_REACHED for one more member than there may be; a static member that comes back is none."""
    if instance_id is not None and instance_id in group.static_members:
        return
    if len(group.members) >= members_max and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {members_max} members.",
        )


def dynamic_member(group: ConsumerGroup, member_id: str, *, joining: bool) -> ConsumerGroupMember:
    """The member of this id, or a new one if it may join."""
    if joining and member_id not in group.members:
        return ConsumerGroupMember(member_id)
    return group.member(member_id)


def static_member(
    draft: GroupDraft, member_id: str, instance_id: str, *, joining: bool, classic: bool = False
) -> ConsumerGroupMember:
    """The member of this instance id; if it is joining, it takes the place of the one that was there and has left for a
    while.

    A classic member takes it in any case, as does a member that speaks the consumer protocol from a classic one.
    """
    group = draft.group
    existing = group.static_member(instance_id)
    if not joining:
        if existing is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        check_instance(existing, member_id, instance_id)
        return existing
    if existing is None:
        return dynamic_member(group, member_id, joining=True)
    if existing.member_id == member_id and existing.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        # The same process again: the answer to its first request was lost, or it was fenced by epoch.
        return existing
    if not classic and not existing.uses_classic_protocol and existing.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is owned by "
            f"{existing.member_id} member.",
        )
    successor = replace(
        existing,
        member_id=member_id,
        member_epoch=JOIN_GROUP_MEMBER_EPOCH,
        previous_member_epoch=JOIN_GROUP_MEMBER_EPOCH,
    )
    target = group.target_assignment.get(existing.member_id, {})
    draft.add(
        *member_tombstones(group.group_id, existing.member_id),
        member_record(group.group_id, successor),
        target_record(group.group_id, member_id, target),
        assignment_record(group.group_id, successor),
    )
    return successor


def check_instance(member: ConsumerGroupMember, member_id: str, instance_id: str) -> None:
    """FENCED_INSTANCE_ID for one whose place was taken."""
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )


def check_epoch(member: ConsumerGroupMember, member_epoch: int, owned: OwnedPartitions | None) -> None:
    """FENCED_MEMBER_EPOCH unless it is the member's epoch,
    or the one before and it has no more than it was given since.
    """
    if member_epoch in (JOIN_GROUP_MEMBER_EPOCH, member.member_epoch):
        return
    if member_epoch > member.member_epoch:
        comparison = "greater"
    elif member_epoch == member.previous_member_epoch and _is_subset(owned, member.assigned_partitions):
        return
    else:
        comparison = "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {comparison} member epoch ({member_epoch}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _is_subset(owned: OwnedPartitions | None, assigned: PartitionEpochs) -> bool:
    return owned is not None and all(
        topic_id in assigned and partitions <= assigned[topic_id].keys() for topic_id, partitions in owned.items()
    )
