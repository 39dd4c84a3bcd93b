"""The consumer protocol that is embedded in a classic group: each member's subscription and assignment as bytes.

The coordinator does not look inside. Both begin with a version (int16); what a newer version adds comes after what we
know, so it is read as the newest that we know.

Always true: bytes that are no subscription or assignment raise MalformedRequest and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from strandline.client.core.by_topic import by_topic
from strandline.ids import TopicPartition
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest
from strandline.wire.message import Message

if TYPE_CHECKING:
    from strandline.wire.stubs.data import ConsumerProtocolAssignment, ConsumerProtocolSubscription

SUBSCRIPTION: Final = "ConsumerProtocolSubscription"
ASSIGNMENT: Final = "ConsumerProtocolAssignment"
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
        owned_partitions=[
            Message.TopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(sorted(subscription.owned)).items()
        ],
        generation_id=subscription.generation,
    )
    return _encode(SUBSCRIPTION, message)


def decode_subscription(data: bytes, group_instance_id: str | None = None) -> Subscription:
    message = messages.decode_data(SUBSCRIPTION, _version(SUBSCRIPTION, data), data, 2)
    return Subscription(
        frozenset(message.topics),
        frozenset(flat(message.owned_partitions)),
        message.generation_id,
        message.user_data,
        group_instance_id,
    )


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    Message = messages.data(ASSIGNMENT)
    assigned = [
        Message.TopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(sorted(partitions)).items()
    ]
    return _encode(ASSIGNMENT, Message(assigned_partitions=assigned))


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """No bytes at all are no partitions: a leader that left a member out."""
    if not data:
        return []
    return flat(messages.decode_data(ASSIGNMENT, _version(ASSIGNMENT, data), data, 2).assigned_partitions)


def flat(
    entries: Iterable[ConsumerProtocolAssignment.TopicPartition | ConsumerProtocolSubscription.TopicPartition],
) -> list[TopicPartition]:
    return [(entry.topic, partition) for entry in entries for partition in entry.partitions]


def _encode(name: str, message: Message) -> bytes:
    version = messages.data_family(name).versions[-1]
    return struct.pack(">h", version) + messages.encode_data(name, version, message)


def _version(name: str, data: bytes) -> int:
    """In which to read them."""
    if len(data) < 2:
        raise MalformedRequest(f"{name} of {len(data)} bytes has no version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise MalformedRequest(f"{name} of version {version}")
    return min(version, messages.data_family(name).versions[-1])
