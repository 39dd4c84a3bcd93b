"""Loading a log from its directory, and setting it right after a crash.

Always true: after a clean shutdown the files are trusted. Otherwise every segment that reaches beyond the recovery point is
read batch by batch; at the first batch beyond it that is not whole or fails its checksum the log ends, whatever comes after it.
What was on the device once is never cut: a batch that rotted there stays, for a repair, and the log goes on after it. Indexes,
leader epochs and producer state are rebuilt from what remains. The log then vouches for all of it, so where somebody relies on the
device it is written once more before it is synced. All of this blocks: it runs beside the event loop.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from strandline.config.topic_config import TopicConfig
from strandline.log import checkpoints, names, producer_snapshot
from strandline.log.epochs import LeaderEpochs
from strandline.log.errors import CorruptBatch, CorruptLog
from strandline.log.log import Log
from strandline.log.opening import new_segment, open_segment
from strandline.log.producer_replay import rebuild_producers
from strandline.log.producers import Producers
from strandline.log.rewriting import promises_device, rewrite_tail
from strandline.log.scan import Scan
from strandline.log.segment import Segment
from strandline.ports import Disk
from strandline.records.header import MAGIC, MAGIC_AT, BatchHeader, crc_valid, read_header

_LEFTOVER_SUFFIXES = (names.SWAP_SUFFIX, names.DELETED_SUFFIX, names.CLEANED_SUFFIX, ".tmp", names.REPAIR_SUFFIX)


class Recovered(NamedTuple):
    """A loaded log, and what had to be done about it."""

    log: Log
    truncated_bytes: int
    scanned_bytes: int
    rebuilt_indexes: int
    damaged: tuple[CorruptBatch, ...] = ()
    """Stretches that rotted on the device and wait for a repair, as far as segments had to be read."""
    rebuilt_epochs: bool = False
    """Whether the leader epochs were rotten, and come from the batches now."""


class _Segments(NamedTuple):
    segments: list[Segment]
    truncated_bytes: int
    scanned_bytes: int
    rebuilt_indexes: int
    damaged: list[CorruptBatch]


def load(
    disk: Disk,
    directory: str,
    config: TopicConfig,
    *,
    clean: bool,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    now_ms: int = 0,
) -> Recovered:
    """The log in `directory`, which may be empty or not exist yet."""
    disk.mkdir(directory)
    present = _remove_leftovers(disk, directory)
    epochs, epochs_are_rotten = _load_epochs(disk, directory)
    bases = names.offsets_in(present, names.LOG_SUFFIX)
    checkpointed = LeaderEpochs(list(epochs.entries))
    found_segments = _load_segments(disk, directory, bases, config, clean, recovery_point, epochs, checkpointed, now_ms)
    if not _epochs_fit(found_segments.segments, epochs, log_start_offset, config):
        # The batches carry their epochs too.
        for segment in found_segments.segments:
            segment.close()
        epochs, epochs_are_rotten = LeaderEpochs(), True
        bases = [segment.base_offset for segment in found_segments.segments]
        found_segments = _load_segments(
            disk, directory, bases, config, clean, recovery_point, epochs, checkpointed, now_ms
        )
    segments, truncated, scanned, rebuilt, damaged = found_segments
    if checkpointed.entries and not epochs_are_rotten:
        first_epoch, known_from = checkpointed.entries[0]
        if epochs.epoch_at(known_from) == first_epoch:
            # The batches before it were deleted, though some may still be in their file.
            epochs.truncate_from_start(known_from)
    if segments and segments[-1].next_offset < log_start_offset:
        # All that a crash left was deleted before it. Offsets below the log start are never given out again.
        for segment in segments:
            segment.close()
        truncated += _remove_segments(disk, directory, [segment.base_offset for segment in segments])
        segments = []
    found = bool(segments)
    if not found:
        segments = [new_segment(disk, directory, log_start_offset, config, now_ms)]
    end_offset = segments[-1].next_offset
    start_offset = min(max(log_start_offset, segments[0].base_offset), end_offset)
    log = Log(
        disk,
        directory,
        config,
        segments,
        log_start_offset=start_offset,
        recovery_point=end_offset,
        epochs=epochs,
        producers=Producers(),
    )
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(start_offset)
    if epochs.entries == checkpointed.entries and not epochs_are_rotten:
        epochs.dirty = False
    if found and clean and not scanned and not epochs.dirty:
        log.left_in_order()
    if any(name.endswith(names.PRODUCER_SNAPSHOT_SUFFIX) for name in present):
        _remove_snapshots_above(disk, directory, end_offset)
    if end_offset:
        rebuild_producers(disk, directory, segments, end_offset, log.producers)
    if epochs.dirty:
        # The recovery point says that all this was seen to; a scan that starts from it would not find them again.
        checkpoints.write_epochs(disk, f"{directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}", epochs.entries)
        epochs.dirty = False
    return Recovered(log, truncated, scanned, rebuilt, tuple(damaged), epochs_are_rotten)


def _remove_leftovers(disk: Disk, directory: str) -> Sequence[str]:
    """Files that a deletion, a cleaning or a replaced checkpoint left behind; a finished swap is completed. What stays."""
    before = disk.listdir(directory)
    for name in before:
        if name.endswith(names.SWAP_SUFFIX):
            disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP_SUFFIX)}")
        elif name.endswith(_LEFTOVER_SUFFIXES):
            disk.remove(f"{directory}/{name}")
    is_settled = not any(name.endswith(_LEFTOVER_SUFFIXES) for name in before)
    present = before if is_settled else disk.listdir(directory)
    logs = {name.partition(".")[0] for name in present if name.endswith(names.LOG_SUFFIX)}
    orphans = [name for name in present if name.endswith(names.SEGMENT_SUFFIXES) and name.partition(".")[0] not in logs]
    for name in orphans:
        disk.remove(f"{directory}/{name}")
    return [name for name in present if name not in orphans] if orphans else present


def _load_epochs(disk: Disk, directory: str) -> tuple[LeaderEpochs, bool]:
    """The epochs, and whether their file is rotten."""
    path = f"{directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}"
    try:
        return LeaderEpochs(checkpoints.read_epochs(disk, path)), False
    except CorruptLog:
        # The batches carry their epochs too: the scan below finds them again.
        disk.remove(path)
        return LeaderEpochs(), True


def _epochs_fit(segments: list[Segment], epochs: LeaderEpochs, log_start_offset: int, config: TopicConfig) -> bool:
    """Whether the entries say what the batches at their bounds say: the file is plain text and has no checksum."""
    if not epochs.entries or not segments:
        return True
    start_offset, end_offset = max(log_start_offset, segments[0].base_offset), segments[-1].next_offset
    entries = [entry for entry in epochs.entries if entry[1] < end_offset]
    for i, (epoch, begins) in enumerate(entries):
        if i + 1 < len(entries) and entries[i + 1][1] <= start_offset:
            continue
        at = _epoch_at(segments, max(begins, start_offset))
        before = _epoch_at(segments, begins - 1) if begins > start_offset else None
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


def _epoch_at(segments: list[Segment], offset: int) -> int | None:
    """The leader epoch of the first batch that ends at or after `offset`; None if it can't be had."""
    header = _header_at(segments, offset)
    return None if header is None else header.partition_leader_epoch


def _base_of(segments: list[Segment], offset: int) -> int:
    header = _header_at(segments, offset)
    return offset if header is None else header.base_offset


def _header_at(segments: list[Segment], offset: int) -> BatchHeader | None:
    for segment in segments[max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0) :]:
        try:
            found = segment.locate(offset, blocking=True)
        except CorruptBatch:
            return None
        if found is not None:
            batch = segment.file.read_blocking(*found)
            return read_header(batch) if crc_valid(batch) and batch[MAGIC_AT] == MAGIC else None
    return None


def _load_segments(
    disk: Disk,
    directory: str,
    bases: list[int],
    config: TopicConfig,
    clean: bool,
    recovery_point: int,
    epochs: LeaderEpochs,
    checkpointed: LeaderEpochs,
    now_ms: int,
) -> _Segments:
    segments: list[Segment] = []
    truncated = scanned = rebuilt = 0
    epochs_known = bool(epochs.entries)
    scan = Scan(epochs, Producers(), checkpointed)
    scanned_before = False
    opened = [open_segment(disk, directory, base_offset, config, now_ms) for base_offset in bases]
    for i, base_offset in enumerate(bases):
        segment = opened[i]
        following = bases[i + 1] if i + 1 < len(bases) else None
        # One that ends at the recovery point may have been closed while that was reached: its indexes were not synced.
        settled = clean or (following is not None and following < recovery_point)
        trusted = settled and (epochs_known or not segment.size)
        end_offset = following if following is not None else recovery_point if clean and recovery_point else None
        if trusted and _open_trusted(segment, end_offset, active=following is None):
            segments.append(segment)
            scanned_before = False
            continue
        if trusted:
            rebuilt += 1
        if not settled:
            # From here on every batch is looked at: what the entries say of them may be older than the last cut.
            epochs.truncate_from_end(base_offset)
            scan.epochs_are_known = False
            if promises_device(config):
                rewrite_tail(segment, recovery_point)
        scanned += segment.size
        if not scanned_before:
            rebuild_producers(disk, directory, segments, base_offset, scan.producers)
            scanned_before = True
        after = opened[i + 1] if following is not None else None
        cut = scan.recover(segment, segment.offset_limit if settled else recovery_point, end_offset, after)
        segment.seal()
        segment.sync_blocking()
        segments.append(segment)
        if (cut and not settled) or _lost_its_tail(segment, following, recovery_point, clean, config):
            for unreachable in opened[i + 1 :]:
                unreachable.close()
            truncated += cut + _remove_segments(disk, directory, bases[i + 1 :])
            segment.reopen()
            break
        truncated += cut
        if following is None:
            segment.reopen()
    if segments and not clean:
        disk.sync_dir(directory)
    return _Segments(segments, truncated, scanned, rebuilt, scan.damaged)


def _lost_its_tail(
    segment: Segment, following: int | None, recovery_point: int, clean: bool, config: TopicConfig
) -> bool:
    """Whether whole batches are missing before the next segment, which then is not to be reached over a hole.

    A segment begins where the one before it ended. Compaction alone takes batches away there, long after they were synced.
    """
    if following is None or clean or config.compact:
        return False
    return segment.next_offset < following and following > recovery_point


def _open_trusted(segment: Segment, end_offset: int | None, *, active: bool) -> bool:
    """Take the indexes as they are; False if they, or the segment's end, can't be right and it must be read."""
    try:
        segment.offset_index.load()
        segment.time_index.load()
        segment.offset_index.check(segment.size)
        segment.time_index.check()
        segment.load_end()
        if end_offset is not None and segment.next_offset != end_offset and not _ends_sound(segment, end_offset):
            return False
        segment.check_aborted()
    except (CorruptLog, CorruptBatch, FileNotFoundError):
        return False
    if active:
        segment.reopen()
    return True


def _ends_sound(segment: Segment, end_offset: int) -> bool:
    """Whether a segment that does not end where the next one begins is as it should be: compaction may have left the gap."""
    count = segment.offset_index.count
    start = segment.offset_index.entry(count - 1)[1] if count else 0
    return segment.next_offset < end_offset and all(
        crc_valid(segment.file.read_blocking(position, header.size_bytes))
        for position, header in segment.batches(start)
    )


def _remove_segments(disk: Disk, directory: str, bases: list[int]) -> int:
    """Remove the segments after a cut, the newest first, so that a crash in between leaves no hole; their bytes."""
    removed = 0
    for base_offset in reversed(bases):
        removed += disk.size(f"{directory}/{names.of_offset(base_offset, names.LOG_SUFFIX)}")
        for suffix in names.SEGMENT_SUFFIXES:
            disk.remove(f"{directory}/{names.of_offset(base_offset, suffix)}")
    return removed


def _remove_snapshots_above(disk: Disk, directory: str, end_offset: int) -> None:
    for offset in producer_snapshot.offsets_in(disk, directory):
        if offset > end_offset:
            disk.remove(f"{directory}/{names.of_offset(offset, names.PRODUCER_SNAPSHOT_SUFFIX)}")
