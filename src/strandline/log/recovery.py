"""Loading a log from its directory, and setting it right after a crash.

Always true: after a clean shutdown the files are trusted. Otherwise every segment that reaches beyond the recovery point is
read batch by batch; at the first batch beyond it that is not whole or fails its checksum the log ends, whatever comes after it.
What was on the device once is never cut: a batch that rotted there stays, for a repair, and the log goes on after it. Indexes,
leader epochs and producer state are rebuilt from what remains. The log then vouches for all of it, so where somebody relies on the
device it is written once more before it is synced. All of this blocks: it runs beside the event loop.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from strandline.config.topic_config import TopicConfig
from strandline.log import checkpoints, epoch_recovery, names, producer_snapshot
from strandline.log.epochs import LeaderEpochs
from strandline.log.errors import CorruptBatch, CorruptLog
from strandline.log.leftovers import settle
from strandline.log.log import Log
from strandline.log.opening import new_segment, open_segment
from strandline.log.producer_replay import rebuild_producers
from strandline.log.producers import Producers
from strandline.log.rewriting import promises_device, rewrite_tail
from strandline.log.scan import SegmentScan
from strandline.log.segment import Segment
from strandline.ports import Disk
from strandline.records.header import crc_valid

EVERYWHERE = 2**63 - 1
"""Above every offset."""


class RecoveredLog(NamedTuple):
    """A loaded log, and what had to be done about it."""

    log: Log
    truncated_bytes: int
    scanned_bytes: int
    rebuilt_indexes: int
    damaged: tuple[CorruptBatch, ...] = ()
    """Stretches that rotted on the device and wait for a repair, as far as segments had to be read."""
    rebuilt_epochs: bool = False
    """Whether the leader epochs were rotten, and come from the batches now."""
    epochs_known_from: int = 0
    """Where the leader epochs of the checkpoint began: where the log started when they were last written, or before."""


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
    clean_offset: int = 0,
    high_watermark: int | None = None,
    now_ms: int = 0,
) -> RecoveredLog:
    """The log in `directory`, which may be empty or not exist yet. `clean_offset`: up to there it was surely compacted.

    `high_watermark`: as it was checkpointed. Transactions whose marker is above it are not stable yet (TXN-P31).
    """
    disk.mkdir(directory)
    present = settle(disk, directory, config)
    epochs, epochs_are_rotten = epoch_recovery.read(disk, directory)
    bases = names.offsets_in(present, names.LOG_SUFFIX)
    checkpointed = LeaderEpochs(list(epochs.entries))
    load_segments = partial(
        _load_segments,
        disk,
        directory,
        config=config,
        clean=clean,
        recovery_point=recovery_point,
        clean_offset=clean_offset,
        checkpointed=checkpointed,
        now_ms=now_ms,
    )
    found_segments = load_segments(bases, epochs)
    fits = epoch_recovery.fit(found_segments.segments, epochs, log_start_offset, config)
    if (
        not fits
        and (rotten := epoch_recovery.only_misfit(found_segments.segments, epochs, log_start_offset)) is not None
    ):
        found_segments.damaged.append(rotten)
    elif not fits:
        # The batches carry their epochs too.
        for segment in found_segments.segments:
            segment.close()
        epochs, epochs_are_rotten = LeaderEpochs(), True
        bases = [segment.base_offset for segment in found_segments.segments]
        found_segments = load_segments(bases, epochs)
    segments, truncated, scanned, rebuilt, damaged = found_segments
    if checkpointed.entries and not epochs_are_rotten and scanned and config.compact:
        epoch_recovery.restore(segments, epochs, checkpointed)
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
    epoch_recovery.extend_to_start(segments, epochs, start_offset)
    if epochs.entries == checkpointed.entries and not epochs_are_rotten:
        epochs.dirty = False
    if found and clean and not scanned and not epochs.dirty:
        log.left_in_order()
    if any(name.endswith(names.PRODUCER_SNAPSHOT_SUFFIX) for name in present):
        _remove_snapshots_above(disk, directory, end_offset)
    if end_offset:
        rebuild_producers(disk, directory, segments, end_offset, log.producers, high_watermark)
        if start_offset < clean_offset <= end_offset:
            # Cleaning ended below the last stable offset. An old snapshot knows less, and the markers may be gone.
            log.producers.forget_open_below(clean_offset)
    if epochs.dirty:
        # The recovery point says that all this was seen to; a scan that starts from it would not find them again.
        checkpoints.write_epochs(disk, f"{directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}", epochs.entries)
        epochs.dirty = False
    entries = epochs.entries if epochs_are_rotten else checkpointed.entries or epochs.entries
    known_from = min(entries[0][1] if entries else end_offset, end_offset)
    return RecoveredLog(log, truncated, scanned, rebuilt, tuple(damaged), epochs_are_rotten, known_from)


def _load_segments(
    disk: Disk,
    directory: str,
    bases: list[int],
    epochs: LeaderEpochs,
    *,
    config: TopicConfig,
    clean: bool,
    recovery_point: int,
    clean_offset: int,
    checkpointed: LeaderEpochs,
    now_ms: int,
) -> _Segments:
    segments: list[Segment] = []
    truncated = scanned = rebuilt = 0
    epochs_known = bool(epochs.entries)
    scan = SegmentScan(epochs, Producers(), checkpointed)
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
        compacted_to = clean_offset if recovery_point or not config.compact else EVERYWHERE
        if (cut and not settled) or (not clean and _lost_its_tail(segment, following, recovery_point, compacted_to)):
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


def _lost_its_tail(segment: Segment, following: int | None, recovery_point: int, compacted_to: int) -> bool:
    """Whether whole batches are missing before the next segment, which then is not to be reached over a hole.

    A segment begins where the one before it ended. Compaction alone takes batches away there, and only below the recovery point
    that is on the device by then (`node/cleaner.py`). A log of Apache Kafka's may be compacted above it, up to where the cleaner's
    checkpoint says. Where no recovery point is known, a compacted log is taken as it is.
    """
    return following is not None and segment.next_offset < following and following > max(recovery_point, compacted_to)


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
