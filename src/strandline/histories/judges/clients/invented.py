"""invented: whatever is read or stored was sent by some producer, to that very partition."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory


class Invented(ClientJudge):
    name = "invented"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        found = [(poll.completed_at, read.place, read.value) for poll, read in history.reads()]
        found += [(0.0, place, value) for place, value in history.stored.items()]
        for at, place, value in found:
            send = history.sends.get(value)
            if send is None:
                yield at, f"{value!r} at {place} was never sent"
            elif (send.topic, send.partition) != place[:2]:
                yield at, f"{send} at {place} was sent to {send.topic}-{send.partition}"
