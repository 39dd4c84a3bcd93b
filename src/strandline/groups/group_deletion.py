"""DeleteGroups: a group that has no members goes, with its offsets.

Always true: either everything of the group is removed, by records of one batch, or nothing is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Moment
from strandline.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard


def delete(shard: GroupShard, group_id: str, at: Moment) -> list[CoordinatorRecord]:
    """The records that remove it; KafkaError (GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP) if it may not be."""
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.validate_delete()
    return [*(CoordinatorRecord(key, None) for key in shard.offsets.keys(group_id)), *group.tombstones()]
