"""One cleaning of one log: what to read, what may go, and what came of it. It runs in a process of its own.

First the dirty part is read and the newest offset of each key noted; then every segment is read and written anew without the
records that came again later, small neighbours into one. What is written has names of its own, `<base offset>.log.cleaned` and so
on; nothing else is touched, so a job can be stopped at any point and done again. `swapping.py` lets the new files take their place.

Always true: jobs and results are plain values that can be pickled; whatever is read is checked, and at damage the job ends with
CorruptBatch: a rotten batch never gets a new checksum. On return all that was written is on the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from strandline.log import names
from strandline.log.compaction.filtering import RecordFilter
from strandline.log.compaction.grouping import grouped
from strandline.log.compaction.offset_map import OffsetMap
from strandline.log.compaction.reading import SourceReader, SourceSegment, records_of
from strandline.log.compaction.transactions import CleanerTransactions
from strandline.log.compaction.writing import CleanedSegment, CleanedSegmentWriter
from strandline.log.txn_index import AbortedTxn
from strandline.ports import Disk, Pace

COMPILED_FROM_BYTES = 64 * 1024 * 1024
"""Loading numba takes as long as cleaning so much without it."""


@dataclass(frozen=True, slots=True)
class CleanJob:
    directory: str
    sources: tuple[SourceSegment, ...]
    """The closed segments that may be cleaned, oldest first."""
    first_dirty_offset: int
    """What lies below was cleaned before: no key is there twice."""
    end_offset: int
    """One past the last offset that may be cleaned: where the first segment begins that may not."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    offset_map_entries_max: int
    truncations: int
    """Of the log when the job was made: if its end was cut since, the job is void."""
    last_of_producers: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By producer, its last data offset, -1 if that is gone, and its epoch: the batch that says so must stay, be it empty."""
    aborted: tuple[AbortedTxn, ...] = ()
    """Transactions that were aborted and overlap the sources, wherever their markers are."""


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """Neighbouring segments and what takes their place."""

    bases: tuple[int, ...]
    """Base offsets of the segments that were read."""
    outputs: tuple[CleanedSegment, ...]


@dataclass(frozen=True, slots=True)
class CleaningResult:
    end_offset: int
    """The log is clean below; less than the job's if there were more keys than the offset map may hold."""
    groups: tuple[CleanedGroup, ...]
    """Only those of which something went, oldest first."""
    keys_count: int
    bytes_read: int
    bytes_written: int
    records_read: int
    records_written: int


def run(disk: Disk, pace: Pace, job: CleanJob) -> CleaningResult:
    """Write the cleaned segments of a job. Blocks; `pace` gets how many bytes were read or written. CorruptBatch at damage."""
    discard(disk, job.directory)
    offsets = new_offset_map(sum(source.size for source in job.sources))
    bytes_read, end_offset = _note_dirty(disk, pace, job, offsets)
    offsets.settle()
    sources = [source for source in job.sources if source.base_offset < end_offset]
    transactions = CleanerTransactions(job.aborted, sources[0].base_offset if sources else end_offset)
    sieve = RecordFilter(job, offsets, end_offset, transactions)
    groups = []
    bytes_written = 0
    for group in grouped(sources, job.segment_bytes, job.segment_index_bytes):
        writer = CleanedSegmentWriter(disk, pace, job, group[0].base_offset)
        is_changed = _clean(disk, pace, job, group, sieve, writer)
        if len(group) == 1 and not is_changed:
            writer.discard()
            continue
        outputs = writer.finish()
        bytes_written += sum(output.size for output in outputs)
        groups.append(CleanedGroup(tuple(source.base_offset for source in group), tuple(outputs)))
    if groups:
        disk.sync_dir(job.directory)
    return CleaningResult(
        end_offset,
        tuple(groups),
        len(offsets),
        bytes_read + sum(source.size for source in sources),
        bytes_written,
        sieve.records_read,
        sieve.records_written,
    )


def new_offset_map(bytes_to_read: int) -> OffsetMap:
    """The compiled one if it can be had, and if there is so much to do that loading it pays."""
    if bytes_to_read >= COMPILED_FROM_BYTES:
        with suppress(ImportError, RuntimeError):  # numba refuses where it can't keep what it compiled
            from strandline.log.compaction.compiled import CompiledOffsetMap

            return CompiledOffsetMap()
    return OffsetMap()


def discard(disk: Disk, directory: str) -> None:
    """Remove what an earlier job left that was stopped, or whose result was not wanted any more."""
    for name in disk.listdir(directory):
        if name.endswith(names.CLEANED_SUFFIX):
            disk.remove(f"{directory}/{name}")


def _note_dirty(disk: Disk, pace: Pace, job: CleanJob, offsets: OffsetMap) -> tuple[int, int]:
    """Note the keys of the dirty part; how many bytes were read, and up to where."""
    dirty = [source for source in job.sources if source.next_offset > job.first_dirty_offset]
    transactions = CleanerTransactions(job.aborted, job.first_dirty_offset)
    bytes_read = 0
    for source in dirty:
        bytes_read += source.size
        reader = SourceReader(disk, pace, job.directory, source)
        for data, at, header in reader.batches():
            if header.last_offset < job.first_dirty_offset:
                continue
            reader.check(data, at, header)
            if transactions.note(data, at, header).is_discardable or header.is_control or not header.records_count:
                continue
            offsets.note(*records_of(data, at, header), header)
            if offsets.is_full(job.offset_map_entries_max):
                return bytes_read, header.next_offset
    return bytes_read, job.end_offset


def _clean(
    disk: Disk, pace: Pace, job: CleanJob, group: list[SourceSegment], sieve: RecordFilter, writer: CleanedSegmentWriter
) -> bool:
    """Write what stays of a group of segments; whether anything went.

    The last batch stays in any case, be it empty: it says where the segment ends. Without it a follower could never reach the
    log end, and nobody could tell a segment that was cleaned from one that lost its tail.
    """
    last = next((source for source in reversed(group) if source.size), None)
    is_changed = False
    for source in group:
        reader = SourceReader(disk, pace, job.directory, source)
        for data, at, header in reader.batches():
            is_last = source is last and reader.position == source.size
            left = sieve.left_of(reader, data, at, header, keep_header=is_last)
            if left is not None:
                writer.add(left.batch, left.header, left.aborted)
            is_changed = is_changed or left is None or left.is_changed
    return is_changed
