"""I8 repeatable read: what some consumer has read at an offset stands there at the end."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory


class RepeatableRead(ClientJudge):
    name = "unrepeatable-read"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for poll, read in history.reads():
            there = history.stored.get(read.place)
            if there != read.value:
                yield poll.completed_at, f"{poll.who} read {read.value!r} at {read.place}, where {there!r} stands"
