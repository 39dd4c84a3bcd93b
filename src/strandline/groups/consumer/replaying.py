"""Records of groups of the consumer protocol (types 3-8 and 16) as they are appended or read back, and what begins after that.

Always true: a group is there from its first record on until the tombstone of its epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.groups.consumer import fencing
from strandline.groups.consumer.applying import apply
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.outcome import Moment
from strandline.groups.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    CoordinatorRecord,
)

if TYPE_CHECKING:
    from strandline.groups.shard import Shard

KEYS = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)
"""Of the records that are ours."""


def replay(shard: Shard, record: CoordinatorRecord) -> None:
    """A record of ours that was appended, or is read back."""
    key = record.key
    assert isinstance(key, KEYS)
    group = shard.groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        # A classic group of this id is no more than its offsets: had it been more, its tombstone would have come before.
        if record.value is None:
            return
        group = shard.groups[key.group_id] = ConsumerGroup(key.group_id)
    if isinstance(key, ConsumerGroupMetadataKey) and record.value is None:
        del shard.groups[key.group_id]
    else:
        apply(group, record)


def loaded(shard: Shard, at: Moment) -> None:
    """Everything was read back: every member has its session's time to be heard from, or to let go."""
    for group in shard.groups.values():
        if isinstance(group, ConsumerGroup):
            for member in group.members.values():
                fencing.begin_session(shard, group.group_id, member, at)
                fencing.watch_revocation(shard, group.group_id, member, at)
