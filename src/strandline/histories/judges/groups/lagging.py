"""group-lags: once all faults are undone and all is read, the group has committed each of its partitions to the end."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.groups.history import GroupHistory
from strandline.histories.record_history import RecordHistory

NAME = "group-lags"


def judge(group: GroupHistory, history: RecordHistory) -> Iterable[str]:
    topics = {topic for topic, _ in group.final} | {holding.key[0] for holding in group.holdings}
    for place in history.stored:
        if place.topic in topics and place.offset >= group.final.get((place.topic, place.partition), 0):
            yield f"{place} is not committed: {group.final}"
            return
