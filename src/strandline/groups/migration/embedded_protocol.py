"""The consumer protocol that is embedded in the classic one: what a consumer subscribes to and owns, what it is
assigned.

Both are bytes to a classic group; here they are read and written, with topic ids instead of names.

Always true: a version that we don't know is read as the newest that we do, as Kafka's clients agreed on;
MalformedRequest means that the bytes are something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from strandline.ids import Uuid
from strandline.metadata.image import MetadataImage
from strandline.wire import messages
from strandline.wire.errors import MalformedRequest

if TYPE_CHECKING:
    from strandline.wire.stubs.data import ConsumerProtocolAssignment, ConsumerProtocolSubscription

PROTOCOL_TYPE = "consumer"
VERSION_MAX = 3
VERSION_SIZE = 2

Partitions = dict[Uuid, frozenset[int]]


class EmbeddedSubscription(NamedTuple):
    topics: tuple[str, ...]
    owned: Partitions
    """What it has not revoked: nothing if it revokes everything before it joins (eager),
    or its version has no such field.
    """
    rack_id: str | None


class EmbeddedAssignment(NamedTuple):
    partitions: Partitions
    has_user_data: bool
    """Of a custom assignor, which the coordinator couldn't keep."""


def subscription(metadata: bytes, image: MetadataImage) -> EmbeddedSubscription:
    found = messages.decode_data("ConsumerProtocolSubscription", version(metadata), metadata, VERSION_SIZE)
    return EmbeddedSubscription(tuple(found.topics), _by_id(found.owned_partitions, image), found.rack_id or None)


def subscription_in(protocols: Mapping[str, bytes], image: MetadataImage) -> EmbeddedSubscription:
    """Of a consumer, which says the same in each of its protocols.
    All are read: any of them may be the group's one day.
    """
    first, *_ = [subscription(metadata, image) for metadata in protocols.values()]
    return first


def assignment(data: bytes, image: MetadataImage) -> EmbeddedAssignment:
    """Of topics that still exist. No bytes at all: the member has never been assigned anything."""
    if not data:
        return EmbeddedAssignment({}, False)
    found = messages.decode_data("ConsumerProtocolAssignment", version(data), data, VERSION_SIZE)
    return EmbeddedAssignment(_by_id(found.assigned_partitions, image), bool(found.user_data))


def encode_assignment(partitions: Mapping[Uuid, Iterable[int]], image: MetadataImage, in_version: int) -> bytes:
    """In the version of the member's subscription; topics that are gone are left out."""
    Assigned = messages.data("ConsumerProtocolAssignment")
    topics = [topic for topic_id in partitions if (topic := image.topics_by_id.get(topic_id)) is not None]
    named = sorted((topic.name, sorted(partitions[topic.topic_id])) for topic in topics)
    listed = [Assigned.TopicPartition(topic=name, partitions=numbers) for name, numbers in named]
    body = messages.encode_data(
        "ConsumerProtocolAssignment", in_version, Assigned(assigned_partitions=listed, user_data=None)
    )
    return in_version.to_bytes(VERSION_SIZE, "big") + body


def version(data: bytes) -> int:
    """The version that these bytes say they are of, as far as we know it."""
    if len(data) < VERSION_SIZE:
        raise MalformedRequest(f"{len(data)} bytes, too short for the version of the consumer protocol")
    found = int.from_bytes(data[:VERSION_SIZE], "big", signed=True)
    if found < 0:
        raise MalformedRequest(f"version {found} of the consumer protocol")
    return min(found, VERSION_MAX)


def _by_id(
    listed: Iterable[ConsumerProtocolSubscription.TopicPartition | ConsumerProtocolAssignment.TopicPartition],
    image: MetadataImage,
) -> Partitions:
    found: dict[Uuid, set[int]] = {}
    for entry in listed or ():
        topic = image.topics.get(entry.topic)
        if topic is not None:
            found.setdefault(topic.topic_id, set()).update(entry.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in found.items() if partitions}
