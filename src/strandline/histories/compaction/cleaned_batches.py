"""What cleaning may do to the batches of a partition: take out records that a later one with the same key has
superseded.

Always true: a batch keeps its base offset, last offset and leader epoch; what stays in it stays as it was written; what
goes is superseded by something that is committed, or is a tombstone; a batch of an aborted transaction goes whole, and
supersedes nothing, and neither does a marker.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from strandline.histories.batches import LoggedBatch
from strandline.histories.compaction.history import FoundRecord
from strandline.histories.transactions.partition_log import PartitionTransactions
from strandline.metadata.image import TOPIC_RESOURCE, MetadataImage
from strandline.records.batch import decode

CLEANUP_POLICY = "cleanup.policy"
REMEMBERED_MAX = 2_000
"""Batches, of this history and those before: each is looked at after every cleaning."""


def is_compacted(image: MetadataImage, topic: str) -> bool:
    return "compact" in image.config(TOPIC_RESOURCE, topic).get(CLEANUP_POLICY, "")


@lru_cache(maxsize=REMEMBERED_MAX)
def records(batch: LoggedBatch) -> list[FoundRecord]:
    return [
        FoundRecord(record.offset, record.key or b"", record.value) for record in decode(batch.content, check_crc=False)
    ]


@lru_cache(maxsize=REMEMBERED_MAX)
def is_part_of(batch: LoggedBatch, written: LoggedBatch) -> bool:
    """Whether it is what a cleaning may have left of another."""
    if (batch.base_offset, batch.last_offset, batch.epoch) != (written.base_offset, written.last_offset, written.epoch):
        return False
    return batch.is_sound and set(records(batch)) <= set(records(written))


class NewestOffsets:
    """The newest offset of each key among the committed batches of a partition."""

    def __init__(self) -> None:
        self._offsets: dict[bytes, int] = {}
        self._seen: set[int] = set()
        self._transactions = PartitionTransactions()
        self._without_records: set[int] = set()
        """Base offsets of aborted batches and of markers."""

    def learn(self, committed: dict[int, LoggedBatch]) -> None:
        if len(committed) == len(self._seen):
            return
        for base_offset, batch in sorted(committed.items()):
            if base_offset not in self._seen:
                self._seen.add(base_offset)
                self._learn(batch)

    def _learn(self, batch: LoggedBatch) -> None:
        found = self._transactions.add(batch)
        if found is None:
            self._supersede([batch])
            return
        transactional, before = found
        if not transactional.is_marker:
            return
        self._without_records.add(batch.base_offset)
        if before is not None and transactional.is_commit:
            self._supersede(before.batches)
        elif before is not None:
            self._without_records |= {each.base_offset for each in before.batches}

    def _supersede(self, batches: Iterable[LoggedBatch]) -> None:
        for batch in batches:
            for record in records(batch):
                self._offsets[record.key] = max(record.offset, self._offsets.get(record.key, -1))

    def unexplained(self, written: LoggedBatch, found: LoggedBatch | None) -> list[FoundRecord]:
        """Records that are missing, though nothing supersedes them."""
        if written.base_offset in self._without_records:
            return []
        left = set() if found is None else {record.offset for record in records(found)}
        return [
            record
            for record in records(written)
            if record.offset not in left
            and record.value is not None
            and self._offsets.get(record.key, -1) <= record.offset
        ]
