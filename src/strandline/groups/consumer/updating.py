"""The three parts of a heartbeat that brings something new: the subscription, the target assignment, the member's next step.

    changed = subscribe(shard, draft, old, new, at)
    assign(shard, draft, at)
    member = advance(shard, draft, new.member_id, owned, changed, at)

Always true: the group epoch grows if the topics that the group wants, or what is known of them, or its assignor changed; the
target assignment is that of the group epoch, or an older one that may not be replaced yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.groups import assignors
from strandline.groups.consumer import fencing, patterns
from strandline.groups.consumer.drafting import Draft
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.hashing import metadata_hash
from strandline.groups.consumer.member import Member, Owned
from strandline.groups.consumer.reconciling import Target, reconcile
from strandline.groups.consumer.records_of import assignment_record, member_record
from strandline.groups.consumer.targeting import may_compute, target_records
from strandline.groups.consumer.tombstones import subscription_metadata_tombstone
from strandline.groups.outcome import Moment

if TYPE_CHECKING:
    from strandline.groups.shard import Shard


def subscribe(shard: Shard, draft: Draft, old: Member, new: Member, at: Moment) -> bool:
    """Take the member as it is now, and give the group its next epoch if that calls for one. Whether its topics changed."""
    group_id, image = draft.group.group_id, shard.surroundings.image
    assignor_before = assignor_name(shard, draft.group)
    if draft.group.members.get(new.member_id) != new:
        draft.add(member_record(group_id, new))
    patterns_changed = patterns.update(shard, draft, old, new, at)
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


def assign(shard: Shard, draft: Draft, at: Moment) -> None:
    """Bring the target assignment to the group's epoch, if the assignment interval allows."""
    group = draft.group
    interval_ms = shard.surroundings.group_config(group.group_id).assignment_interval_ms
    if group.assignment_epoch < group.group_epoch and may_compute(group, interval_ms, at.wall_ms):
        draft.add(*target_records(group, assignor_name(shard, group), shard.surroundings.image, at.wall_ms))


def advance(
    shard: Shard, draft: Draft, member_id: str, owned: Owned | None, subscription_changed: bool, at: Moment
) -> Member:
    """The member after its next step towards its target."""
    group = draft.group
    member = group.members[member_id]
    advanced = reconcile(
        member,
        Target(group.assignment_epoch, group.target_assignment.get(member_id, {})),
        subscribed_topic_ids=group.subscribed_topic_ids(member, shard.surroundings.image),
        owner=group.owner,
        owned=owned,
        subscription_changed=subscription_changed,
    )
    if advanced is not member:
        draft.add(assignment_record(group.group_id, advanced))
        fencing.watch_revocation(shard, group.group_id, advanced, at)
    return advanced


def assignor_name(shard: Shard, group: ConsumerGroup) -> str:
    """What most members ask for; the default if they don't, or if it is no longer served."""
    default = shard.surroundings.config.group_consumer_assignors[0]
    preferred = group.preferred_server_assignor(default)
    return preferred if preferred in assignors.names() else default
