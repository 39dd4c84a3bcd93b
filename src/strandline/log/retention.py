"""Which of the oldest segments may go: by age, by size, or because the log now starts after them.

Always true: only whole segments from the oldest on, and none that reaches above the high watermark; an open transaction holds none
back (TXN-P33).
"""

from __future__ import annotations

from strandline.log.log import Log
from strandline.log.segment import Segment

FOREVER = -1


def due(log: Log, high_watermark: int, now_ms: int) -> int:
    """How many of the oldest segments to delete now."""
    config = log.config
    count = _below_start(log)
    if not config.delete:
        return count
    limit = _below_watermark(log, high_watermark)
    if config.retention_ms != FOREVER:
        count = max(count, min(limit, _expired(log, now_ms)))
    if config.retention_bytes != FOREVER:
        count = max(count, min(limit, _excess(log)))
    return count


def _below_start(log: Log) -> int:
    """Segments that end at or before the log start offset; the last segment always stays."""
    count = 0
    for following in log.segments[1:]:
        if following.base_offset > log.log_start_offset:
            break
        count += 1
    return count


def _below_watermark(log: Log, high_watermark: int) -> int:
    count = 0
    for segment in log.segments:
        if segment.next_offset > high_watermark or not segment.size:
            break
        count += 1
    return count


def _expired(log: Log, now_ms: int) -> int:
    count = 0
    for segment in log.segments:
        if now_ms - _largest_timestamp(log, segment) <= log.config.retention_ms:
            break
        count += 1
    return count


def _largest_timestamp(log: Log, segment: Segment) -> int:
    return segment.max_timestamp if segment.max_timestamp >= 0 else log.disk.mtime_ms(segment.file.path)


def _excess(log: Log) -> int:
    excess = log.size - log.config.retention_bytes
    count = 0
    for segment in log.segments:
        excess -= segment.size
        if excess < 0:
            break
        count += 1
    return count
