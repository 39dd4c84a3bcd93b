"""The offsets that transactions commit for a group, read from the batches in `__consumer_offsets`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from strandline.groups import framing
from strandline.groups.records import OffsetCommitKey, OffsetCommitValue
from strandline.histories.batches import LoggedBatch
from strandline.histories.transactions.partition_log import LoggedTransaction, PartitionTransactions
from strandline.ids import TopicPartition
from strandline.records.batch import decode

REMEMBERED_MAX = 2_000
"""Batches, of this history and those before."""


def offsets_of(transaction: LoggedTransaction, group_id: str) -> Iterator[tuple[TopicPartition, int]]:
    """What a transaction commits for a group, in the order of its records."""
    for batch in transaction.batches:
        yield from offsets_in(batch, group_id)


@lru_cache(maxsize=REMEMBERED_MAX)
def offsets_in(batch: LoggedBatch, group_id: str) -> list[tuple[TopicPartition, int]]:
    found: list[tuple[TopicPartition, int]] = []
    for record in decode(batch.content, check_crc=False):
        read = framing.decode(record.key, record.value)
        if read is not None and isinstance(read.key, OffsetCommitKey) and read.key.group == group_id:
            assert isinstance(read.value, OffsetCommitValue)
            found.append(((read.key.topic, read.key.partition), read.value.offset))
    return found


def committed_offsets(known: PartitionTransactions, group_id: str) -> dict[TopicPartition, int]:
    """Those of a group that transactions have committed: of two the one whose record is later counts, whenever they
    ended (TXN-T44)."""
    batches = sorted((batch for each in known.ended if each.is_committed for batch in each.batches), key=_base_offset)
    return {key: offset for batch in batches for key, offset in offsets_in(batch, group_id)}


def _base_offset(batch: LoggedBatch) -> int:
    return batch.base_offset
