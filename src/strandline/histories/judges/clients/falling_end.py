"""A13 falling end: what ListOffsets(LATEST) tells of a partition is never less than what it told before (KIP-207).

One end was told before another if it had arrived when the other was asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, End, Key, RecordHistory


class FallingEnd(ClientJudge):
    name = "falling-end"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        told: dict[tuple[Key, int], list[End]] = {}
        for end in history.ends:
            # A loss may take what was told, and what is told while it happens.
            lost_at = [lost.at for lost in history.lost if lost[:2] == end.key]
            era = bisect_left(lost_at, end.invoked_at)
            if era == bisect_right(lost_at, end.completed_at):
                told.setdefault((end.key, era), []).append(end)
        for ends in told.values():
            greatest: list[End] = []
            """After each of them, the greatest so far."""
            for end in ends:
                before = min(bisect_right(ends, end.invoked_at, key=lambda each: each.completed_at), len(greatest))
                if before and end.offset < greatest[before - 1].offset:
                    yield end.completed_at, f"{end}, and {greatest[before - 1]} before"
                greatest.append(end if not greatest or end.offset > greatest[-1].offset else greatest[-1])
