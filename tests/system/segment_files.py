"""Logs as they lie on disk, for tests that look at them or change them while no process has them open.

Always true: what is left ends with a whole batch; the mark of a clean shutdown is gone, so the next start looks at every byte.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from strandline.coordinator.record import CoordinatorRecord
from strandline.records.batch import BatchBuilder
from strandline.records.header import BatchHeader, read_header
from strandline.transactions import framing

NEWER = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "replication-offset-checkpoint")
"""What a node writes now and then, and when it stops: a process that was killed before has not."""


def stored_headers(partition: Path) -> Iterator[BatchHeader]:
    """Of the batches of a partition with one segment."""
    stored = _segment(partition).read_bytes()
    position = 0
    while position < len(stored):
        header = read_header(stored, position)
        yield header
        position += header.size_bytes


def append_transaction_record(partition: Path, record: CoordinatorRecord, transaction_version: int) -> None:
    """One more record of `__transaction_state`, as a cluster at this level writes it."""
    *_, last = stored_headers(partition)
    builder = BatchBuilder()
    key, value = framing.encode(record, framing.value_version(record, transaction_version))
    builder.append(key, value, timestamp=time.time_ns() // 1_000_000)
    with _segment(partition).open("ab") as file:
        file.write(builder.build(base_offset=last.next_offset, leader_epoch=last.partition_leader_epoch))
    (partition.parent / NEWER[0]).unlink(missing_ok=True)


def cut_last_batch(partition: Path) -> BatchHeader:
    """What a process leaves that was killed just before it wrote this batch."""
    *_, last = stored_headers(partition)
    segment = _segment(partition)
    os.truncate(segment, segment.stat().st_size - last.size_bytes)
    for newer in (*partition.glob("*.snapshot"), *(partition.parent / name for name in NEWER)):
        newer.unlink(missing_ok=True)
    return last


def _segment(partition: Path) -> Path:
    (segment,) = partition.glob("*.log")
    return segment
