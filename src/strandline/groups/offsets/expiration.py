"""Offsets whose retention is over, those of deleted topics, and empty groups without offsets: all are removed.

An offset that was committed with a retention time of its own (OffsetCommit 2-4) expires then; others once
`offsets.retention.minutes` have passed since the group became empty or, in groups that still have members or never had
any, since the commit.

Always true: an offset of a topic that exists and that a member consumes does not expire, nor does one that a
transaction may yet change; a group is removed with or after its last offset. What one batch can't hold follows when
that one is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from strandline.coordinator.record import CoordinatorRecord
from strandline.coordinator.result import Callback, CoordinatorResult, Moment
from strandline.errors import ErrorCode
from strandline.groups import framing
from strandline.groups.group import OffsetExpiration
from strandline.groups.records import NO_TIMESTAMP, OffsetCommitKey, OffsetCommitValue
from strandline.ids import ZERO_UUID
from strandline.metadata.image import MetadataImage

if TYPE_CHECKING:
    from strandline.groups.shard import GroupShard

MINUTE_MS = 60_000
LOST_AFTER_MS = 60 * MINUTE_MS
"""An id that is not in the image is that of a deleted topic, or of one that was made a moment ago and committed for by
a predecessor that knew more than we do yet. No broker leads for so long while it learns nothing.
"""
TOMBSTONES_MAX, TOMBSTONES_BYTES_MAX = 4_000, 500_000
"""In a batch: half of what it may have by default, whatever the length of the names."""


def expire(shard: GroupShard, at: Moment) -> CoordinatorResult | None:
    """Removes whatever has expired by now."""
    return _removal(_expired(shard, at.wall_ms), lambda at: expire(shard, at))


def topics_deleted(shard: GroupShard, deleted: Collection[tuple[str, bytes]], at: Moment) -> CoordinatorResult | None:
    """Removes offsets that were committed for these topics (name, id),
    or for their names by a broker that knew no ids.
    """
    if not deleted:
        return None
    gone = frozenset(deleted)
    names = frozenset(name for name, _ in deleted)

    def is_gone(key: OffsetCommitKey, value: OffsetCommitValue) -> bool:
        return (key.topic, value.topic_id) in gone or (value.topic_id == ZERO_UUID and key.topic in names)

    return _removal(_offsets_that(shard, is_gone), lambda at: topics_deleted(shard, deleted, at))


def is_expired(value: OffsetCommitValue, expiration: OffsetExpiration, wall_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp != NO_TIMESTAMP:
        return wall_ms >= value.expire_timestamp
    since_ms = value.commit_timestamp if expiration.since_ms is None else expiration.since_ms
    return wall_ms - since_ms >= retention_ms


def is_lost(value: OffsetCommitValue, image: MetadataImage, wall_ms: int) -> bool:
    """Its topic was deleted while the group had no coordinator."""
    known = value.topic_id == ZERO_UUID or value.topic_id in image.topics_by_id
    return not known and wall_ms - value.commit_timestamp >= LOST_AFTER_MS


def _expired(shard: GroupShard, wall_ms: int) -> Iterator[Sequence[CoordinatorRecord]]:
    offsets, image = shard.offsets, shard.dependencies.image
    retention_ms = shard.dependencies.config.offsets_retention_minutes * MINUTE_MS
    for group_id, group in shard.groups.items():
        expiration = group.offset_expiration()
        remains = offsets.has_open(group_id)
        for topic, partitions in offsets.of_group(group_id).items():
            of_topic = None if group.is_subscribed_to(topic) else expiration
            for partition, value in partitions.items():
                is_over = is_lost(value, image, wall_ms) or (
                    of_topic is not None and is_expired(value, of_topic, wall_ms, retention_ms)
                )
                if is_over and not offsets.is_open(group_id, topic, partition):
                    yield (_tombstone(OffsetCommitKey(group=group_id, topic=topic, partition=partition)),)
                else:
                    remains = True
        if not remains and group.is_empty():
            yield group.tombstones()


def _offsets_that(
    shard: GroupShard, is_gone: Callable[[OffsetCommitKey, OffsetCommitValue], bool]
) -> Iterator[Sequence[CoordinatorRecord]]:
    """Tombstones for the offsets of which this is true; whether they are committed, or would be."""
    for group_id in shard.offsets.groups():
        for key in {key: None for key, value in shard.offsets.items(group_id) if is_gone(key, value)}:
            yield (_tombstone(key),)


def _removal(tombstones: Iterator[Sequence[CoordinatorRecord]], again: Callback) -> CoordinatorResult | None:
    """As many as a batch may have; then whatever there is to remove by then. Those that belong together stay so."""
    records: list[CoordinatorRecord] = []
    size_bytes = 0
    for some in tombstones:
        records.extend(some)
        size_bytes += sum(len(framing.encode(record)[0]) for record in some)
        if len(records) >= TOMBSTONES_MAX or size_bytes >= TOMBSTONES_BYTES_MAX:
            return CoordinatorResult(records, lambda code, at: again(at) if code is ErrorCode.NONE else None)
    return CoordinatorResult(records) if records else None


def _tombstone(key: OffsetCommitKey) -> CoordinatorRecord:
    return CoordinatorRecord(key, None)
