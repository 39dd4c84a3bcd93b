"""Putting batches from another replica in the place of a damaged stretch.

The segment is written anew beside the old one, `<base offset>.log.repair` and its indexes, and takes its place when all of it is on
the device. A crash leaves the old files or the new ones, and a restart removes what was not finished.

Always true: what comes in carries its checksum, has the stretch's offsets and leader epochs, and fills it to the byte; not a byte
outside of the stretch changes. What it says of producers and their transactions is known before it is served
(`log/repair_replay.py`). On a compacted topic the replicas are cleaned each in its own time, so there it may be more or less
than what was here, if it surely is all that the other has of these offsets, and too young for a tombstone to have been forgotten by
one and not by the other: a deleted value must not come back. What is older is refused, and never served.
"""

from __future__ import annotations

from strandline.log import names
from strandline.log.effects import LogWork, offloaded
from strandline.log.epochs import UNDEFINED_EPOCH
from strandline.log.errors import CorruptBatch, CorruptLog
from strandline.log.fetched import WholeBatches, whole_valid_batches
from strandline.log.log import Log
from strandline.log.repair_replay import RepairReplay
from strandline.log.segment import Segment
from strandline.log.verification import walk
from strandline.ports import Buffer, Disk
from strandline.records.header import iterate

COPY_BYTES = 1024 * 1024
_ANY_EPOCH = 2**31 - 1


class DoesNotFit(Exception):
    """What another replica has there can't be what was written here."""


def repair(log: Log, damaged: CorruptBatch, data: Buffer, now_ms: int) -> LogWork[bool]:
    """Replace the stretch by the batches in `data`, which may go on after it; False if it is no longer in the log.

    DoesNotFit if they can't be what was there; an OSError is final for the log dir.
    """
    segment = segment_of(log, damaged)
    if segment is None:
        return False
    good = filling(log, damaged, data, now_ms)
    if segment is log.segments.active:
        # Only what is no longer written can be copied.
        log.roll(now_ms)
    truncations = log.truncations
    with log.held():
        if segment.may_have_gaps:
            stands = yield from offloaded(log.disk, lambda: _stands(segment, damaged), log.directory)
            if not stands:
                return False
        repaired = yield from offloaded(log.disk, lambda: _write(log.disk, segment, damaged, good), log.directory)
        replay = RepairReplay(log, damaged, segment, repaired) if _has_producers(good) else None
        if replay is not None:
            problem = None
            try:
                yield from replay.read()
            except CorruptLog as error:
                problem = f"what comes after it can't be read again: {error}"
            if segment_of(log, damaged) is segment and log.truncations == truncations:
                if problem is not None or not replay.fits:
                    _remove(repaired, replay)
                    raise DoesNotFit(problem or "the log was cleaned meanwhile")
                replay.take_over()
                truncations = log.truncations
                yield from offloaded(log.disk, lambda: log.disk.sync_dir(log.directory), log.directory)
    if segment_of(log, damaged) is not segment or log.truncations != truncations:
        _remove(repaired, replay)
        return False
    if repaired.size != segment.size:
        # What reads the segment step by step, or cleans it, must begin anew.
        log.truncations += 1
    log.replace_segment(segment, repaired)
    yield from offloaded(log.disk, lambda: log.disk.sync_dir(log.directory), log.directory)
    return True


def _remove(repaired: Segment, replay: RepairReplay | None) -> None:
    repaired.close()
    repaired.remove()
    if replay is not None:
        replay.give_up()


def _has_producers(good: bytes) -> bool:
    return any(header.producer_id >= 0 for _, header in iterate(good))


def segment_of(log: Log, damaged: CorruptBatch) -> Segment | None:
    """The segment in which the stretch lies, if it is in the log still: retention or a truncation may have taken it."""
    for segment in log.segments:
        if segment.base_offset == damaged.segment_base_offset:
            return (
                segment if segment.size >= damaged.end_position and log.log_start_offset < damaged.end_offset else None
            )
    return None


def distrust(log: Log, damaged: CorruptBatch) -> None:
    """What found the damage may have brought it into memory: what was checked before is no proof of what is there now."""
    segment = segment_of(log, damaged)
    if segment is not None:
        segment.checked.forget(segment.size)


def is_damaged(log: Log, damaged: CorruptBatch) -> LogWork[bool]:
    """Whether the stretch is in the log still, and not sound."""
    segment = segment_of(log, damaged)
    if segment is None:
        return False

    def look() -> bool:
        data = segment.file.read_blocking(damaged.position, damaged.end_position - damaged.position)
        found = walk(segment, damaged.position, data, log.epochs, damaged.first_offset)
        is_sound = found.end == len(data) and found.next_offset <= damaged.end_offset
        return not is_sound and (not segment.may_have_gaps or _stands(segment, damaged))

    with log.held():
        return (yield from offloaded(log.disk, look, log.directory))


def _stands(segment: Segment, damaged: CorruptBatch) -> bool:
    """Whether the stretch is where it was found: a cleaning, or a repair of another size, moves all that comes after. Blocks."""
    if damaged.end_position > segment.size:
        return False
    start = segment.floor(damaged.first_offset - 1, blocking=True)
    for position, header in segment.batches(start, skip_damage=True):
        if position >= damaged.end_position:
            return position == damaged.end_position and header.base_offset == damaged.end_offset
        if position < damaged.position < position + header.size_bytes:
            return False
    return damaged.end_position == segment.size


def filling(log: Log, damaged: CorruptBatch, data: Buffer, now_ms: int) -> bytes:
    """Of `data` the batches that fill the stretch, or DoesNotFit."""
    found = whole_valid_batches(data, damaged.first_offset, _ANY_EPOCH)
    size, next_offset = 0, damaged.first_offset
    for header in found.headers:
        if header.base_offset >= damaged.end_offset:
            break
        epoch = log.epochs.epoch_at(header.base_offset)
        if epoch not in (UNDEFINED_EPOCH, header.partition_leader_epoch):
            raise DoesNotFit(
                f"offset {header.base_offset} is of epoch {header.partition_leader_epoch}, here it is {epoch}"
            )
        size, next_offset = size + header.size_bytes, header.next_offset
    hole = damaged.end_position - damaged.position
    fits = size == hole or (log.config.compact and _may_be_other(log, damaged, found, now_ms))
    if not fits or next_offset > damaged.end_offset:
        problem = f" ({found.problem})" if found.problem else ""
        raise DoesNotFit(
            f"{size} bytes up to offset {next_offset} came for {hole} bytes up to offset {damaged.end_offset}{problem}"
        )
    return bytes(memoryview(data)[:size])


def _may_be_other(log: Log, damaged: CorruptBatch, found: WholeBatches, now_ms: int) -> bool:
    """Whether what came may take the place of what was here though a cleaning left more or less of it; DoesNotFit if it is too old.

    Else this log may have forgotten a tombstone of which the other has the value, or the other one whose value is here.
    """
    if not found.headers or found.end_offset < damaged.end_offset:
        return False
    written_ms, now_from_ms = found.headers[0].max_timestamp, now_ms - log.config.delete_retention_ms
    if written_ms <= now_from_ms:
        raise DoesNotFit(
            f"it was cleaned differently there, and is older than delete.retention.ms ({log.config.delete_retention_ms}): "
            "this replica should be made anew"
        )
    return True


def _write(disk: Disk, segment: Segment, damaged: CorruptBatch, good: bytes) -> Segment:
    """The segment with the stretch replaced, on the device under names of its own. Blocks."""
    repaired = Segment(
        disk,
        segment.directory,
        segment.base_offset,
        index_interval_bytes=segment.index_interval_bytes,
        index_bytes_max=segment.index_bytes_max,
        created_ms=segment.created_ms,
        suffix=names.REPAIR_SUFFIX,
    )
    repaired.file.truncate(0)  # an earlier attempt may have failed
    _copy(segment, repaired, 0, damaged.position)
    repaired.file.append(good)
    _copy(segment, repaired, damaged.end_position, segment.size)
    repaired.index_batches(segment.next_offset)
    repaired.seal()
    repaired.sync_blocking()
    repaired.checked.forget(repaired.size)
    return repaired


def _copy(source: Segment, target: Segment, position: int, end: int) -> None:
    while position < end:
        chunk = source.file.read_blocking(position, min(COPY_BYTES, end - position))
        if not chunk:
            return  # it was cut meanwhile, and this copy will not be used
        target.file.append(chunk)
        position += len(chunk)
