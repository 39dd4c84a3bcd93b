"""A rebalance of a group of the consumer protocol (KIP-848), in the three steps of a heartbeat: the subscription (a new
group epoch), the target assignment (a new assignment epoch), the member's reconciliation (a new member epoch). Classic
groups are rebalanced in `groups/classic/rebalance.py`.

    changed = subscribe(shard, draft, old, new, at)
    assign(shard, draft, at)
    member = advance(shard, draft, new.member_id, owned, changed, at)

Always true: the group epoch grows if the topics that the group wants, or what is known of them, or its assignor
changed; the target assignment is that of the group epoch, or an older one that may not be replaced yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.coordinator.result import Moment
from strandline.groups import assignors
from strandline.groups.consumer import member_fencing, subscription_patterns
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.group_draft import GroupDraft
from strandline.groups.consumer.group_records import assignment_record, member_record, subscription_metadata_tombstone
from strandline.groups.consumer.member import ConsumerGroupMember, OwnedPartitions
from strandline.groups.consumer.metadata_hash import metadata_hash
from strandline.groups.consumer.reconciliation import MemberTarget, reconcile
from strandline.groups.consumer.target_assignment import may_compute, target_records

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard


def subscribe(
    shard: GroupShard, draft: GroupDraft, old: ConsumerGroupMember, new: ConsumerGroupMember, at: Moment
) -> bool:
    """Take the member as it is now, and give the group its next epoch if that calls for one.
    Whether its topics changed.
    """
    group_id, image = draft.group.group_id, shard.dependencies.image
    assignor_before = assignor_name(shard, draft.group)
    if draft.group.members.get(new.member_id) != new:
        draft.add(member_record(group_id, new))
    patterns_changed = subscription_patterns.update(shard, draft, old, new, at)
    subscription_changed = (
        new.subscribed_topic_names != old.subscribed_topic_names
        or new.subscribed_topic_regex != old.subscribed_topic_regex
    )
    bump = subscription_changed or patterns_changed or assignor_name(shard, draft.group) != assignor_before
    if bump or draft.origin.metadata_refresh_requested:
        hashed = metadata_hash(draft.group.subscribed_topic_names, image)
        if bump or hashed != draft.group.metadata_hash:
            draft.bump(hashed)
        if draft.group.has_subscription_metadata_record:
            draft.add(subscription_metadata_tombstone(group_id))
        draft.origin.metadata_refresh_requested = False
    return subscription_changed


def assign(shard: GroupShard, draft: GroupDraft, at: Moment) -> None:
    """Bring the target assignment to the group's epoch, if the assignment interval allows."""
    group = draft.group
    interval_ms = shard.dependencies.group_config(group.group_id).assignment_interval_ms
    if group.assignment_epoch < group.group_epoch and may_compute(group, interval_ms, at.wall_ms):
        draft.add(*target_records(group, assignor_name(shard, group), shard.dependencies.image, at.wall_ms))


def advance(
    shard: GroupShard,
    draft: GroupDraft,
    member_id: str,
    owned: OwnedPartitions | None,
    subscription_changed: bool,
    at: Moment,
) -> ConsumerGroupMember:
    """The member after its next step towards its target."""
    group = draft.group
    member = group.members[member_id]
    advanced = reconcile(
        member,
        MemberTarget(group.assignment_epoch, group.target_assignment.get(member_id, {})),
        subscribed_topic_ids=group.subscribed_topic_ids(member, shard.dependencies.image),
        owner=group.owner,
        owned=owned,
        subscription_changed=subscription_changed,
    )
    if advanced is not member:
        draft.add(assignment_record(group.group_id, advanced))
        member_fencing.watch_revocation(shard, group.group_id, advanced, at)
    return advanced


def assignor_name(shard: GroupShard, group: ConsumerGroup) -> str:
    """What most members ask for; the default if they don't, or if it is no longer served."""
    default = shard.dependencies.config.group_consumer_assignors[0]
    preferred = group.preferred_server_assignor(default)
    return preferred if preferred in assignors.names() else default
