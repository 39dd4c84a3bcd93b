"""lost-write: what was acknowledged by all in sync stands at the end where the leader said (I7)."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory


class LostWrite(ClientJudge):
    name = "lost-write"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        for send in history.promised():
            assert send.place is not None
            there = history.stored.get(send.place)
            if there != send.value:
                yield send.completed_at or 0.0, f"{send} was acknowledged for {send.place}, where {there!r} stands"
