"""Reading closed segments to see whether they are still what was written, before somebody needs them.

Always true: a step reads a bounded number of bytes, or one batch, and blocks, so it runs beside the event loop; it changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from strandline.log.epochs import LeaderEpochs
from strandline.log.errors import CorruptBatch
from strandline.log.segment import Segment
from strandline.log.verification import walk
from strandline.records.header import LOG_OVERHEAD, RECORDS_AT, read_header

STEP_BYTES = 1024 * 1024


class ScrubStep(NamedTuple):
    """Where the next step begins, in the file and at which offset, and what this one found."""

    position: int
    offset: int
    damaged: CorruptBatch | None


def scrub(segment: Segment, position: int, offset: int, epochs: LeaderEpochs) -> ScrubStep:
    """Check the batches from `position` on, where `offset` is the least that may follow. Blocks."""
    data = segment.file.read_blocking(position, STEP_BYTES)
    found = walk(segment, position, data, epochs, offset)
    if found.problem is None and not found.end and len(data) >= RECORDS_AT:
        # One batch is larger than a step.
        data = segment.file.read_blocking(position, LOG_OVERHEAD + read_header(data).length)
        found = walk(segment, position, data, epochs, offset)
    if found.problem is None and found.end:
        return ScrubStep(position + found.end, found.next_offset, None)
    problem = found.problem or f"{len(data)} bytes are too few for a batch"
    damaged = segment.damage_at(position + found.end, problem, blocking=True)
    return ScrubStep(max(damaged.end_position, position + 1), damaged.end_offset, damaged)
