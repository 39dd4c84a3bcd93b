"""Files that a stop in the middle of something left in a log's directory, and what becomes of them at the next start.

`.deleted`, `.cleaned`, `.repair` and `.tmp` go. A `.swap` is a cleaned segment that was to take the place of others: if all of
its group had got that suffix, what it replaces goes and it stays; if one was still `.cleaned`, the swap had not begun, and it goes.
That is how Apache Kafka reads these names too.

Always true: whatever is done here can be interrupted and done again.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.config.topic_config import TopicConfig
from strandline.log import names
from strandline.log.errors import CorruptBatch
from strandline.log.opening import open_segment
from strandline.ports import Disk
from strandline.records.header import crc_valid

_UNFINISHED = (names.DELETED_SUFFIX, names.CLEANED_SUFFIX, ".tmp", names.REPAIR_SUFFIX)


def settle(disk: Disk, directory: str, config: TopicConfig) -> Sequence[str]:
    """Finish or undo what was interrupted; the names that are there then. Blocks."""
    present = disk.listdir(directory)
    swaps = _with_offset(present, names.SWAP_SUFFIX)
    if swaps:
        _settle_swaps(disk, directory, config, present, swaps)
    unfinished = [name for name in present if name.endswith(_UNFINISHED)]
    for name in unfinished:
        disk.remove(f"{directory}/{name}")
    if unfinished or swaps:
        present = disk.listdir(directory)
    logs = {name.partition(".")[0] for name in present if name.endswith(names.LOG_SUFFIX)}
    orphans = {name for name in present if name.endswith(names.SEGMENT_SUFFIXES) and name.partition(".")[0] not in logs}
    for name in orphans:
        disk.remove(f"{directory}/{name}")
    return [name for name in present if name not in orphans] if orphans else present


def _settle_swaps(disk: Disk, directory: str, config: TopicConfig, present: Sequence[str], swaps: list[str]) -> None:
    cleaned = [names.offset_of(name) for name in _with_offset(present, names.CLEANED_SUFFIX)]
    bases = names.offsets_in(swaps, names.LOG_SUFFIX + names.SWAP_SUFFIX)
    replaced: set[int] = set()
    old = names.offsets_in(present, names.LOG_SUFFIX)
    # The first of a group has the base offset of the first that it replaces, which is there as long as the swap has not begun.
    is_unbegun = bool(cleaned) and min(cleaned) in old
    void = [name for name in swaps if is_unbegun and names.offset_of(name) >= min(cleaned)]
    for base_offset in bases:
        end_offset = _whole_end(disk, directory, base_offset, config)
        if end_offset is None and base_offset in old:
            # Not what was written, and what it should replace is there still.
            void += [name for name in swaps if names.offset_of(name) == base_offset and name not in void]
        elif end_offset is not None and not any(names.offset_of(name) == base_offset for name in void):
            replaced.update(offset for offset in old if base_offset <= offset < end_offset)
    for name in void:
        disk.remove(f"{directory}/{name}")
    if void:
        # Before the `.cleaned` go that tell them from those to finish.
        disk.sync_dir(directory)
    for base_offset in sorted(replaced):
        for suffix in names.SEGMENT_SUFFIXES:
            disk.remove(f"{directory}/{names.of_offset(base_offset, suffix)}")
    for name in swaps:
        if name not in void:
            disk.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP_SUFFIX)}")
    disk.sync_dir(directory)


def _with_offset(present: Sequence[str], suffix: str) -> list[str]:
    return [name for name in present if name.endswith(suffix) and name.partition(".")[0].isdecimal()]


def _whole_end(disk: Disk, directory: str, base_offset: int, config: TopicConfig) -> int | None:
    """One past the last offset of a segment that waits to be swapped in; None if it is not whole."""
    segment = open_segment(disk, directory, base_offset, config, 0, suffix=names.SWAP_SUFFIX)
    end_offset = base_offset
    try:
        for position, header in segment.batches(limit_offset=segment.offset_limit):
            if not crc_valid(segment.file.read_blocking(position, header.size_bytes)):
                return None
            end_offset = header.next_offset
    except CorruptBatch:
        return None
    finally:
        segment.close()
    return end_offset
