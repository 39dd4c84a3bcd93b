"""Stickiness: who had which partition, and the most even assignment that moves the fewest of them.

What a member had comes in its subscription: as owned partitions with their generation (cooperative-sticky), or in bytes
of the assignor's own, since a member of an eager group owns nothing when it joins (sticky).

Always true: of two members that claim a partition the one of the later generation had it, and of two of the same
generation neither; a partition moves only from a member that has at least two more than the one that takes it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

from strandline.client.core.group.subscription import NO_GENERATION, Subscription
from strandline.ids import TopicPartition

Claim = tuple[frozenset[TopicPartition], int]
"""Partitions, and the generation in which they were owned."""


def owners(
    subscriptions: Mapping[str, Subscription], claim: Callable[[Subscription], Claim]
) -> dict[TopicPartition, str]:
    claimed: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, subscription in subscriptions.items():
        partitions, generation = claim(subscription)
        for key in partitions:
            before, _ = claimed.get(key, (NO_GENERATION - 1, None))
            if generation >= before:
                claimed[key] = (generation, None if generation == before else member_id)
    return {key: member_id for key, (_, member_id) in claimed.items() if member_id is not None}


def balance(
    counts: Mapping[str, int],
    subscriptions: Mapping[str, Subscription],
    members: Sequence[str],
    owners: Mapping[TopicPartition, str],
) -> dict[str, list[TopicPartition]]:
    """`members` is the order in which equals are served."""
    subscribers = {
        topic: [member_id for member_id in members if topic in subscriptions[member_id].topics]
        for topic in {topic for subscription in subscriptions.values() for topic in subscription.topics}
        if counts.get(topic)
    }
    assigned: dict[str, set[TopicPartition]] = {member_id: set() for member_id in members}
    free: list[TopicPartition] = []
    for topic in subscribers:
        for partition in range(counts[topic]):
            key = (topic, partition)
            owner = owners.get(key)
            if owner is not None and topic in subscriptions[owner].topics:
                assigned[owner].add(key)
            else:
                free.append(key)
    # Those that few may have go first: the others can still even it out.
    free.sort(key=lambda key: (len(subscribers[key[0]]), key))
    for key in free:
        assigned[min(subscribers[key[0]], key=lambda member_id: len(assigned[member_id]))].add(key)
    while _move_one(assigned, subscriptions):
        pass
    return {member_id: sorted(partitions) for member_id, partitions in assigned.items()}


def _move_one(assigned: dict[str, set[TopicPartition]], subscriptions: Mapping[str, Subscription]) -> bool:
    """From the member with the most to the one with the least that may have one of its partitions."""
    by_load = sorted(assigned, key=lambda member_id: len(assigned[member_id]))
    for giver in reversed(by_load):
        for taker in by_load:
            if len(assigned[giver]) - len(assigned[taker]) < 2:
                break
            movable = [key for key in assigned[giver] if key[0] in subscriptions[taker].topics]
            if movable:
                moved = max(movable)
                assigned[giver].remove(moved)
                assigned[taker].add(moved)
                return True
    return False


def owned(subscription: Subscription) -> Claim:
    """Under cooperative-sticky. Before version 2 of the subscription the generation came in bytes of the assignor's
    own.
    """
    generation, data = subscription.generation, subscription.user_data
    if generation == NO_GENERATION and data is not None and len(data) >= 4:
        (generation,) = struct.unpack_from(">i", data)
    return subscription.owned, generation


def encode_generation(_: Iterable[TopicPartition], generation: int) -> bytes:
    return struct.pack(">i", generation)


def previous(subscription: Subscription) -> Claim:
    """Under sticky. Bytes that cannot be read say that it had nothing."""
    data = subscription.user_data
    if data is None:
        return owned(subscription)
    try:
        return _decode_previous(data)
    except (struct.error, UnicodeDecodeError):
        return frozenset(), NO_GENERATION


def encode_previous(partitions: Iterable[TopicPartition], generation: int) -> bytes | None:
    """Topics with their partitions, then the generation. None from a member that has not been assigned anything yet."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        by_topic.setdefault(topic, []).append(partition)
    if not by_topic:
        return None
    parts = [struct.pack(">i", len(by_topic))]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += [struct.pack(">h", len(name)), name, struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    return b"".join([*parts, struct.pack(">i", generation)])


def _decode_previous(data: bytes) -> Claim:
    (topics_count,) = struct.unpack_from(">i", data)
    position = 4
    partitions = []
    for _ in range(topics_count):
        (length,) = struct.unpack_from(">h", data, position)
        topic = data[position + 2 : position + 2 + length].decode()
        position += 2 + length
        (count,) = struct.unpack_from(">i", data, position)
        numbers = struct.unpack_from(f">{max(0, count)}i", data, position + 4)
        position += 4 + 4 * len(numbers)
        partitions += [(topic, number) for number in numbers]
    # The first version had no generation.
    generation = struct.unpack_from(">i", data, position)[0] if position < len(data) else NO_GENERATION
    return frozenset(partitions), generation
