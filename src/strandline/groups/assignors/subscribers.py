"""Who subscribes to what: the members of each topic, in one order.

Always true: every topic here exists and has a subscriber; topics with the same subscribers share one tuple of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.groups.assignors.spec import GroupSpec
from strandline.ids import Uuid


def subscribers(spec: GroupSpec, ordered: Sequence[str]) -> dict[Uuid, tuple[str, ...]]:
    """The subscribers of each topic in the order of `ordered`, topics by id. A topic that doesn't exist is left out."""
    by_subscription: dict[frozenset[Uuid], list[int]] = {}
    for position, member_id in enumerate(ordered):
        by_subscription.setdefault(spec.members[member_id].subscribed_topic_ids, []).append(position)
    # Members mostly subscribe alike, so that a few kinds of subscription stand for thousands of members.
    kinds = list(by_subscription.items())
    kinds_of_topic: dict[Uuid, list[int]] = {}
    for kind, (topic_ids, _) in enumerate(kinds):
        for topic_id in topic_ids:
            if topic_id in spec.topics:
                kinds_of_topic.setdefault(topic_id, []).append(kind)
    shared: dict[tuple[int, ...], tuple[str, ...]] = {}
    found: dict[Uuid, tuple[str, ...]] = {}
    for topic_id in sorted(kinds_of_topic):
        key = tuple(kinds_of_topic[topic_id])
        if key not in shared:
            positions = sorted(position for kind in key for position in kinds[kind][1])
            shared[key] = tuple(ordered[position] for position in positions)
        found[topic_id] = shared[key]
    return found
