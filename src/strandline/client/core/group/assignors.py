"""Who gets which partition, as the leader of a classic group decides it: range, roundrobin, sticky, cooperative-sticky.

Members are put in Kafka's order: static ones by their instance id first, then the others by member id.

Always true: every partition of a topic that a member subscribed to goes to exactly one of its subscribers; only under
cooperative-sticky a partition whose owner is to give it up goes to no member yet, because it is still owned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from strandline.client.core.group import sticky_assignor
from strandline.client.core.group.subscription import Subscription
from strandline.ids import TopicPartition

Subscriptions = Mapping[str, Subscription]
"""By member id."""
Counts = Mapping[str, int]
"""Partitions of each topic that exists."""
Assigned = dict[str, list[TopicPartition]]


class ClientAssignor(NamedTuple):
    name: str
    assign: Callable[[Counts, Subscriptions], Assigned]
    is_cooperative: bool = False
    """Members may keep what they own while they rejoin."""
    user_data: Callable[[Iterable[TopicPartition], int], bytes | None] = lambda owned, generation: None
    """The user data of a member's subscription: the partitions that it had, and in which generation."""


def assign_range(counts: Counts, subscriptions: Subscriptions) -> Assigned:
    """Of each topic a run of neighbours; the first members get one more where it does not divide."""
    assigned: Assigned = {member_id: [] for member_id in subscriptions}
    for topic in _topics(counts, subscriptions):
        members = [m for m in _in_order(subscriptions) if topic in subscriptions[m].topics]
        each, more = divmod(counts[topic], len(members))
        first = 0
        for position, member_id in enumerate(members):
            after = first + each + (position < more)
            assigned[member_id] += [(topic, partition) for partition in range(first, after)]
            first = after
    return assigned


def assign_roundrobin(counts: Counts, subscriptions: Subscriptions) -> Assigned:
    """One partition after another to one member after another."""
    assigned: Assigned = {member_id: [] for member_id in subscriptions}
    members = _in_order(subscriptions)
    turn = 0
    for topic in _topics(counts, subscriptions):
        for partition in range(counts[topic]):
            while topic not in subscriptions[members[turn]].topics:
                turn = (turn + 1) % len(members)
            assigned[members[turn]].append((topic, partition))
            turn = (turn + 1) % len(members)
    return assigned


def assign_sticky(counts: Counts, subscriptions: Subscriptions) -> Assigned:
    """As even as it can be, and beyond that as it was."""
    owners = sticky_assignor.owners(subscriptions, sticky_assignor.previous)
    return sticky_assignor.balance(counts, subscriptions, _in_order(subscriptions), owners)


def assign_cooperative_sticky(counts: Counts, subscriptions: Subscriptions) -> Assigned:
    """As sticky, but what moves is first only taken away: its owner gives it up and rejoins, then it is given."""
    owners = sticky_assignor.owners(subscriptions, sticky_assignor.owned)
    assigned = sticky_assignor.balance(counts, subscriptions, _in_order(subscriptions), owners)
    return {
        member_id: [key for key in partitions if owners.get(key, member_id) == member_id]
        for member_id, partitions in assigned.items()
    }


def _topics(counts: Counts, subscriptions: Subscriptions) -> list[str]:
    wanted = {topic for subscription in subscriptions.values() for topic in subscription.topics}
    return sorted(topic for topic in wanted if counts.get(topic))


def _in_order(subscriptions: Subscriptions) -> list[str]:
    def order(member_id: str) -> tuple[bool, str]:
        instance_id = subscriptions[member_id].group_instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    return sorted(subscriptions, key=order)


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        ClientAssignor("range", assign_range),
        ClientAssignor("roundrobin", assign_roundrobin),
        ClientAssignor("sticky", assign_sticky, user_data=sticky_assignor.encode_previous),
        ClientAssignor("cooperative-sticky", assign_cooperative_sticky, True, sticky_assignor.encode_generation),
    )
}


def is_cooperative(strategies: Iterable[str]) -> bool:
    """Members keep their partitions through a rebalance only if whichever strategy is agreed on can take that."""
    return all(ASSIGNORS[name].is_cooperative for name in strategies)
