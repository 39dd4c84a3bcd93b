"""What a log promised to have on the device, written once more after an unclean stop.

A sync that failed leaves its pages in memory, and the system takes them for written: the next process reads them, finds them
sound, and its own sync of them succeeds without writing a byte. So they are written over themselves before they are believed.

Always true: it comes before the scan, so that what the scan finds sound can't leave memory without having reached the device; the
bytes stay where they are, and the same, so a crash at any point loses none of them. What is below the recovery point is left alone.
"""

from __future__ import annotations

from strandline.config.topic_config import TopicConfig
from strandline.log.errors import CorruptBatch
from strandline.log.segment import Segment
from strandline.ports import File

PIECE_BYTES = 1024 * 1024
NEVER = 2**63 - 1


def promises_device(config: TopicConfig) -> bool:
    """Whether somebody relies on records being on the device: all others rest on their replicas."""
    return config.flush_messages != NEVER or config.flush_ms != NEVER


def rewrite_tail(segment: Segment, recovery_point: int) -> int:
    """Write what lies beyond the recovery point over itself; how many bytes that were. Blocks."""
    return rewrite(segment.file, _position_of(segment, recovery_point))


def rewrite(file: File, position: int = 0) -> int:
    """Write a file over itself, from `position` on; how many bytes that were. Blocks."""
    rewritten = 0
    while piece := file.read_blocking(position + rewritten, PIECE_BYTES):
        file.rewrite(position + rewritten, piece)
        rewritten += len(piece)
    return rewritten


def _position_of(segment: Segment, recovery_point: int) -> int:
    """Where the first batch that reaches beyond the recovery point starts, or damage before it: an index may be rotten."""
    if recovery_point <= segment.base_offset:
        return 0
    try:
        for position, header in segment.batches(limit_offset=segment.offset_limit):
            if header.last_offset >= recovery_point:
                return position
    except CorruptBatch as damaged:
        return damaged.position
    return segment.size
