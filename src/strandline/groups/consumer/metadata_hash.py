"""The hash of the topics that a group is subscribed to: when it changes, so may the assignment.

It is kept with the group epoch. Kafka takes XXH3 of much the same; the two never need to agree: where one broker
follows the other, the group gets one more epoch.

Always true: it changes when a topic comes, goes, is made anew, gets partitions, or has its replicas in other racks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from strandline.metadata.image import MetadataImage, TopicImage

NO_TOPICS = 0


def metadata_hash(names: Iterable[str], image: MetadataImage) -> int:
    """A signed 64-bit number."""
    topics = [image.topics[name] for name in sorted(names) if name in image.topics]
    if not topics:
        return NO_TOPICS
    racks = broker_racks(image)
    hashed = hashlib.blake2b(digest_size=8)
    for topic in topics:
        hashed.update(repr((topic.topic_id.hex(), topic.name, len(topic.partitions))).encode())
        if racks:
            hashed.update(repr([sorted(partition_racks) for partition_racks in topic_racks(topic, racks)]).encode())
    return int.from_bytes(hashed.digest(), "big", signed=True)


def broker_racks(image: MetadataImage) -> dict[int, str]:
    """Of the brokers that have one."""
    return {broker_id: broker.rack for broker_id, broker in image.brokers.items() if broker.rack is not None}


def topic_racks(topic: TopicImage, racks: Mapping[int, str]) -> tuple[frozenset[str], ...]:
    """Of each partition's replicas."""
    return tuple(
        frozenset([racks[replica] for replica in partition.replicas if replica in racks])
        for partition in topic.partitions
    )
