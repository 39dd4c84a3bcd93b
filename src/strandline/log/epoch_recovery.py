"""Leader epochs as a restart finds them: in their checkpoint, and in the batches that were written in them.

Always true: an entry that a sound batch contradicts is not believed. What only the checkpoint knows, because compaction took the
batches, is kept. Every batch from the log start on has its epoch: the checkpoint of the log start may be older than this one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain, pairwise

from strandline.config.topic_config import TopicConfig
from strandline.log import checkpoints
from strandline.log.epochs import UNDEFINED_EPOCH, LeaderEpochs
from strandline.log.errors import CorruptBatch, CorruptLog
from strandline.log.segment import Segment
from strandline.ports import Disk
from strandline.records.header import MAGIC, MAGIC_AT, BatchHeader, crc_valid, read_header

_NEVER = 2**31 - 1
"""Later than any epoch."""


def read(disk: Disk, directory: str) -> tuple[LeaderEpochs, bool]:
    """The epochs, and whether their file is rotten."""
    path = f"{directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}"
    try:
        return LeaderEpochs(checkpoints.read_epochs(disk, path)), False
    except CorruptLog:
        # The batches carry their epochs too: the scan below finds them again.
        disk.remove(path)
        return LeaderEpochs(), True


def fit(segments: list[Segment], epochs: LeaderEpochs, log_start_offset: int, config: TopicConfig) -> bool:
    """Whether the entries say what the batches at their bounds say: the file is plain text and has no checksum."""
    if not epochs.entries or not segments:
        return True
    start_offset, end_offset = max(log_start_offset, segments[0].base_offset), segments[-1].next_offset
    entries = [entry for entry in epochs.entries if entry[1] < end_offset]
    for i, (epoch, begins) in enumerate(entries):
        if i + 1 < len(entries) and entries[i + 1][1] <= start_offset:
            continue
        at = _epoch_at(segments, max(begins, start_offset))
        before = _epoch_before(segments, begins) if begins > start_offset else None
        # Before the first entry there may be what was deleted, and compaction may have taken all that was written in an epoch.
        is_last_before = before is None or (before <= epoch if i == 0 else before < epoch)
        if not is_last_before or (at is not None and at < epoch):
            return False
        if not config.compact and (at not in (None, epoch) or (i and before not in (None, entries[i - 1][0]))):
            return False
    last = _epoch_at(segments, end_offset - 1)
    if last is None or last < 0 or not entries or last == entries[-1][0]:
        return True
    # If only the very last batch disagrees, it is the one that rotted.
    before_last = _epoch_at(segments, max(_base_of(segments, end_offset - 1) - 1, entries[-1][1]))
    return before_last == entries[-1][0]


def only_misfit(segments: list[Segment], epochs: LeaderEpochs, log_start_offset: int) -> CorruptBatch | None:
    """The one batch that is of another epoch than the entries say and than the batches around it allow: it is rotten.

    None if there are more of them, or if the only one could be what was written: then it is the entries that are wrong.
    """
    start_offset, end_offset = max(log_start_offset, segments[0].base_offset), segments[-1].next_offset
    found: tuple[Segment, int] | None = None
    before = UNDEFINED_EPOCH
    located = chain(_located_between(segments, start_offset, end_offset), [None])
    for this, after in pairwise(located):
        assert this is not None
        segment, position, header = this
        epoch, known = header.partition_leader_epoch, epochs.epoch_at(max(header.base_offset, start_offset))
        if known in (UNDEFINED_EPOCH, epoch):
            before = epoch
            continue
        latest = _NEVER if after is None else after[2].partition_leader_epoch
        if found is not None or max(before, 0) <= epoch <= latest:
            return None
        found = segment, position
    if found is None:
        return None
    segment, position = found
    return segment.damage_at(position, "a batch is of another leader epoch than those around it", blocking=True)


def restore(segments: list[Segment], epochs: LeaderEpochs, checkpointed: LeaderEpochs) -> None:
    """Take back what the checkpoint said of batches that compaction took: a scan can't find in which epochs they were written.

    An entry counts if the batches before it are of earlier epochs and those after it of no earlier one: after a cut that the
    checkpoint does not know of, they would not be.
    """
    found = dict(epochs.entries)
    for epoch, begins in checkpointed.entries:
        at, before = _header_at(segments, begins), _epoch_before(segments, begins)
        is_held = at is not None and at.base_offset <= begins
        is_known = at is None or (at.partition_leader_epoch == epoch if is_held else at.partition_leader_epoch >= epoch)
        if is_known and (before is None or before < epoch):
            found[epoch] = begins
    entries: list[tuple[int, int]] = []
    for epoch, begins in sorted(found.items()):
        if not entries or entries[-1][1] < begins:
            entries.append((epoch, begins))
    epochs.replace(entries)


def extend_to_start(segments: list[Segment], epochs: LeaderEpochs, start_offset: int) -> None:
    """Read from the batches what was forgotten of those between the log start and the first entry.

    DeleteRecords forgot their epochs when it moved the log start; the epochs were flushed, and a crash came before the log start
    was written to its checkpoint. An epoch that the batches before and after contradict is a rotten one and does not count.
    """
    if not epochs.entries or epochs.entries[0][1] <= start_offset:
        return
    first_epoch, known_from = epochs.entries[0]
    headers = chain(_headers_between(segments, start_offset, known_from), [(known_from, first_epoch)])
    found: list[tuple[int, int]] = []
    latest, first_offset = UNDEFINED_EPOCH, known_from
    for (base_offset, epoch), (_, after) in pairwise(headers):
        first_offset = min(first_offset, max(base_offset, start_offset))
        is_contradicted = epoch > first_epoch or (latest <= after and not latest <= epoch <= after)
        if not is_contradicted and epoch > latest:
            # A rotten one before all others counts as theirs, so that a reader notices it.
            found.append((epoch, base_offset if found else first_offset))
            latest = epoch
    if found and found[-1][0] == first_epoch:
        epochs.replace([*found, *epochs.entries[1:]])
    elif found:
        epochs.replace([*found, *epochs.entries])


def _headers_between(segments: list[Segment], start_offset: int, end_offset: int) -> Iterator[tuple[int, int]]:
    """Base offset and leader epoch of the batches that hold an offset in this range. Blocks."""
    for _, _, header in _located_between(segments, start_offset, end_offset):
        yield header.base_offset, header.partition_leader_epoch


def _located_between(
    segments: list[Segment], start_offset: int, end_offset: int
) -> Iterator[tuple[Segment, int, BatchHeader]]:
    """The headers of the batches that hold an offset in this range, and where they are. Blocks."""
    for segment in segments[max(bisect_right(segments, start_offset, key=_base_offset) - 1, 0) :]:
        for position, header in segment.batches(segment.floor(start_offset, blocking=True), skip_damage=True):
            if header.base_offset >= end_offset:
                return
            if header.last_offset >= start_offset:
                yield segment, position, header


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def _epoch_at(segments: list[Segment], offset: int) -> int | None:
    """The leader epoch of the first batch that ends at or after `offset`; None if it can't be had."""
    header = _header_at(segments, offset)
    return None if header is None else header.partition_leader_epoch


def _base_of(segments: list[Segment], offset: int) -> int:
    header = _header_at(segments, offset)
    return offset if header is None else header.base_offset


def _header_at(segments: list[Segment], offset: int) -> BatchHeader | None:
    for segment in segments[max(bisect_right(segments, offset, key=_base_offset) - 1, 0) :]:
        try:
            found = segment.locate(offset, blocking=True)
        except CorruptBatch:
            return None
        if found is not None:
            batch = segment.file.read_blocking(*found)
            return read_header(batch) if crc_valid(batch) and batch[MAGIC_AT] == MAGIC else None
    return None


def _epoch_before(segments: list[Segment], offset: int) -> int | None:
    """The leader epoch of the last batch that starts below `offset`; None if it can't be had."""
    for segment in reversed(segments[: bisect_left(segments, offset, key=_base_offset)]):
        found = None
        try:
            for position, header in segment.batches(segment.floor(offset - 1, blocking=True)):
                if header.base_offset >= offset:
                    break
                found = position, header
        except CorruptBatch:
            return None
        if found is not None:
            position, header = found
            is_sound = crc_valid(segment.file.read_blocking(position, header.size_bytes))
            return header.partition_leader_epoch if is_sound else None
    return None
