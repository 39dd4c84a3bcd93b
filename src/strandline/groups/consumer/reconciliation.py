"""Reconciliation of one member: the next step from what it has towards what its target says.

    STABLE, behind its target      something to let go   -> UNREVOKED_PARTITIONS, in its old epoch
    UNREVOKED_PARTITIONS           all of it let go      -> as if STABLE and behind
    any, nothing to let go         all partitions free   -> STABLE, in the target's epoch
    any, nothing to let go         some still with others-> UNRELEASED_PARTITIONS, in the target's epoch

Always true: a step gives a member only partitions that no other member is responsible for; a member reaches the
target's epoch only after it let go of everything that the target takes from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from strandline.errors import ErrorCode, KafkaError
from strandline.groups.consumer.member import (
    ConsumerGroupMember,
    ConsumerGroupMemberState,
    OwnedPartitions,
    PartitionEpochs,
)
from strandline.ids import Uuid

PartitionOwner = Callable[[Uuid, int], str | None]
"""The id of the member who is responsible for this partition."""


class MemberTarget(NamedTuple):
    """What a member is to have, and since which epoch."""

    epoch: int
    partitions: OwnedPartitions


def reconcile(
    member: ConsumerGroupMember,
    target: MemberTarget,
    *,
    subscribed_topic_ids: AbstractSet[Uuid],
    owner: PartitionOwner,
    owned: OwnedPartitions | None,
    subscription_changed: bool,
) -> ConsumerGroupMember:
    """The member after its next step; itself if it can't take one.
    `owned` is what it says it has; None: it says nothing.
    """
    if member.is_reconciled_to(target.epoch):
        return _narrowed(member, subscribed_topic_ids, owned) if subscription_changed else member
    if member.state is ConsumerGroupMemberState.UNREVOKED_PARTITIONS and _owns_any(
        owned, member.partitions_pending_revocation
    ):
        return _narrowed(member, subscribed_topic_ids, owned) if subscription_changed else member
    if member.state is ConsumerGroupMemberState.UNKNOWN and (owned is None or owned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return _advanced(member, target, subscribed_topic_ids, owner, owned)


def _advanced(
    member: ConsumerGroupMember,
    target: MemberTarget,
    subscribed_topic_ids: AbstractSet[Uuid],
    owner: PartitionOwner,
    owned: OwnedPartitions | None,
) -> ConsumerGroupMember:
    kept: dict[Uuid, Mapping[int, int]] = {}
    pending_revocation: dict[Uuid, Mapping[int, int]] = {}
    for topic_id, epochs in member.assigned_partitions.items():
        wanted = target.partitions.get(topic_id, frozenset()) if topic_id in subscribed_topic_ids else frozenset()
        if keep := {partition: epoch for partition, epoch in epochs.items() if partition in wanted}:
            kept[topic_id] = keep
        if revoke := {partition: epoch for partition, epoch in epochs.items() if partition not in wanted}:
            pending_revocation[topic_id] = revoke
    if pending_revocation and _owns_any(owned, pending_revocation):
        return member.moved_to(
            member.member_epoch, ConsumerGroupMemberState.UNREVOKED_PARTITIONS, kept, pending_revocation
        )

    unreleased = False
    for topic_id, wanted in target.partitions.items():
        if topic_id not in subscribed_topic_ids:
            continue
        has = kept.get(topic_id, {})
        given: dict[int, int] = {}
        for partition in wanted:
            if partition in has:
                continue
            if owner(topic_id, partition) in (None, member.member_id):
                given[partition] = target.epoch
            else:
                unreleased = True
        if given:
            kept[topic_id] = {**has, **given}
    state = ConsumerGroupMemberState.UNRELEASED_PARTITIONS if unreleased else ConsumerGroupMemberState.STABLE
    if (state, target.epoch, kept) == (member.state, member.member_epoch, member.assigned_partitions):
        return member
    return member.moved_to(target.epoch, state, kept, {})


def _narrowed(
    member: ConsumerGroupMember, subscribed_topic_ids: AbstractSet[Uuid], owned: OwnedPartitions | None
) -> ConsumerGroupMember:
    """Without the topics that it no longer subscribes to, while its next target is not there yet."""
    kept = {
        topic_id: epochs for topic_id, epochs in member.assigned_partitions.items() if topic_id in subscribed_topic_ids
    }
    if len(kept) == len(member.assigned_partitions):
        return member
    pending_revocation: dict[Uuid, Mapping[int, int]] = dict(member.partitions_pending_revocation)
    for topic_id, epochs in member.assigned_partitions.items():
        if topic_id not in kept:
            pending_revocation[topic_id] = {**pending_revocation.get(topic_id, {}), **epochs}
    if _owns_any(owned, pending_revocation):
        return member.moved_to(
            member.member_epoch, ConsumerGroupMemberState.UNREVOKED_PARTITIONS, kept, pending_revocation
        )
    return member.moved_to(member.member_epoch, member.state, kept, member.partitions_pending_revocation)


def _owns_any(owned: OwnedPartitions | None, partitions: PartitionEpochs) -> bool:
    """Whether the member may still have one of these: it does unless it says otherwise."""
    if owned is None:
        return bool(partitions)
    return any(
        not partitions[topic_id].keys().isdisjoint(mine) for topic_id, mine in owned.items() if topic_id in partitions
    )
