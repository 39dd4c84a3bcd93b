"""C13: in one generation, or member epoch, a partition belongs to one member, in the answers to members and in the
memory of coordinators."""

from __future__ import annotations

from strandline.groups.consumer.group import ConsumerGroup
from strandline.groups.shard import GroupShard
from strandline.histories.groups.observation import GroupJudge, GroupObservation, ReportedAssignment
from strandline.histories.quorum_observation import Violation
from strandline.histories.replica_observation import Key


class TwoOwners(GroupJudge):
    def __init__(self) -> None:
        self._owners: dict[tuple[int, Key], str] = {}
        """By generation and partition."""

    def assigned(self, observed: GroupObservation, assignment: ReportedAssignment) -> None:
        for key in assignment.keys:
            first = self._owners.setdefault((assignment.generation, key), assignment.who)
            if first != assignment.who:
                raise Violation(
                    f"assigns {observed.name(key)} to {assignment.who} in generation {assignment.generation}; "
                    f"{first} has it"
                )

    def deleted(self, observed: GroupObservation) -> None:
        self._owners.clear()

    def shard_changed(self, observed: GroupObservation, node_id: int, shard: GroupShard) -> None:
        for group in shard.groups.values():
            if not isinstance(group, ConsumerGroup):
                continue
            owners: dict[Key, str] = {}
            for member in group.members.values():
                for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
                    for topic_id, indexes in partitions.items():
                        for index in indexes:
                            first = owners.setdefault((topic_id, index), member.member_id)
                            if first != member.member_id:
                                name = observed.name((topic_id, index))
                                raise Violation(f"has given {name} to {member.member_id} and to {first}")
