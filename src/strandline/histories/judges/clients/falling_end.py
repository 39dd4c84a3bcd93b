"""A13 falling end: the end that ListOffsets(LATEST) answers for a partition is never less than one answered before
(KIP-207).

One end was answered before another if its answer had arrived when the other was asked for. A leader that stood still,
and does not know yet that another one leads, answers with what it knew: the leader epoch of its answer is older, and
that is all that a client can see.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory, ReportedEnd
from strandline.ids import TopicPartition


class FallingEnd(ClientJudge):
    name = "falling-end"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        by_partition: dict[tuple[TopicPartition, int], list[ReportedEnd]] = {}
        for end in history.ends:
            # A loss may take what was answered before, and what is answered while it happens.
            lost_at = [lost.at for lost in history.lost if lost[:2] == end.key]
            era = bisect_left(lost_at, end.invoked_at)
            if era == bisect_right(lost_at, end.completed_at):
                by_partition.setdefault((end.key, era), []).append(end)
        for ends in by_partition.values():
            reached: dict[int, list[ReportedEnd]] = {}
            """Of each leader epoch, after each of its ends the greatest so far, with the time of the last."""
            for end in ends:
                before = [
                    greatest[count - 1]
                    for leader_epoch, greatest in reached.items()
                    if leader_epoch <= end.leader_epoch
                    and (count := bisect_right(greatest, end.invoked_at, key=lambda each: each.completed_at))
                ]
                most = max(before, key=lambda each: each.offset, default=end)
                if end.offset < most.offset:
                    yield end.completed_at, f"{end}, and {most.offset} before"
                known = reached.setdefault(end.leader_epoch, [])
                offset = max(end.offset, known[-1].offset) if known else end.offset
                known.append(end._replace(offset=offset))
