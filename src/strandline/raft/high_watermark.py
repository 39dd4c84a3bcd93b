"""The high watermark of the metadata log, as its leader sees it (D7).

Always true: a majority of the voters in force has everything below it on the device, and it never moves back, also not when
the voters change. It shows itself only when a record of the leader's own epoch is below it: a record of an older epoch may
be on a majority and yet be overwritten by a leader that never had it.
"""

from __future__ import annotations

from collections.abc import Sequence


def advance(high_watermark: int | None, voter_ends: Sequence[int | None], epoch_start_offset: int) -> int | None:
    """The high watermark after the voters' logs reached these ends (None for a voter that has not said)."""
    reached = sorted((-1 if end is None else end for end in voter_ends), reverse=True)
    majority_end = reached[len(reached) // 2]
    if majority_end <= epoch_start_offset:
        return high_watermark
    return majority_end if high_watermark is None else max(high_watermark, majority_end)
