"""Which neighbouring segments are cleaned into one.

Always true: every segment is in one group, in order; a group of several fits, even if nothing goes, into the size that a segment
and its indexes may have, and its offsets into the 31 bits that an index has for them.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.log.compaction.reading import SourceSegment
from strandline.log.segment import RELATIVE_OFFSET_MAX


def grouped(
    sources: Sequence[SourceSegment], segment_bytes: int, segment_index_bytes: int
) -> list[list[SourceSegment]]:
    groups: list[list[SourceSegment]] = []
    size = offset_index_bytes = time_index_bytes = 0
    for source in sources:
        size += source.size
        offset_index_bytes += source.offset_index_bytes
        time_index_bytes += source.time_index_bytes
        if (
            groups
            and size <= segment_bytes
            and max(offset_index_bytes, time_index_bytes) <= segment_index_bytes
            and source.end_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
        ):
            groups[-1].append(source)
        else:
            groups.append([source])
            size, offset_index_bytes, time_index_bytes = source[3:]
    return groups
