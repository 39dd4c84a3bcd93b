"""Offsets by time: the questions of ListOffsets that the log itself must answer.

Always true: an answer names the first record, in offset order, that fits; NotCached asks for a warm-up and another try,
CorruptBatch for a repair first.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.log.log import Log
from strandline.log.segment import Segment
from strandline.records.batch import decode
from strandline.records.header import BatchHeader


class TimestampAndOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


def first_at_or_after(log: Log, timestamp: int) -> TimestampAndOffset | None:
    """The first record at or above the log start whose timestamp is at least `timestamp`."""
    for segment in log.segments:
        if segment.max_timestamp >= timestamp and segment.next_offset > log.log_start_offset:
            for position, header in segment.batches(segment.locate_time(timestamp), blocking=False):
                if header.max_timestamp >= timestamp and header.last_offset >= log.log_start_offset:
                    for record in decode(log.read_batch(segment, position, header)):
                        if record.timestamp >= timestamp and record.offset >= log.log_start_offset:
                            return TimestampAndOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None


def of_max_timestamp(log: Log) -> TimestampAndOffset | None:
    """The record with the greatest timestamp, the first one if several share it (KIP-734)."""
    newest = max(log.segments, key=lambda segment: segment.max_timestamp)
    if newest.max_timestamp < 0:
        return None
    found = newest.locate(newest.offset_of_max_timestamp)
    for position, header in newest.batches(found[0] if found is not None else 0, blocking=False):
        if header.max_timestamp == newest.max_timestamp and header.records_count:
            return _greatest_in(log, newest, position, header)
    return _greatest_of_all(log)


def _greatest_of_all(log: Log) -> TimestampAndOffset | None:
    """The same where the greatest timestamp is that of a batch which compaction emptied: its header keeps it, for its producer."""
    greatest = None
    for segment in log.segments:
        for position, header in segment.batches(blocking=False):
            if header.records_count and (greatest is None or header.max_timestamp > greatest[2].max_timestamp):
                greatest = segment, position, header
    return None if greatest is None or greatest[2].max_timestamp < 0 else _greatest_in(log, *greatest)


def _greatest_in(log: Log, segment: Segment, position: int, header: BatchHeader) -> TimestampAndOffset | None:
    for record in decode(log.read_batch(segment, position, header)):
        if record.timestamp == header.max_timestamp:
            return TimestampAndOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None
