"""Loading a log from its directory, and setting it right after a crash.

Always true: after a clean shutdown the files are trusted. Otherwise every segment that reaches beyond the recovery point is
read batch by batch; at the first batch that is not whole or fails its checksum the log ends, whatever comes after it.
Indexes, leader epochs and producer state are rebuilt from what remains. All of this blocks: it runs beside the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from strandline.config.topic_config import TopicConfig
from strandline.log import checkpoints, names, producer_snapshot
from strandline.log.epochs import LeaderEpochs
from strandline.log.errors import CorruptLog
from strandline.log.log import Log, new_segment, open_segment
from strandline.log.producer_replay import aborted_txn, note_producer, rebuild_producers
from strandline.log.producers import Producers
from strandline.log.segment import Segment
from strandline.ports import Disk
from strandline.records.header import HEADER, LOG_OVERHEAD, MAGIC, RECORDS_AT, BatchHeader, crc_of

SCAN_BYTES = 4 * 1024 * 1024
"""Read at once while checking a segment; a larger batch is read whole."""

_LEFTOVER_SUFFIXES = (names.SWAP_SUFFIX, names.DELETED_SUFFIX, names.CLEANED_SUFFIX, ".tmp")


class Recovered(NamedTuple):
    """A loaded log, and what had to be cut from it."""

    log: Log
    truncated_bytes: int
    scanned_bytes: int
    rebuilt_indexes: int


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
    epochs = _load_epochs(disk, directory)
    bases = names.offsets_in(present, names.LOG_SUFFIX)
    segments, truncated, scanned, rebuilt = _load_segments(
        disk, directory, bases, config, clean, recovery_point, epochs, now_ms
    )
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
    return Recovered(log, truncated, scanned, rebuilt)


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


def _load_epochs(disk: Disk, directory: str) -> LeaderEpochs:
    path = f"{directory}/{checkpoints.LEADER_EPOCH_CHECKPOINT}"
    try:
        return LeaderEpochs(checkpoints.read_epochs(disk, path))
    except CorruptLog:
        # The batches carry their epochs too: the scan below finds them again.
        disk.remove(path)
        return LeaderEpochs()


def _load_segments(
    disk: Disk,
    directory: str,
    bases: list[int],
    config: TopicConfig,
    clean: bool,
    recovery_point: int,
    epochs: LeaderEpochs,
    now_ms: int,
) -> tuple[list[Segment], int, int, int]:
    segments: list[Segment] = []
    truncated = scanned = rebuilt = 0
    producers = Producers()
    scanned_before = False
    epochs_known = bool(epochs.entries)
    for i, base_offset in enumerate(bases):
        segment = open_segment(disk, directory, base_offset, config, now_ms)
        following = bases[i + 1] if i + 1 < len(bases) else None
        # One that ends at the recovery point may have been closed while that was reached: its indexes were not synced.
        settled = clean or (following is not None and following < recovery_point)
        trusted = settled and (epochs_known or not segment.size)
        if segments and base_offset < segments[-1].next_offset:
            raise CorruptLog(
                f"{segment.file.path} starts below the end {segments[-1].next_offset} of the segment before it"
            )
        if trusted and _open_trusted(segment, active=following is None):
            segments.append(segment)
            scanned_before = False
            continue
        if trusted:
            rebuilt += 1
        scanned += segment.size
        if not scanned_before:
            rebuild_producers(disk, directory, segments, base_offset, producers)
            scanned_before = True
        cut = recover_segment(segment, epochs, producers)
        segment.seal()
        segment.sync_blocking()
        segments.append(segment)
        if cut or _lost_its_tail(segment, following, recovery_point, clean, config):
            truncated += cut + _remove_segments(disk, directory, bases[i + 1 :])
            segment.reopen()
            break
        if following is None:
            segment.reopen()
    if segments and not clean:
        disk.sync_dir(directory)
    return segments, truncated, scanned, rebuilt


def _lost_its_tail(
    segment: Segment, following: int | None, recovery_point: int, clean: bool, config: TopicConfig
) -> bool:
    """Whether whole batches are missing before the next segment, which then is not to be reached over a hole.

    A segment begins where the one before it ended. Compaction alone takes batches away there, long after they were synced.
    """
    if following is None or clean or config.compact:
        return False
    return segment.next_offset < following and following > recovery_point


def _open_trusted(segment: Segment, *, active: bool) -> bool:
    """Take the indexes as they are; False if they can't be right and must be rebuilt."""
    try:
        segment.offset_index.load()
        segment.time_index.load()
        segment.offset_index.check(segment.size)
        segment.time_index.check()
        list(segment.txn_index)
        segment.load_end()
    except (CorruptLog, FileNotFoundError):
        return False
    if active:
        segment.reopen()
    return True


def recover_segment(segment: Segment, epochs: LeaderEpochs, producers: Producers) -> int:
    """Rebuild a segment's indexes from its batches and cut it at the first bad one; how many bytes were cut."""
    segment.begin_indexes()
    segment.next_offset = segment.base_offset
    position, size = 0, segment.size
    chunk, chunk_at = b"", 0
    while position + RECORDS_AT <= size:
        if position + RECORDS_AT > chunk_at + len(chunk):
            chunk, chunk_at = segment.file.read_blocking(position, SCAN_BYTES), position
        header = BatchHeader._make(HEADER.unpack_from(chunk, position - chunk_at))
        if not _plausible(header, segment, size - position):
            break
        if position + header.size_bytes > chunk_at + len(chunk):
            chunk, chunk_at = segment.file.read_blocking(position, max(SCAN_BYTES, header.size_bytes)), position
        batch = memoryview(chunk)[position - chunk_at : position - chunk_at + header.size_bytes]
        if crc_of(batch) != header.crc:
            break
        segment.note_batch(position, header.size_bytes, header.last_offset, header.max_timestamp)
        if header.partition_leader_epoch > epochs.latest:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        completed = note_producer(producers, batch, header)
        if completed is not None and completed.aborted:
            segment.txn_index.add(aborted_txn(producers, completed))
        position += header.size_bytes
    if position < size:
        segment.file.truncate(position)
    return size - position


def _plausible(header: BatchHeader, segment: Segment, bytes_left: int) -> bool:
    """A header that can be right: the checksum covers only what follows it, so offset and length are checked by sense."""
    return (
        header.magic == MAGIC
        and RECORDS_AT - LOG_OVERHEAD <= header.length <= bytes_left - LOG_OVERHEAD
        and header.base_offset >= segment.next_offset
        and header.last_offset_delta >= 0
        and segment.holds(header.last_offset)
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
