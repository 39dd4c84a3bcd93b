"""The consumer protocol that is embedded in a classic group: each member's subscription and assignment as bytes.

The coordinator does not look inside. Both begin with a version (int16); what a newer version adds comes after what we
know, so it is read as the newest that we know.

Always true: bytes that are no subscription or assignment raise MalformedRequest and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from strandline.ids import TopicPartition
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

SUBSCRIPTION, ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"
NO_GENERATION = -1


class Subscription(NamedTuple):
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION
    """In which it owned them; since version 2."""
    user_data: bytes | None = None
    group_instance_id: str | None = None
    """Not inside the bytes: the coordinator sends it beside them."""


def encode_subscription(subscription: Subscription) -> bytes:
    Message = messages.data(SUBSCRIPTION)
    message = Message(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=by_topic(subscription.owned, Message.TopicPartition),
        generation_id=subscription.generation,
    )
    return _encode(SUBSCRIPTION, message)


def decode_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    message = _decode(SUBSCRIPTION, data)
    return Subscription(
        frozenset(message.topics),
        frozenset(flat(message.owned_partitions)),
        message.generation_id,
        message.user_data,
        group_instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    Message = messages.data(ASSIGNMENT)
    return _encode(ASSIGNMENT, Message(assigned_partitions=by_topic(partitions, Message.TopicPartition)))


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """No bytes at all are no partitions: a leader that left a member out."""
    return flat(_decode(ASSIGNMENT, data).assigned_partitions) if data else []


def by_topic(partitions: Iterable[TopicPartition], make: Any) -> list[Any]:
    entries: dict[str, Any] = {}
    for topic, partition in sorted(partitions):
        entries.setdefault(topic, make(topic=topic, partitions=[])).partitions.append(partition)
    return list(entries.values())


def flat(entries: Iterable[Any]) -> list[TopicPartition]:
    return [(entry.topic, partition) for entry in entries for partition in entry.partitions]


def _encode(name: str, message: Any) -> bytes:
    version = messages.data_family(name).versions[-1]
    return struct.pack(">h", version) + messages.encode_data(name, version, message)


def _decode(name: str, data: bytes) -> Any:
    if len(data) < 2:
        raise MalformedRequest(f"{name} of {len(data)} bytes has no version")
    (version,) = struct.unpack_from(">h", data)
    if version < 0:
        raise MalformedRequest(f"{name} of version {version}")
    return messages.decode_data(name, min(version, messages.data_family(name).versions[-1]), data, 2)
