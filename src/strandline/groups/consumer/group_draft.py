"""A change of a group that is being worked out: the records so far, and the group as they would leave it.

Always true: the group itself is not touched; it changes when the records are replayed, if they are.
"""

from __future__ import annotations

from strandline.coordinator.record import CoordinatorRecord
from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.consumer.replay import apply
from strandline.groups.records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue


class GroupDraft:
    def __init__(self, group: ConsumerGroup) -> None:
        self.origin = group
        """As it is; a group that isn't there yet is an empty one."""
        self.group = group
        """As the records would leave it. Most heartbeats change nothing, and cost no copy."""
        self.records: list[CoordinatorRecord] = []

    def add(self, *records: CoordinatorRecord) -> None:
        """Records of other groups' kinds may be among them: they change nothing here."""
        for record in records:
            if self.group is self.origin:
                self.group = self.origin.copy()
            apply(self.group, record)
            self.records.append(record)

    def bump(self, metadata_hash: int) -> None:
        """To the next group epoch: the target assignment has to be made anew."""
        key = ConsumerGroupMetadataKey(group_id=self.group.group_id)
        value = ConsumerGroupMetadataValue(epoch=self.group.group_epoch + 1, metadata_hash=metadata_hash)
        self.add(CoordinatorRecord(key, value))

    def refused(self) -> None:
        """Nothing of it was written: what was refreshed with it has to be refreshed again."""
        self.origin.metadata_refresh_requested = True
        self.origin.regex_refresh_requested = True
        self.origin.regex_refreshed_s = float("-inf")
