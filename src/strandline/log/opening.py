"""A segment as its topic's config wants it: opened as it is, or begun.

Always true: both read and write the same files; only one that is begun has indexes at once.
"""

from __future__ import annotations

from strandline.config.topic_config import TopicConfig
from strandline.log.segment import Segment
from strandline.ports import Disk


def open_segment(
    disk: Disk, directory: str, base_offset: int, config: TopicConfig, now_ms: int, suffix: str = ""
) -> Segment:
    """A segment whose indexes are not loaded yet."""
    return Segment(
        disk,
        directory,
        base_offset,
        index_interval_bytes=config.index_interval_bytes,
        index_bytes_max=config.segment_index_bytes,
        created_ms=now_ms,
        suffix=suffix,
        may_have_gaps=config.compact,
    )


def new_segment(disk: Disk, directory: str, base_offset: int, config: TopicConfig, now_ms: int) -> Segment:
    segment = open_segment(disk, directory, base_offset, config, now_ms)
    segment.begin_indexes()
    return segment
