"""What the members of a group were given and committed, judged when all was read once more (`stored`)."""

from __future__ import annotations

from strandline.histories.groups.history import GroupHistory
from strandline.histories.judges.groups import group_poll_order, lagging, skipped_by_group
from strandline.histories.outcome import Problem
from strandline.histories.record_history import RecordHistory


def judge(group: GroupHistory, history: RecordHistory, now: float) -> list[Problem]:
    return [
        Problem(each.NAME, now, what)
        for each in (skipped_by_group, group_poll_order, lagging)
        for what in each.judge(group, history)
    ]
