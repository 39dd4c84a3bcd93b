"""C1, duplicate: a value of an idempotent producer stands at one offset only.

One that was retried without idempotence may stand twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from strandline.histories.record_history import ClientJudge, RecordHistory, RecordPosition


class Duplicate(ClientJudge):
    name = "duplicate"

    @staticmethod
    def judge(history: RecordHistory) -> Iterable[tuple[float, str]]:
        places: dict[bytes, RecordPosition] = {}
        found = [*history.stored.items(), *((read.place, read.value) for _, read in history.reads())]
        for place, value in found:
            send = history.sends.get(value)
            if send is not None and send.idempotent:
                first = places.setdefault(value, place)
                if first != place:
                    yield send.completed_at or send.invoked_at, f"{send} stands at {first} and at {place}"
