"""Cleaned segments take the place of those they were made of.

Group by group, the oldest first: `.cleaned` becomes `.swap`, which is brought to the device; from then on a restart finishes the
swap (`log/leftovers.py`). The old files become `.deleted`, the new ones lose their suffix, and that is brought to the device too. A
tombstone is in a later group than the values it deletes, or in the same, so no crash in between lets a deleted value come back.

Always true: after a crash a group's segments are all old or all new; in memory they change at one moment, between two reads. The
old files stay readable until the returned paths are removed.
"""

from __future__ import annotations

from functools import partial
from typing import NoReturn

from strandline.log import names, truncation
from strandline.log.compaction.job import CleanedGroup, CleaningResult, CleanJob, discard
from strandline.log.effects import LogWork, offloaded
from strandline.log.errors import CorruptBatch, CorruptLog
from strandline.log.log import Log
from strandline.log.segment import Segment


class Overtaken(Exception):
    """The log changed while it was cleaned, so that not all of the result could take its place: it should be cleaned anew."""

    def __init__(self, reason: str, doomed: list[str]) -> None:
        super().__init__(reason, doomed)
        self.reason = reason
        self.doomed = doomed
        """What was replaced before: files to remove later."""


def swap(log: Log, job: CleanJob, cleaned: CleaningResult) -> LogWork[list[str]]:
    """Let the result of a job take its place; the files to remove once no reader uses them any more.

    Overtaken if the log was cut or changed meanwhile: it is then clean up to no other offset than before. An OSError is final for
    the log dir.
    """
    doomed: list[str] = []
    end_of = {source.base_offset: source.end_offset for source in job.sources}
    with log.held():
        for group in cleaned.groups:
            if log.truncations == job.truncations and log.log_start_offset >= end_of[group.bases[-1]]:
                # All of it was deleted meanwhile. It must be gone before a later one may be finished by a restart.
                _remove(log, group)
                continue
            if (reason := _change_since(log, job, group)) is not None:
                _give_up(log, job, reason, doomed)
            try:
                new = yield from offloaded(log.disk, partial(_open, log, group), log.directory)
            except (CorruptLog, CorruptBatch) as error:
                _give_up(log, job, f"what was written can't be read: {error}", doomed)
            log.arriving = new
            # Asked again, because a cut that came while they were opened knew nothing of them.
            if (reason := _change_since(log, job, group)) is None:
                for segment in reversed(new):
                    segment.change_suffix(names.SWAP_SUFFIX)
                yield from offloaded(log.disk, partial(log.disk.sync_dir, log.directory), log.directory)
                reason = _change_since(log, job, group)
            if reason is not None:
                truncation.turn_away(log)
                _give_up(log, job, reason, doomed)
            doomed += _replace(log, group, new)
            log.arriving = []
            yield from offloaded(log.disk, partial(log.disk.sync_dir, log.directory), log.directory)
    return doomed


def _give_up(log: Log, job: CleanJob, reason: str, doomed: list[str]) -> NoReturn:
    discard(log.disk, job.directory)
    raise Overtaken(reason, doomed)


def _change_since(log: Log, job: CleanJob, group: CleanedGroup) -> str | None:
    """Why a group's segments are not what the job read, if they are not."""
    if log.directory != job.directory:
        return f"the log is in {log.directory} now"
    if log.truncations != job.truncations:
        return "the log was cut"
    first = _index_of(log, group)
    sizes = {source.base_offset: source.size for source in job.sources}
    there = [(segment.base_offset, segment.size) for segment in log.segments[first : first + len(group.bases)]]
    if there != [(base_offset, sizes[base_offset]) for base_offset in group.bases] or first + len(there) == len(
        log.segments
    ):
        return f"the segments from {group.bases[0]} on are not those that were cleaned"
    return None


def _index_of(log: Log, group: CleanedGroup) -> int:
    bases = log.segments.bases
    return bases.index(group.bases[0]) if group.bases[0] in bases else len(bases)


def _open(log: Log, group: CleanedGroup) -> list[Segment]:
    """The segments that a job wrote. Blocks."""
    opened = []
    for output in group.outputs:
        path = f"{log.directory}/{names.of_offset(output.base_offset, names.LOG_SUFFIX)}{names.CLEANED_SUFFIX}"
        if not log.disk.exists(path) or log.disk.size(path) != output.size:
            raise CorruptLog(f"{path} does not have the {output.size} bytes that were written")
        segment = Segment(
            log.disk,
            log.directory,
            output.base_offset,
            index_interval_bytes=log.config.index_interval_bytes,
            index_bytes_max=log.config.segment_index_bytes,
            created_ms=log.segments.active.created_ms,
            suffix=names.CLEANED_SUFFIX,
            may_have_gaps=True,
        )
        segment.offset_index.load()
        segment.time_index.load()
        segment.load_end()
        if segment.next_offset != output.next_offset:
            raise CorruptLog(f"{path} ends at offset {segment.next_offset}, not at {output.next_offset}")
        opened.append(segment)
    return opened


def _replace(log: Log, group: CleanedGroup, new: list[Segment]) -> list[str]:
    first = _index_of(log, group)
    end = first + len(group.bases)
    doomed = [path for segment in log.segments[first:end] for path in segment.mark_deleted()]
    for segment in new:
        segment.change_suffix("")
    old = log.segments.replace(first, end, new)
    unsynced = log.unsynced
    unsynced.segments = [segment for segment in unsynced.segments if segment not in old]
    unsynced.names_changed = True
    log.retired.add(old)
    vanished = set(group.bases).difference(log.segments.bases)
    if vanished:
        truncation.drop_snapshots(log, vanished.__contains__)
    return doomed


def _remove(log: Log, group: CleanedGroup) -> None:
    for output in group.outputs:
        for suffix in names.SEGMENT_SUFFIXES:
            log.disk.remove(f"{log.directory}/{names.of_offset(output.base_offset, suffix)}{names.CLEANED_SUFFIX}")
