"""Truncation: how a log is cut, at its end or at its start. Where a follower's log is cut says `replica/following.py`.

Always true: what was cut does not come back after a crash beside what is appended in its place; segments go newest first from the
end and oldest first from the start, so that a crash in between leaves no hole. Leader epochs, producers and the recovery point are
cut along with the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from strandline.log import names, producer_snapshot
from strandline.log.opening import new_segment
from strandline.log.producer_replay import rebuild_producers
from strandline.log.segment import Segment

if TYPE_CHECKING:
    from strandline.log.log import Log


def truncate_to(log: Log, offset: int) -> None:
    """Remove everything at or after `offset`."""
    if offset >= log.log_end_offset:
        # A leader that wrote nothing left its epoch at the log end (rule A12). It may be one that the next leader never saw.
        log.epochs.truncate_from_end(log.log_end_offset)
        return
    if offset < log.segments[0].base_offset:
        truncate_fully_and_start_at(log, offset)
        return
    log.truncations += 1
    turn_away(log)
    remove(log, log.segments.cut(offset))
    drop_snapshots(log, lambda at: at > offset)
    # What is cut, here and below, must not come back after a crash beside what is appended in its place.
    log.disk.sync_dir(log.directory)
    active = log.segments.active
    unsynced = log.unsynced
    unsynced.segments = [segment for segment in unsynced.segments if segment.base_offset < active.base_offset]
    active.truncate_to(offset)
    active.file.sync_blocking()
    # A batch that spans `offset` goes as a whole, so the end may lie below it.
    log.log_end_offset = max(min(active.next_offset, offset), active.base_offset)
    log.log_start_offset = min(log.log_start_offset, log.log_end_offset)
    log.recovery_point = min(log.recovery_point, log.log_end_offset)
    unsynced.names_changed = True
    log.epochs.truncate_from_end(log.log_end_offset)
    rebuild_producers(log.disk, log.directory, log.segments, log.log_end_offset, log.producers)


def truncate_fully_and_start_at(log: Log, offset: int) -> None:
    log.truncations += 1
    turn_away(log)
    drop_snapshots(log, lambda at: True)
    remove(log, log.segments)
    log.unsynced.segments = []
    created_ms = log.segments.active.created_ms
    log.segments.begin_anew(new_segment(log.disk, log.directory, offset, log.config, created_ms))
    log.log_start_offset = log.log_end_offset = log.recovery_point = offset
    log.unsynced.names_changed = True
    log.epochs.clear()
    log.producers.clear(offset)


def drop_segments(log: Log, count: int, now_ms: int) -> list[str]:
    """Take the oldest `count` segments out of the log; the files to remove once no reader uses them any more."""
    if count == len(log.segments):
        log.roll(now_ms)
    gone = log.segments.drop_oldest(count)
    unsynced = log.unsynced
    unsynced.segments = [segment for segment in unsynced.segments if segment not in gone]
    start_offset = log.segments[0].base_offset
    log.advance_start(start_offset)
    unsynced.names_changed = True
    doomed = [path for segment in gone for path in segment.mark_deleted()]
    log.retired.add(gone)
    drop_snapshots(log, lambda at: at < start_offset)
    return doomed


def turn_away(log: Log) -> None:
    """Remove the cleaned segments that are about to take their place: after a cut, a restart must not let them do so."""
    arriving, log.arriving = log.arriving, []
    if arriving:
        remove(log, arriving)
        log.disk.sync_dir(log.directory)


def remove(log: Log, segments: Sequence[Segment]) -> None:
    """The newest first, so that a crash in between leaves no hole."""
    for segment in reversed(segments):
        segment.remove()
    log.retired.add(segments)


def drop_snapshots(log: Log, unwanted: Callable[[int], bool]) -> None:
    """Forget the producer snapshots at these offsets, written or not."""
    unsynced = log.unsynced
    unsynced.snapshots = [(at, data) for at, data in unsynced.snapshots if not unwanted(at)]
    for at in producer_snapshot.offsets_in(log.disk, log.directory):
        if unwanted(at):
            log.disk.remove(f"{log.directory}/{names.of_offset(at, names.PRODUCER_SNAPSHOT_SUFFIX)}")
