"""group-poll-order: while a member has a partition, it is given its records in their order, each once and none left
out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from strandline.histories.groups.history import GroupHistory
from strandline.histories.record_history import RecordHistory
from strandline.ids import TopicPartition

NAME = "group-poll-order"


def judge(group: GroupHistory, history: RecordHistory) -> Iterable[str]:
    stored: dict[TopicPartition, list[int]] = {}
    for place in sorted(history.stored):
        stored.setdefault((place.topic, place.partition), []).append(place.offset)
    for holding in group.holdings:
        offsets = stored.get(holding.key)
        if offsets is None:
            continue  # of a topic that came and went, whose offsets began anew
        last = -1
        for offset, _ in holding.given:
            if offset <= last:
                yield f"{holding} was given {offset} after {last}"
            elif last >= 0:
                following = bisect_right(offsets, last)
                if following < len(offsets) and offsets[following] < offset:
                    yield f"{holding} was given {offset} after {last}, without {offsets[following]}"
            last = offset
