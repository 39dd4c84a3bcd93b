"""The range assignor: each topic's partitions in ranges, one after the other, over its subscribers.

Always true: the subscribers of a topic differ by one partition at most, the first ones having more; topics with the
same subscribers and as many partitions give each member the same ones (they are co-partitioned). Nothing is remembered:
it is sticky as far as the order of the members is, which is why static members, who come back under their name, go
first.
"""

from __future__ import annotations

from strandline.groups.assignors.spec import Assignment, GroupSpec
from strandline.groups.assignors.subscribers import subscribers


class RangeAssignor:
    name = "range"

    def assign(self, spec: GroupSpec) -> Assignment:
        assignment: Assignment = {member_id: {} for member_id in spec.members}
        for topic_id, members in subscribers(spec, _ordered(spec)).items():
            partitions = spec.topics[topic_id].partitions
            quota, extra = divmod(partitions, len(members))
            start = 0
            for position, member_id in enumerate(members[:partitions]):
                end = start + quota + (position < extra)
                assignment[member_id][topic_id] = frozenset(range(start, end))
                start = end
        return assignment


def _ordered(spec: GroupSpec) -> list[str]:
    """Static members by instance id, then the others by member id."""

    def key(member_id: str) -> tuple[bool, str, str]:
        instance_id = spec.members[member_id].instance_id
        return instance_id is None, instance_id or "", member_id

    return sorted(spec.members, key=key)
