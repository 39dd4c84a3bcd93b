"""skipped-by-group: each record below what a group has committed was given to one of its members, as it was written."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.groups.history import GroupHistory
from strandline.histories.record_history import RecordHistory

NAME = "skipped-by-group"


def judge(group: GroupHistory, history: RecordHistory) -> Iterable[str]:
    given: dict[tuple[str, int, int], bytes] = {}
    for holding in group.holdings:
        for offset, value in holding.given:
            given[(*holding.key, offset)] = value
    for place, value in history.stored.items():
        end = group.final.get((place.topic, place.partition), 0)
        if place.offset >= end:
            continue
        if place not in given:
            yield f"{place} was given to no member, and {end} is committed"
        elif given[place] != value:
            yield f"{place} was given as {given[place]!r}, where {value!r} stands"
